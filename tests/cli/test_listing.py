"""Tests of the cells of `pgduel list`."""

import pytest

from fuzz.cli.listing import shortened


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("", ""),
        ("upstream", "upstream"),
        ("v3: /a/v3", "v3: /a/v3"),
        ("bugged: patched,/a/b/lost_row.patch", "bugged: lost_row.patch on top of 1 other"),
        ("bugged: /a/1.patch,/a/2.patch,/a/lost_row.patch", "bugged: lost_row.patch on top of 2 others"),
    ],
)
def test_the_label_of_a_build_names_its_last_patch_alone(label: str, shown: str) -> None:
    assert shortened(label) == shown

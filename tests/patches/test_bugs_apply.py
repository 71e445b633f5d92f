"""Tests that each injected bug applies to its series. They show conflicts after a rebase without a build."""

from pathlib import Path

import pytest

from fuzz.servers.arm import parse_series, shipped_series
from fuzz.servers.base import Base, resolve_base
from fuzz.servers.series import apply_series, series_from_files
from tests.injected_bugs.injected_bug import bug_of, sound_patches
from tests.libfuzzer.test_eclass import LOOKUPS

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def base() -> Base:
    return resolve_base("pg17", print)


@pytest.mark.parametrize("patch", sorted((TESTS / "injected_bugs").glob("**/*.patch")), ids=lambda path: path.stem)
def test_bug_for_a_campaign_applies(base: Base, patch: Path) -> None:
    apply_series(base.tree, series_from_files([*sound_patches(bug_of(patch)), patch]))


@pytest.mark.parametrize("patch", sorted((TESTS / "libfuzzer" / "bugs").glob("*.patch")), ids=lambda path: path.stem)
def test_bug_for_a_harness_applies(base: Base, patch: Path) -> None:
    lookup = next((name for name in LOOKUPS if patch.stem.startswith(f"{name}_")), None)
    sound = parse_series(LOOKUPS[lookup], base) if lookup else shipped_series("patched", base)
    apply_series(base.tree, sound + series_from_files([patch]))

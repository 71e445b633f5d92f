"""Tests of the user's notation for arms."""

from pathlib import Path

import pytest

from fuzz.errors import SourceError
from fuzz.servers.arm import parse_arm, parse_series
from fuzz.servers.base import Base
from fuzz.servers.flavor import FLAVORS
from tests.servers import sources

BASE = Base("pg17", "17.11", "", "0" * 40)
ASSERT = FLAVORS["assert"]


@pytest.mark.parametrize(("text", "name"), [("master", "master"), ("upstream", "upstream"), ("stock=", "stock")])
def test_names(text: str, name: str) -> None:
    assert parse_arm(text, BASE, ASSERT, print).name == name


def test_an_arm_may_have_a_base_of_its_own(tmp_path: Path) -> None:
    sources.plant(tmp_path / "source")
    arm = parse_arm(f"other@{tmp_path}/source=", BASE, ASSERT, print)
    assert (arm.name, arm.base.version, arm.series.patches) == ("other", "17.99", ())
    assert parse_arm(f"master@{tmp_path}/source", BASE, ASSERT, print).base == arm.base


def test_an_empty_series_means_the_base() -> None:
    assert parse_arm("stock=", BASE, ASSERT, print).series.patches == ()


def test_directory_and_files(tmp_path: Path) -> None:
    for name in ("a.patch", "b.patch"):
        (tmp_path / name).write_bytes(name.encode())
    (tmp_path / "series").write_text("b.patch\n")
    assert [patch.name for patch in parse_arm(f"x={tmp_path}", BASE, ASSERT, print).series.patches] == ["b.patch"]
    files = f"{tmp_path}/a.patch,{tmp_path}/b.patch"
    assert [patch.name for patch in parse_series(files, BASE).patches] == ["a.patch", "b.patch"]
    mixed = parse_series(f"master,{tmp_path},{tmp_path}/a.patch", BASE).patches
    assert [patch.name for patch in mixed] == [
        *(patch.name for patch in parse_series("master", BASE).patches),
        "b.patch",
        "a.patch",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mine", "give NAME=SERIES"),
        ("=master", "give NAME=SERIES"),
        ("my arm=master", "give NAME=SERIES or NAME@BASE=SERIES"),
        ("x@=master", "has no base after @"),
        ("x@/nowhere=master", "no source found for '/nowhere'"),
        ("x=/nowhere", "no series found for '/nowhere'"),
        ("x=master,/nowhere", "no series found for '/nowhere'"),
        ("x=master..topic", "give its repository with --repo"),
    ],
)
def test_mistakes_are_refused(text: str, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        parse_arm(text, BASE, ASSERT, print)


def test_no_patches_for_another_major_version() -> None:
    base = Base("pg99", "99.1", "", "0" * 40)
    assert parse_arm("master", base, ASSERT, print).series.patches == ()
    with pytest.raises(SourceError, match="no patches for PostgreSQL 99 are shipped"):
        parse_arm("patched", base, ASSERT, print)

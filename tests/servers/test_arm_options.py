"""Tests of the options for arms: their meaning, and their text for stored campaigns."""

import shlex
from pathlib import Path

import pytest

from fuzz.errors import BuildError, SourceError
from fuzz.servers.arm_options import ArmOptions


def _given(**given: object) -> ArmOptions:
    options = {"base": None, "series": (), "repo": None, "commits": None, "arms": (), "flavor": "assert", **given}
    return ArmOptions.given(**options)  # type: ignore[arg-type]


def test_paths_are_valid_after_a_change_of_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bug", "source", "master"):
        (tmp_path / name).mkdir()
    (tmp_path / "a.patch").touch()
    monkeypatch.chdir(tmp_path)
    given = _given(
        base="source@v17", arms=("old=", "new=bug", "files=a.patch,bug", "plain=master", "patched", "own@source=bug")
    )
    assert given.base == f"{tmp_path}/source@v17"
    assert given.arms == (
        "old=",
        f"new={tmp_path}/bug",
        f"files={tmp_path}/a.patch,{tmp_path}/bug",
        "plain=master",
        "patched",
        f"own@{tmp_path}/source={tmp_path}/bug",
    )


def test_options_print_as_a_command_line() -> None:
    given = _given(series=("/tmp/my patches",), flavor="release")
    assert shlex.split(given.command_line()) == ["--series", "/tmp/my patches", "--flavor", "release"]
    assert _given(arms=("a=master", "b=master")).command_line() == " --arm a=master --arm b=master"
    assert _given().command_line() == ""


def test_one_series_twice_allows_equal_builds() -> None:
    assert _given(arms=("a=master", "b=master")).same_build_wanted
    assert _given(arms=("master", "b=master")).same_build_wanted
    assert _given(arms=("a=", "b=")).same_build_wanted
    assert not _given(arms=("a=master", "b=upstream")).same_build_wanted
    assert not _given(arms=("a=", "b@pg18=")).same_build_wanted
    assert not _given().same_build_wanted


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"commits": "a..b"}, "give --repo"),
        ({"arms": ("a=",), "series": ("x.patch",)}, "not both"),
    ],
)
def test_inconsistent_options_are_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        _given(**given)


def test_the_error_about_an_unknown_flavor_lists_all_flavors() -> None:
    with pytest.raises(BuildError, match="release, assert, sanitize"):
        _given(flavor="debug")

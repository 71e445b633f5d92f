"""Tests of the options for arms: their meaning, and their text for stored campaigns."""

import shlex
from pathlib import Path

import pytest

from fuzz.errors import BuildError, SourceError
from fuzz.servers.arm_options import ArmOptions
from tests.servers import sources


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
        ({"arms": ("a=",), "series": ("x.patch",)}, "more than one of --arm, --series and --range"),
        ({"repo": Path("/src"), "commits": "a..b", "series": ("x.patch",)}, "more than one of --arm, --series"),
        ({"repo": Path("/src")}, "give --range A..B or --arm NAME=A..B, too"),
        ({"repo": Path("/src"), "arms": ("a=patched",)}, "give --range A..B or --arm NAME=A..B, too"),
        ({"base": ""}, "the value of --base is empty"),
        ({"series": ("x.patch", "")}, "the value of --series is empty"),
        ({"repo": Path("/src"), "commits": ""}, "the value of --range is empty"),
    ],
)
def test_inconsistent_options_are_refused(given: dict[str, object], message: str) -> None:
    with pytest.raises(SourceError, match=message):
        _given(**given)


def test_a_finding_keeps_its_arms_under_another_flavor_or_setting() -> None:
    recorded = _given(arms=("a=master", "b=patched"), settings=("b:work_mem=1MB",))
    assert _given().instead_of(recorded) == recorded
    changed = _given(flavor="sanitize", settings=("work_mem=2MB",)).instead_of(recorded)
    assert (changed.arms, changed.flavor) == (recorded.arms, "sanitize")
    assert changed.settings == ("b:work_mem=1MB", "work_mem=2MB")
    others = _given(arms=("c=upstream",), flavor="sanitize")
    assert others.instead_of(recorded) == others


def test_the_error_about_an_unknown_flavor_lists_all_flavors() -> None:
    with pytest.raises(BuildError, match="release, assert, sanitize"):
        _given(flavor="debug")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a repository with the branches master and topic; topic has one more commit."""
    checkout = sources.plant(tmp_path / "checkout")
    sources.git(checkout, "init", "--quiet", "--initial-branch=master")
    sources.commit(checkout, "base")
    sources.git(checkout, "checkout", "--quiet", "-b", "topic")
    (checkout / "src" / "long.c").write_text("changed\n")
    sources.commit(checkout, "change")
    return checkout


def test_pinned_options_stay_when_branches_move(checkout: Path) -> None:
    base, tip = (sources.git(checkout, "rev-parse", name) for name in ("master", "topic"))
    by_range = _given(repo=checkout, commits="master..topic")
    by_arms = _given(
        repo=checkout, base=f"{checkout}@master", arms=("a=", f"b@{checkout}@topic=", "c=patched,master...", "upstream")
    )
    pinned, several = by_range.pinned(), by_arms.pinned()
    assert (pinned.base, pinned.range) == (f"{checkout}@{base}", f"{base}..{tip}")
    assert several.base == f"{checkout}@{base}"
    assert several.arms == ("a=", f"b@{checkout}@{tip}=", f"c=patched,{base}...{tip}", "upstream")
    assert (by_range.commits, pinned.commits, several.commits) == ((), (tip,), (tip,))
    assert _given(base=f"{checkout}@master").pinned().commits == (base,)
    (checkout / "src" / "long.c").write_text("changed again\n")
    sources.commit(checkout, "another change")
    assert pinned.pinned() == pinned
    assert by_range.pinned().commits == (sources.git(checkout, "rev-parse", "topic"),)


def test_options_without_branches_are_pinned_already(tmp_path: Path) -> None:
    for given in (_given(), _given(base="pg18", arms=("a=", "b=patched")), _given(base=str(tmp_path))):
        assert (given.pinned(), given.commits) == (given, ())


def test_a_branch_that_does_not_exist_cannot_be_pinned(checkout: Path) -> None:
    with pytest.raises(SourceError, match="has no revision 'absent'"):
        _given(repo=checkout, base="pg17", commits="master..absent").pinned()


def test_upstream_is_no_third_arm_where_it_is_the_arm_master(tmp_path: Path) -> None:
    three = ("master", "patched", "upstream")
    assert _given().with_upstream(print).arms == _given(base="pg17").with_upstream(print).arms == three
    assert _given(base=str(sources.plant(tmp_path / "source"))).with_upstream(print).arms == three
    for given in (_given(base="pg18"), _given(arms=("a=",)), _given(series=("x.patch",))):
        assert given.with_upstream(print) == given

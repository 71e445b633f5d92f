"""Tests of the shipped series on a newer minor release: they apply despite other context, or an error names a patch."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from operator import attrgetter
from pathlib import Path

import pytest
from unidiff.patch import PatchSet

from fuzz.errors import SourceError
from fuzz.servers import git
from fuzz.servers.arm import ArmSpec, newer_bases, shipped_series
from fuzz.servers.base import Base, resolve_base
from fuzz.servers.flavor import FLAVORS
from fuzz.servers.known_good import known_good
from fuzz.servers.series import Series, applied, apply_series

NEWER = "17.99"
MARK = f"/* a line of {NEWER} */\n"


@pytest.fixture(scope="module")
def base() -> Base:
    """Return the source that the series were made for."""
    return resolve_base("pg17", print)


def moved(base: Base, series: Series, directory: Path) -> Base:
    """Return a next release: another version, and an additional line in the context of a hunk in many files."""
    directory.mkdir()
    git.extract(base.tree, directory)
    meson = directory / "meson.build"
    meson.write_text(meson.read_text().replace(f"version: '{base.version}'", f"version: '{NEWER}'"))
    for file, context in contexts(series):
        text = file_text(directory / file)
        if text.count(context) == 1:
            first, rest = context.split("\n", 1)
            (directory / file).write_text(text.replace(context, f"{first}\n{MARK}{rest}"))
    return resolve_base(str(directory), print)


def contexts(series: Series) -> Iterator[tuple[str, str]]:
    """Yield file and leading context of the first hunk of each C file that one patch alone changes."""
    files = [file for patch in series.patches for file in PatchSet(patch.content.decode())]
    times = Counter(file.path for file in files)
    for file in files:
        leading = list(takewhile(attrgetter("is_context"), file[0])) if file else []
        if times[file.path] == 1 and file.path.endswith((".c", ".h")) and len(leading) > 2:
            yield file.path, "".join(line.value for line in leading[-3:])


def file_text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


@pytest.mark.parametrize("arm", ["master", "patched"])
def test_the_shipped_series_have_equal_effects_on_a_newer_release(arm: str, base: Base, tmp_path: Path) -> None:
    series = shipped_series(arm, base)
    newer = moved(base, series, tmp_path / "newer")
    assert newer.version == NEWER
    with pytest.raises(SourceError, match="check that the series was made for this base"):
        apply_series(newer.tree, replace(series, made_for=""))

    done = applied(newer.tree, series)

    assert done.moved
    expected = apply_series(base.tree, series)[-1]
    changed = git.output(
        "--git-dir", git.repository(), "diff-tree", "-r", "--name-only", expected, done.trees[-1], failing="no trees"
    )
    for file in set(changed.decode().split()) - {"meson.build"}:
        assert (git.show(done.trees[-1], file) or "").replace(MARK, "") == git.show(expected, file)


def test_the_summary_names_the_version_and_the_patches(base: Base, tmp_path: Path) -> None:
    series = shipped_series("master", base)
    newer = moved(base, series, tmp_path / "newer")
    first, *others = newer_bases([ArmSpec("master", newer, series, FLAVORS["assert"])])
    assert first.endswith(f"is {NEWER}; the shipped patches and corpus were last tested on {known_good(17)}")
    assert others == [
        f"patch {patch.name} applied to {NEWER} only with less context; check and rebase it"
        for patch in series.patches
        if patch.name in applied(newer.tree, series).moved
    ]


def test_the_error_about_a_patch_without_its_lines_names_it_in_one_line(base: Base, tmp_path: Path) -> None:
    series = shipped_series("master", base)
    changed = next(file for file in PatchSet(series.patches[0].content.decode()) if file.is_modified_file)
    git.extract(base.tree, tmp_path)
    (tmp_path / changed.path).write_text("/* written anew */\n")
    newer = resolve_base(str(tmp_path), print)
    with pytest.raises(SourceError) as raised:
        apply_series(newer.tree, series)
    assert series.patches[0].name in str(raised.value)
    assert str(raised.value).endswith(f"it was made for {known_good(17)}, so rebase it")
    assert len(str(raised.value).splitlines()) == 1

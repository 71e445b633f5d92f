"""Patch coverage: the reached lines and branches that each patch of a series adds or changes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fuzz.servers import git
from fuzz.servers.build import Build
from fuzz.servers.coverage import Covered, FileCoverage, file_coverage, total

_HEADER: Final = re.compile(rb"^(?P<commit>[0-9a-f]{40}) \d+ (?P<line>\d+)")  # of a line in git's porcelain format
_SOURCES: Final = (".c", ".h")


@dataclass(frozen=True, slots=True)
class PatchCoverage:
    """The lines of the final tree that a patch wrote last, and the coverage of the files that have them."""

    lines: Mapping[str, frozenset[int]]  # by file
    files: Mapping[str, FileCoverage]

    @property
    def covered(self) -> Covered:
        """Return the numbers of lines and branches in all files."""
        return total(self.files[file].covered_at(lines) for file, lines in self.lines.items())


def patch_coverage(build: Build, profiles: Path, trees: Sequence[str]) -> tuple[PatchCoverage, ...]:
    """Return the coverage of each patch of a build's series. `trees` are the base and the tree after each patch.

    Raises ServerError, SourceError.
    """
    files = file_coverage(build, profiles, changed_files(trees[0], trees[-1]))
    owners = line_owners(trees, list(files))
    return tuple(PatchCoverage({file: frozenset(owned[file]) for file in sorted(owned)}, files) for owned in owners)


def changed_files(before: str, after: str) -> list[str]:
    """Return the C files and headers of a tree that differ from those of another. Raises SourceError."""
    compared = ("diff-tree", "-r", "-z", "--no-renames", "--diff-filter=d", "--name-only", before, after)
    listed = git.output("--git-dir", git.repository(), *compared, failing="cannot compare trees")
    return [path for path in listed.decode(errors="surrogateescape").split("\0") if path.endswith(_SOURCES)]


def line_owners(trees: Sequence[str], files: Sequence[str]) -> list[dict[str, set[int]]]:
    """Return for each tree but the first, in order: the lines of the last tree that it wrote last, by file.

    Raises SourceError.
    """
    commits = git.chain(trees)
    owners: list[dict[str, set[int]]] = [{} for _ in commits[1:]]
    numbers = {commit: number for number, commit in enumerate(commits[1:])}
    for file in files:
        for commit, line in _blamed(commits[-1], file):
            if commit in numbers:
                owners[numbers[commit]].setdefault(file, set()).add(line)
    return owners


def _blamed(commit: str, file: str) -> Iterator[tuple[str, int]]:
    """Yield the commit that wrote each line of a file, with the line's number."""
    failing = f"cannot find the origin of the lines of {file}"
    blamed = git.output("--git-dir", git.repository(), "blame", "--porcelain", commit, "--", file, failing=failing)
    for line in blamed.split(b"\n"):
        if header := _HEADER.match(line):  # the text of a line has a tab before it
            yield header["commit"].decode(), int(header["line"])

"""Changed functions: the C functions of a tree that differ from another tree's, or that only one of the two has."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

from unidiff.patch import PatchSet

from fuzz.servers import git

Function = tuple[str, str]  # path of the file in the tree, name
_DEFINITION: Final = re.compile(r"^(\w+)\(")  # PostgreSQL's style has the name of a function at the start of a line


def changed_functions(before: str, after: str) -> frozenset[Function]:
    """Return the functions that have a changed line, with their files. Raises SourceError."""
    compared = ("diff-tree", "-r", "-p", "-U0", "--no-renames", before, after, "--", "*.c")
    text = git.output("--git-dir", git.repository(), *compared, failing="cannot compare trees")
    found: set[Function] = set()
    for file in PatchSet(text.decode(errors="replace")):
        removed = [line.source_line_no or 0 for hunk in file for line in hunk if line.is_removed]
        added = [line.target_line_no or 0 for hunk in file for line in hunk if line.is_added]
        for tree, lines in ((before, removed), (after, added)):
            found.update((file.path, name) for name in functions_at(git.show(tree, file.path) or "", lines))
    return frozenset(found)


def functions_at(source: str, numbers: Iterable[int]) -> Iterator[str]:
    """Yield for each line the name of the function whose definition is the last one at or above it."""
    starts, names = [], []
    for number, line in enumerate(source.splitlines(), start=1):
        if (definition := _DEFINITION.match(line)) and not line.rstrip().endswith(";"):
            starts.append(number)
            names.append(definition[1])
    for number in numbers:
        if at := bisect_right(starts, number):
            yield names[at - 1]

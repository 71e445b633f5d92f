"""Plan tree: the shape of a plan, such as `Hash Join(Seq Scan, Hash(Seq Scan))`, as indented lines."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

_PART = re.compile(r"[(),]|[^(),]+")


@dataclass(frozen=True, slots=True)
class PlanLine:
    """A node of a plan, its depth, and whether the other arm's plan lacks it."""

    depth: int
    node: str
    differs: bool = False


def tree_lines(shape: str) -> Iterator[PlanLine]:
    """Yield a line for each node of a plan's shape, from the top."""
    depth = 0
    for part in _PART.findall(shape):
        if part == "(":
            depth += 1
        elif part == ")":
            depth = max(0, depth - 1)
        elif node := part.strip(", "):
            yield PlanLine(depth, node)


def side_by_side(left: str, right: str) -> tuple[tuple[PlanLine, ...], tuple[PlanLine, ...]]:
    """Return the lines of two plans' shapes, marked where the plans differ."""
    ours, theirs = tuple(tree_lines(left)), tuple(tree_lines(right))
    same = SequenceMatcher(a=ours, b=theirs, autojunk=False).get_matching_blocks()
    return (
        _marked(ours, {block.a + at for block in same for at in range(block.size)}),
        _marked(theirs, {block.b + at for block in same for at in range(block.size)}),
    )


def _marked(lines: Sequence[PlanLine], same: set[int]) -> tuple[PlanLine, ...]:
    return tuple(PlanLine(line.depth, line.node, at not in same) for at, line in enumerate(lines))

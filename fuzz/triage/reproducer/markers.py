"""Markers: comment lines of a script that say what the statements below them are.

-- sample {"name": "explained"}
-- mode {"name": "prepared_generic", "protocol": "prepared"}
-- scene 1: command
-- step 2: query ordered prepared {"tags": ["hash join"]}
-- beside 2: query prepared
-- step 3: copy_in may_fail
-- end

What stands beside a step is no part of the case: whoever runs the script compares what it returns.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fuzz.errors import CaseError
from oracles.model.case import Kind

_MARKER = re.compile(
    r"^-- (?:(?P<of_case>mode|sample)|(?P<end>end)"
    r"|(?P<place>scene|step|beside) (?P<number>\d+):(?P<words>(?: [a-z_]+)+))(?P<more> \{.*\})?$",
    re.MULTILINE,
)
END = "-- end"
FLAGS = ("ordered", "may_fail")


@dataclass(frozen=True, slots=True)
class Section:
    """A marker, and where the text below it starts and stops."""

    place: str  # sample, mode, scene, step, beside or end
    words: tuple[str, ...]
    more: dict[str, Any] = field(hash=False)
    line: int
    start: int
    stop: int


def marker(place: str, number: int, words: tuple[str, ...], more: dict[str, Any]) -> str:
    """Return the line that stands before a statement. `number` is the position among scene and steps."""
    return f"-- {place} {number}: {' '.join(words)}" + (f" {json.dumps(more)}" if more else "")


def sample_marker(name: str) -> str:
    """Return the line that names a sample of the case."""
    return f"-- sample {json.dumps({'name': name})}"


def mode_marker(more: dict[str, Any]) -> str:
    """Return the line that stands before a mode's settings."""
    return f"-- mode {json.dumps(more)}"


def has_marker(text: str) -> bool:
    """Tell whether a line of the text would be taken for a marker."""
    return _MARKER.search(text) is not None


def unmarked(text: str) -> str:
    """Return the text without its markers, each of which is a line."""
    return re.sub(rf"(?:{_MARKER.pattern})\n?", "", text, flags=re.MULTILINE)


def sections(script: str) -> Iterator[Section]:
    """Cut a script at its markers; what stands before the first is not returned. Raises CaseError."""
    found = list(_MARKER.finditer(script))
    stops = [match.start() for match in found] + [len(script)]
    for match, stop in zip(found, stops[1:], strict=True):
        line = script.count("\n", 0, match.start()) + 1
        place = match["of_case"] or match["place"] or match["end"]
        words = tuple((match["words"] or "").split())
        _require_known(words, line)
        yield Section(place, words, _more(match["more"], line), line, min(match.end() + 1, stop), stop)


def _require_known(words: tuple[str, ...], line: int) -> None:
    if words and words[0] not in list(Kind):
        raise CaseError(f"line {line}: {words[0]!r} is no kind of step; there are: {', '.join(Kind)}")


def _more(text: str | None, line: int) -> dict[str, Any]:
    try:
        return dict(json.loads(text)) if text else {}
    except ValueError as error:
        raise CaseError(f"line {line}: what stands in braces is not JSON ({error})") from error

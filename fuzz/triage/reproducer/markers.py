"""Markers: comment lines of a script that describe the statements below them.

-- sample {"name": "explained"}
-- mode {"name": "prepared_generic", "protocol": "prepared"}
-- scene 1: command
-- step 2: query ordered prepared {"tags": ["hash join"]}
-- evidence 2: query prepared
-- step 3: copy_in may_fail
-- end

Statements marked `evidence` are no part of the case: users compare their results.
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
    r"|(?P<part>scene|step|evidence) (?P<number>\d+):(?P<words>(?: [a-z_]+)+))(?P<more> \{.*\})?$",
    re.MULTILINE,
)
END = "-- end"
FLAGS = ("ordered", "may_fail")


@dataclass(frozen=True, slots=True)
class Section:
    """A marker, and the start and stop positions of the text below it."""

    part: str  # sample, mode, scene, step, evidence or end
    words: tuple[str, ...]
    more: dict[str, Any] = field(hash=False)
    line: int
    start: int
    stop: int


def marker(part: str, number: int, words: tuple[str, ...], more: dict[str, Any]) -> str:
    """Return the marker line before a statement. `number` is the position among scene and steps."""
    return f"-- {part} {number}: {' '.join(words)}" + (f" {json.dumps(more)}" if more else "")


def sample_marker(name: str) -> str:
    """Return the marker line of a sample of the case."""
    return f"-- sample {json.dumps({'name': name})}"


def mode_marker(more: dict[str, Any]) -> str:
    """Return the marker line before a mode's settings."""
    return f"-- mode {json.dumps(more)}"


def has_marker(text: str) -> bool:
    """Return whether a line of the text has the form of a marker."""
    return _MARKER.search(text) is not None


def unmarked(text: str) -> str:
    """Return the text without its marker lines."""
    return re.sub(rf"(?:{_MARKER.pattern})\n?", "", text, flags=re.MULTILINE)


def sections(script: str) -> Iterator[Section]:
    """Yield the sections of a script, without the text before the first marker. Raises CaseError."""
    found = list(_MARKER.finditer(script))
    stops = [match.start() for match in found] + [len(script)]
    for match, stop in zip(found, stops[1:], strict=True):
        line = script.count("\n", 0, match.start()) + 1
        part = match["of_case"] or match["part"] or match["end"]
        words = tuple((match["words"] or "").split())
        _require_known(words, line)
        yield Section(part, words, _more(match["more"], line), line, min(match.end() + 1, stop), stop)


def _require_known(words: tuple[str, ...], line: int) -> None:
    if words and words[0] not in list(Kind):
        raise CaseError(f"line {line}: {words[0]!r} is no kind of step; the kinds are: {', '.join(Kind)}")


def _more(text: str | None, line: int) -> dict[str, Any]:
    try:
        return dict(json.loads(text)) if text else {}
    except ValueError as error:
        raise CaseError(f"line {line}: the text in braces is not JSON ({error})") from error

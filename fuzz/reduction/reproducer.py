"""Reproducer: a psql script that shows a finding without pgduel, and from which pgduel restores the case."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from fuzz import __version__
from fuzz.errors import CaseError
from fuzz.reduction.body import body
from fuzz.reduction.script import read_case
from oracles.case import Case
from oracles.finding import Finding

_ABOUT = re.compile(r"^-- pgduel: (\{.*\})$", re.MULTILINE)
_WIDTH = 110
_SHOWN_LINES, _SHOWN_WIDTH = 12, 160
_SESSION = """\
\\encoding UTF8
\\set ON_ERROR_STOP off
\\set ECHO queries
\\pset pager off
\\pset null '(null)'
SET client_min_messages = warning;
DROP SCHEMA IF EXISTS duel CASCADE;
CREATE SCHEMA duel;
RESET client_min_messages;"""


@dataclass(frozen=True, slots=True)
class About:
    """What a script says of itself to pgduel."""

    generator: str
    case_id: str
    oracle: str
    fingerprint: str
    arms: tuple[str, ...]


def render(case: Case, finding: Finding, arms: Mapping[str, Mapping[str, Any]], case_id: str, replay: str) -> str:
    """Return the script. `arms` holds what is known of each arm, by name; `replay` is the command that judges it."""
    about = {
        "generator": case.generator,
        "case_id": case_id,
        "oracle": finding.oracle,
        "fingerprint": finding.fingerprint,
        "arms": finding.arms,
    }
    parts = (
        "\n".join(_comment(line) for line in _explain(case, finding, arms, case_id, replay)),
        f"-- pgduel: {json.dumps(about)}",
        _SESSION,
        *body(case, finding),
    )
    return "\n\n".join(parts) + "\n"


def _comment(text: str) -> str:
    """Return a line that is no marker, as these have one space, and that stays one line in any reader."""
    visible = re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", lambda match: repr(match.group())[1:-1], text)
    return f"--   {visible}".rstrip()


def _explain(
    case: Case, finding: Finding, arms: Mapping[str, Mapping[str, Any]], case_id: str, replay: str
) -> Iterator[str]:
    yield finding.summary
    yield ""
    yield f"finding   {finding.fingerprint}, by the oracle {finding.oracle} ({finding.origin})"
    yield f"case      {case_id}" + ("" if finding.step is None else f"; it shows at step {finding.step} below")
    yield f"modes     {', '.join(mode.name for mode in case.modes) or 'plain'}"
    if finding.vote:
        yield f"suspect   {finding.vote}"
    for name, facts in arms.items():
        yield from wrap(f"arm       {name}: {_facts(facts)}", _WIDTH, subsequent_indent=" " * 10)
    for title, text in finding.sides():
        yield from _block(title, text)
    yield ""
    yield "See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print"
    yield f"Judge it: {replay}"
    yield f"Written by pgduel {__version__}."


def noted(script: str, notes: Mapping[str, str]) -> str:
    """Return a script whose head also says this, below what it says of the case; notes of the same name go."""
    head, about, rest = script.partition("\n-- pgduel: ")
    for name in notes:
        head = re.sub(rf"^--   {name:9} .*\n(?:--             .*\n)*", "", head, flags=re.MULTILINE)
    lines = [
        line for name, told in notes.items() for line in wrap(f"{name:9} {told}", _WIDTH, subsequent_indent=" " * 10)
    ]
    added = "".join(f"{_comment(line)}\n" for line in lines)
    return (
        re.sub(r"^--   modes     .*\n", lambda match: match[0] + added, head, count=1, flags=re.MULTILINE)
        + about
        + rest
    )


def _facts(facts: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {_words(value)}" for key, value in facts.items() if value not in (None, "", [], ()))


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        value = tuple(value.values())
    return " ".join(map(str, value)) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)


def _block(title: str, text: str) -> Iterator[str]:
    lines = text.split("\n")
    yield ""
    yield f"{title}:"
    for line in lines[:_SHOWN_LINES]:
        yield f"  {line[:_SHOWN_WIDTH]}" + ("..." if len(line) > _SHOWN_WIDTH else "")
    if len(lines) > _SHOWN_LINES:
        yield f"  ... {len(lines) - _SHOWN_LINES} more lines"


def parse(script: str) -> Case:
    """Return the case that a script holds: exactly the one rendered, unless someone edited it. Raises CaseError."""
    about = read_about(script)
    return read_case(script, about.generator if about else "script")


def read_about(script: str) -> About | None:
    """Return what the script says of itself, or None for a script that pgduel did not write. Raises CaseError."""
    match = _ABOUT.search(script)
    if match is None:
        return None
    try:
        told = json.loads(match[1])
        return About(told["generator"], told["case_id"], told["oracle"], told["fingerprint"], tuple(told["arms"]))
    except (ValueError, KeyError, TypeError) as error:
        line = script.count("\n", 0, match.start()) + 1
        raise CaseError(f"line {line}: what follows `-- pgduel:` is damaged ({error!r})") from error

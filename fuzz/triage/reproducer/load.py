"""Cases to replay: from a script, pgduel's or any other for psql, or from the identity of a case."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from fuzz.engines.seeded import case_of
from fuzz.errors import CaseError
from fuzz.generators.generator import Scale
from fuzz.sources.context import SourceContext
from fuzz.triage.reproducer.reproducer import About, parse, read_about
from oracles.model.case import Case, CaseId
from oracles.model.feature import Feature

_CASE_ID = re.compile(r"(\d+)/(\w+)/(\d+)")


@dataclass(frozen=True, slots=True)
class Replay:
    """A case to replay. `about` has the data of its reproducer, if it comes from one."""

    case: Case
    about: About | None = None


def load(
    what: str,
    scale: Scale | None = None,
    target: SourceContext | None = None,
    features: Sequence[Feature] = (),
) -> Replay:
    """Return the case of a file, or of an identity SEED/GENERATOR/INDEX. Raises CaseError.

    Scale, source context and the arms' features matter only for an identity. They must be those of the first
    generation of the case.
    """
    path = Path(what)
    if path.is_file():
        return _from_script(path)
    return Replay(case_of(case_id_of(what), scale or Scale(), target, features))


def case_id_of(what: str) -> CaseId:
    """Return the identity SEED/GENERATOR/INDEX. Raises CaseError."""
    match = _CASE_ID.fullmatch(what)
    if match is None:
        raise CaseError(f"{what} is neither an existing file nor a case; name a case by SEED/GENERATOR/INDEX")
    return CaseId(int(match[1]), match[2], int(match[3]))


def _from_script(path: Path) -> Replay:
    try:
        script = path.read_text(encoding="utf-8")
        replay = Replay(parse(script), read_about(script))
    except (OSError, UnicodeDecodeError) as error:
        raise CaseError(f"{path} cannot be read ({error}); a script must be a text file in UTF-8") from error
    except CaseError as error:
        raise CaseError(f"{path}, {error}") from error
    if not replay.case.all_steps:
        raise CaseError(f"{path} has no statement")
    return replay

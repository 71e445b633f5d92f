"""Cases drawn from a generator: modes, role and row security; and the engine of plain seeds."""

import random
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from fuzz.engines.engine import DrawnCase
from fuzz.execution.modes import composed
from fuzz.execution.modes.roles import ORDINARY, may_be_ordinary
from fuzz.generators.choices import Stream, begin, chance, pick
from fuzz.generators.generator import Generator, Scale
from fuzz.sources.source import LostServer, Source, SourceContext
from fuzz.sources.workloads import workload_named
from oracles.model.case import Case, CaseId, Step
from oracles.model.feature import Feature
from oracles.model.mode import Mode

ORDINARY_CHANCE: Final = 75  # percent; superusers bypass checks
ROW_SECURITY_CHANCE: Final = 20  # percent of these cases
_SECURED: Final = 70  # percent of the tables
_TABLE: Final = re.compile(r'CREATE (?:UNLOGGED )?TABLE ((?:\w|"[^"]*")+) \(', re.IGNORECASE)


def case_of(
    case_id: CaseId, scale: Scale, target: SourceContext | None = None, features: Sequence[Feature] = ()
) -> Case:
    """Return the case of an identity. It is equal on every machine. A case from a source also depends on `target`.

    The arms' features determine only the settings of the mode that forces features.

    If a source loses the server twice, the case is what the server received, so that all arms execute it, and oracles
    judge it. The first loss may be due to the case of another session.

    Raises CaseError for an unknown generator or mode, or a source without a target; also the source's own errors.
    """
    with suppress(LostServer):
        return _case_of(case_id, scale, target, features)
    try:
        return _case_of(case_id, scale, target, features)
    except LostServer as lost:
        return Case(case_id.generator, lost.scene, lost.steps)


def _case_of(case_id: CaseId, scale: Scale, target: SourceContext | None, features: Sequence[Feature]) -> Case:
    rng = random.Random(str(case_id))
    workload = workload_named(case_id.generator, target)
    if isinstance(workload, Source) and (turn := _turn(workload, case_id)):
        part, modes = turn
        return replace(workload.replay(part, rng, scale), modes=composed(modes, features))
    return draw_case(rng, workload, scale, features)


def _turn(source: Source, case_id: CaseId) -> tuple[str, str] | None:
    """Return the part and modes that are due at this index, or None after all rounds.

    Each round replays all parts, in an order that depends on the seed. The first parts have a round for each mode.
    """
    index = case_id.index
    all_modes = tuple(dict.fromkeys((*source.rounds, *source.modes)))
    for parts, rounds in ((source.first_parts(), all_modes), (source.parts(), source.rounds)):
        if index < len(parts) * len(rounds):
            round_, position = divmod(index, len(parts))
            order = random.Random(f"{case_id.seed}/{source.name}").sample(parts, len(parts))
            return order[position], rounds[round_]
        index -= len(parts) * len(rounds)
    return None


def draw_case(rng: random.Random, generator: Generator, scale: Scale, features: Sequence[Feature] = ()) -> Case:
    """Draw modes, and return a case that runs under them, most often as an ordinary role if it can."""
    begin(rng, Stream.MODES)
    modes = draw_modes(rng, generator, features)
    begin(rng, Stream.SCENE)
    case = generator.generate(rng, scale)
    begin(rng, Stream.MODES)
    if not isinstance(generator, Source) and may_be_ordinary(case) and chance(rng, ORDINARY_CHANCE):
        modes += (ORDINARY,)
        case = with_row_security(rng, case) if chance(rng, ROW_SECURITY_CHANCE) else case
    return replace(case, modes=modes)


def draw_modes(rng: random.Random, generator: Generator, features: Sequence[Feature] = ()) -> tuple[Mode, ...]:
    """Return a random composition of the generator's modes: settings, and in half of the cases a protocol, too.

    An entry of `generator.modes` may itself be a composition: names joined by +.
    """
    compositions = [composed(entry, features) for entry in generator.modes]
    settings = [modes for modes in compositions if not any(mode.protocol for mode in modes)]
    protocols = [modes for modes in compositions if any(mode.protocol for mode in modes)]
    drawn = pick(rng, settings) if settings else ()
    if protocols and (not settings or chance(rng, 50)):
        drawn += pick(rng, protocols)
    return drawn


def with_row_security(rng: random.Random, case: Case) -> Case:
    """Return the case with row security on some tables of its scene, enforced for their owner, too.

    Its policies admit every row, so queries return the same rows as without. But security quals come first: leaky
    conditions are neither pushed down nor used by indexes (src/backend/utils/adt/selfuncs.c,
    src/backend/optimizer/util/restrictinfo.c).

    Return the case itself if it copies rows into tables after the scene, which row security forbids.
    """
    if any(step.copy_data is not None for step in case.steps):
        return case
    tables = [found[1] for step in case.scene if (found := _TABLE.match(step.sql))]
    secured = [step for table in tables if chance(rng, _SECURED) for step in _row_security(table)]
    return replace(case, scene=(*case.scene, *secured))


def _row_security(table: str) -> tuple[Step, ...]:
    """Return the steps that enable row security. A row is always distinct from NULL, even one of NULLs."""
    return (
        Step(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"),
        Step(f"CREATE POLICY every_row ON {table} USING ({table}.* IS DISTINCT FROM NULL)"),
    )


class SeededEngine:
    """The engine of plain seeds, which learns nothing."""

    def __init__(self, scale: Scale, target: SourceContext | None, features: Sequence[Feature]) -> None:
        self._scale = scale
        self._target = target
        self._features = features

    def draw(self, case_id: CaseId) -> DrawnCase:
        """Return the case of an identity. Raises the errors of `case_of`."""
        return DrawnCase(str(case_id), case_of(case_id, self._scale, self._target, self._features))

    def conclude(self, *, executed: bool) -> None:
        """Do nothing."""

    def cpu_seconds(self) -> float:
        """Return 0, because it has no processes."""
        return 0.0

    def close(self) -> None:
        """Do nothing."""

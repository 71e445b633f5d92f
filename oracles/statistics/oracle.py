"""Statistics: what ANALYZE stores of a foreign table is what a sample of its rows may well say.

Samples differ from run to run, and so do statistics, so they are held against all of the rows, by tests whose errors
are bounded (`sample_tests`, `sample_laws`). A duel's ANALYZE is repeated in runs of the oracle's own: behind it, the
statistics are read, and all rows. What the session asked the remote server for is taken from that server's log.

Each test errs in 1 of 10,000 at most (LEVEL). A suspicion is followed by two runs more, with other samples, and is a
finding if each of them says the same: by chance that happens in less than 1 of 10^12 tests, so in less than one of
10,000 campaigns of a hundred million tests. Where the reference fails the same test in each of its runs, the fault is
no difference of the suspect: PostgreSQL 17's own estimate of a foreign table's rows is only as good as the remote one.
So is ours to be, at worst: an estimate that is exactly the remote catalogs' is no doubt by itself.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Final

from oracles.framework.canaries import query
from oracles.framework.pairwise import REPETITIONS, Pair, Sampled
from oracles.model.case import Case, Kind, Step
from oracles.model.finding import Evidence, Finding
from oracles.model.mode import Mode
from oracles.model.observation import CaseObservation, Outcome, Run
from oracles.model.oracle import Agree, Canary, Inconclusive, More, Unstable, Verdict
from oracles.statistics.analyze import Analysis, analysis
from oracles.statistics.remote_sql import statements
from oracles.statistics.sample_doubts import all_doubts
from oracles.statistics.sample_tests import LEVEL, Doubt

_REPETITIONS: Final = REPETITIONS[:2]
_LOGGED: Final = Mode("logged", (("log_statement", "all"), ("log_parameter_max_length", "0")))
_ANALYZE: Final = re.compile(r"ANALYZE (\w+)")
_FOREIGN: Final = "CREATE FOREIGN TABLE "

_CANARY: Final = Case(
    "canary",
    (
        Step("CREATE TABLE flock (n integer, name text)"),
        Step("INSERT INTO flock SELECT n % 50, nullif('bird ' || n % 7, 'bird 0') FROM generate_series(1, 2000) AS n"),
        Step(
            f"{_FOREIGN}canary (n integer, name text) SERVER loopback OPTIONS (schema_name 'duel', table_name 'flock')"
        ),
    ),
    (Step("ANALYZE canary"), query("SELECT count(*) FROM flock")),
)


@dataclass(frozen=True, slots=True)
class Suspicion:
    """What is in doubt: a test of the analysis that a step tells of, of a column or of the table."""

    step: int
    test: str
    column: str


@dataclass(frozen=True, slots=True)
class _Pair(Pair):
    def judge(self) -> tuple[Verdict, ...] | More:
        found = self._seen(self.suspect)
        if found is None:
            return (Inconclusive("connection lost"),)
        suspected = {place: doubt for place, doubt in _doubts(found).items() if doubt.chance < LEVEL}
        if suspected and (missing := self.missing(self._settling_runs())):
            return More(missing, frozenset(_symptom(place, found) for place in suspected))
        told = {place: self._settled(place, doubt, found) for place, doubt in suspected.items()}
        unseen = sum(each.remote is not None and each.sample is None for each in found.values())
        if unseen:
            return (*told.values(), Inconclusive("remote SQL not seen"))
        clean = found.keys() - {place.step for place in told}
        return (*told.values(), Agree(len(clean))) if clean or not told else tuple(told.values())

    def _settled(self, place: Suspicion, doubt: Doubt, found: Mapping[int, Analysis]) -> Finding | Unstable:
        if not all(self._in_doubt(self.suspect, place, number) for number in _REPETITIONS):
            return Unstable(f"{place.test}: not in all samples")
        if all(self._in_doubt(self.reference, place, number) for number in (0, *_REPETITIONS)):
            return Unstable(f"{place.test}: {self.reference} is as far off")
        table = _tables(self.case)[place.step]
        samples = len(_REPETITIONS) + 1
        whose = f" of {place.column}" if place.column else ""
        return Finding(
            oracle=Statistics.name,
            arms=(self.reference, self.suspect),
            origin=_symptom(place, found),
            step=place.step,
            summary=f"step {place.step}: {place.test}{whose} of {table}, {samples} samples: {doubt.actual}",
            expected=doubt.expected,
            actual=f"{doubt.actual} (by chance: {doubt.chance:.2g})",
            beside=(Evidence(f"SELECT * FROM pg_stats WHERE tablename = '{table}'"), Evidence(_rows_of(table))),
        )

    def _in_doubt(self, arm: str, place: Suspicion, repetition: int) -> bool:
        found = self._seen(arm, repetition) or {}
        told = _doubts({step: each for step, each in found.items() if step == place.step})
        return place in told and told[place].chance < LEVEL

    def _settling_runs(self) -> Iterator[Run]:
        return (_run(self.case, arm, number) for arm in (self.reference, self.suspect) for number in _REPETITIONS)

    def _seen(self, arm: str, repetition: int = 0) -> Mapping[int, Analysis] | None:
        return analyses(self.case, self.observations[_run(self.case, arm, repetition)])


class Statistics(Sampled):
    """A sample's statistics are those of its relation, as far as samples can be."""

    name: ClassVar[str] = "statistics"
    canaries: ClassVar[tuple[Canary, ...]] = (Canary("scale_estimate", _CANARY), Canary("change_null_frac", _CANARY))
    pair = _Pair

    def looks(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return a run on each arm that reads statistics and rows, where the case analyzes a foreign table."""
        if not _tables(case) or not any(step.sql.startswith(_FOREIGN) for step in case.all_steps):
            return ()
        return tuple(_run(case, arm) for arm in arms)


def _symptom(place: Suspicion, found: Mapping[int, Analysis]) -> str:
    return f"{place.test}: {found[place.step].method or 'not chosen'}"


def _tables(case: Case) -> dict[int, str]:
    """Return the tables that the case analyzes, each by the position of the query behind it, which follows at once."""
    found: dict[int, str] = {}
    steps = case.all_steps
    for position, (step, behind) in enumerate(pairwise(steps), start=1):
        analyzed = _ANALYZE.fullmatch(step.sql)
        if analyzed and behind.kind is Kind.QUERY and not behind.params:
            found[position] = analyzed[1]
    return found


def _run(case: Case, arm: str, repetition: int = 0) -> Run:
    instead: list[tuple[int, str]] = []
    for position, table in _tables(case).items():
        instead.append((position - 1, f"ANALYZE VERBOSE {table}"))
        instead.append((position, f"SELECT * FROM pgduel_tools.analyzed('{table}')"))
    return Run(arm, (*case.modes, _LOGGED), instead=tuple(instead), repetition=repetition)


def _rows_of(table: str) -> str:
    return f"SELECT relname, reltuples FROM pg_class WHERE relname = '{table}'"


def analyses(case: Case, observed: CaseObservation) -> dict[int, Analysis] | None:
    """Return the analyses of a run of the oracle's own, by step; None if the connection was lost."""
    if observed.residue is None:
        return None
    logged = iter(statements(observed))
    found: dict[int, Analysis] = {}
    for position, table in _tables(case).items():
        sql = f"ANALYZE VERBOSE {table}"
        remote = next((lines for statement, lines in logged if statement == sql), ())
        analyzed, told = observed.steps[position - 1], observed.steps[position]
        if analyzed.outcome is Outcome.OK and told.outcome is Outcome.OK:
            each = analysis(table, analyzed, told, remote)
            if each is not None:
                found[position] = each
    return found


def _doubts(found: Mapping[int, Analysis]) -> dict[Suspicion, Doubt]:
    return {
        Suspicion(step, test, column): doubt
        for step, each in found.items()
        for (test, column), doubt in all_doubts(each).items()
    }

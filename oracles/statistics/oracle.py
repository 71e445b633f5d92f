"""Statistics: the statistics that ANALYZE stores for a foreign table must be plausible for a sample of its rows.

Samples and statistics differ between runs. So the statistics are compared with all rows, by tests whose error
probability is bounded (`sample_tests`). The oracle has runs of its own, which read the statistics and
all rows after each ANALYZE. The remote server's log contains the SQL that ANALYZE sent there.

Tested are the columns' statistics and the sample itself. ANALYZE of a foreign table must request the sample of its
method. The number of rows must fit that sample, and the estimate of all rows must fit their number. That also holds
for each foreign table of a tree, which must be asked for its whole share of the tree's sample.

Two tests compare an analysis with that of the reference, and involve no chance. A tree's sample must have rows of each
of its tables that the reference samples, unless few rows are due to it. Where both arms read all rows, ANALYZE must not
request more queries of the remote server than on the reference. Figures of the remote catalogs are of no use there,
except for a table in a tree, whose share of the tree's sample depends on them.

Each test errs with a probability of at most 1 in 10,000 (LEVEL). If a test fails, two more runs draw other samples. A
finding needs a failure in each of them. By chance, that happens in less than 1 of 10^12 tests, so in less than one of
10,000 campaigns of a hundred million tests.

If the reference fails the same test in each of its runs, the suspect is not different. For example, PostgreSQL 17
estimates a foreign table's rows only as well as the remote catalogs do. For the same reason, an estimate that equals
the remote catalogs' figure passes.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import ClassVar, Final

import numpy

from oracles.framework.canaries import query
from oracles.framework.pairwise import REPETITIONS, Pair, SampledPairwise
from oracles.framework.verdicts import lost_session
from oracles.model.case import Case, Kind, Step
from oracles.model.finding import Evidence, Finding
from oracles.model.mode import Mode
from oracles.model.observation import CaseObservation, Outcome, Run
from oracles.model.oracle import Agree, Canary, Inconclusive, More, Unstable, Verdict
from oracles.statistics.analyze import (
    ALIKE,
    Analysis,
    ForeignMember,
    Numbers,
    RequestedSample,
    TableSample,
    analysis,
    statements,
)
from oracles.statistics.sample_tests import (
    LEVEL,
    NO_DEVIATION,
    Blockwise,
    Deviation,
    Law,
    RowByRow,
    Tablewise,
    deviations,
    largest_key,
    received,
)

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
class Figure:
    """A tested figure of the analysis at a step, about a column or ("") the table."""

    step: int
    test: str
    column: str


@dataclass(frozen=True, slots=True)
class _Pair(Pair):
    def judge(self) -> tuple[Verdict, ...] | More:
        found = self._seen(self.suspect)
        expected = self._seen(self.reference)
        if found is None or expected is None:
            runs = (self.observations[_run(self.case, arm)] for arm in (self.reference, self.suspect))
            return (lost_session(*runs),)
        compared = _deviations(found, expected)
        suspected = {figure: deviation for figure, deviation in compared.items() if deviation.probability < LEVEL}
        if suspected and (missing := self.missing(self._confirming_runs())):
            return More(missing, frozenset(_symptom(figure, found) for figure in suspected))
        verdicts = {figure: self._verdict(figure, deviation, found) for figure, deviation in suspected.items()}
        alone = [self._alone(step, found) for step in sorted(found.keys() ^ expected.keys())]
        unseen = [step for step, each in found.items() if each.remote is not None and each.request is None]
        if unseen:
            sides = "remote SQL that reads the rows", "none in the log of the remote session"
            return (*verdicts.values(), *alone, Inconclusive("remote SQL not seen", min(unseen), sides))
        clean = found.keys() - {figure.step for figure in verdicts}
        agreed = (Agree(len(clean)),) if clean or not (verdicts or alone) else ()
        return (*verdicts.values(), *alone, *agreed)

    def _alone(self, step: int, found: Mapping[int, Analysis]) -> Inconclusive:
        """Return the doubt about an analysis that only one arm has."""
        sides = ("no analysis", "an analysis") if step in found else ("an analysis", "no analysis")
        return Inconclusive("only one arm analyzed the table", step, sides)

    def _verdict(
        self, figure: Figure, deviation: Deviation, found: Mapping[int, Analysis]
    ) -> Finding | Unstable | Inconclusive:
        sides = deviation.expected, deviation.actual
        if not all(self._fails(self.suspect, figure, number) for number in _REPETITIONS):
            return Unstable(f"{figure.test}: not in all samples", figure.step, sides)
        references = [self._seen(self.reference, number) or {} for number in (0, *_REPETITIONS)]
        if any(figure.step not in each for each in references):
            return Inconclusive(f"{figure.test}: {self.reference} did not analyze each time", figure.step, sides)
        if all(self._fails(self.reference, figure, number) for number in (0, *_REPETITIONS)):
            return Unstable(f"{figure.test}: {self.reference} is as far off", figure.step, sides)
        table = _tables(self.case)[figure.step]
        samples = len(_REPETITIONS) + 1
        whose = f" of {figure.column}" if figure.column else ""
        return Finding(
            oracle=Statistics.name,
            arms=(self.reference, self.suspect),
            origin=_symptom(figure, found),
            step=figure.step,
            summary=f"step {figure.step}: {figure.test}{whose} of {table}, {samples} samples: {deviation.actual}",
            expected=deviation.expected,
            actual=f"{deviation.actual} (by chance: {deviation.probability:.2g})",
            evidence=(Evidence(f"SELECT * FROM pg_stats WHERE tablename = '{table}'"), Evidence(_rows_of(table))),
        )

    def _fails(self, arm: str, figure: Figure, repetition: int) -> bool:
        found, reference = (self._seen(each, repetition) or {} for each in (arm, self.reference))
        deviations = _deviations({step: each for step, each in found.items() if step == figure.step}, reference)
        return figure in deviations and deviations[figure].probability < LEVEL

    def _confirming_runs(self) -> Iterator[Run]:
        return (_run(self.case, arm, number) for arm in (self.reference, self.suspect) for number in _REPETITIONS)

    def _seen(self, arm: str, repetition: int = 0) -> Mapping[int, Analysis] | None:
        return analyses(self.case, self.observations[_run(self.case, arm, repetition)])


class Statistics(SampledPairwise):
    """Statistics of foreign tables that are implausible for a sample of the rows."""

    name: ClassVar[str] = "statistics"
    canaries: ClassVar[tuple[Canary, ...]] = (Canary("scale_estimate", _CANARY), Canary("change_null_frac", _CANARY))
    pair = _Pair

    def own_runs(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return a run on each arm that reads statistics and rows, if the case analyzes a foreign table."""
        if not _tables(case) or not any(step.sql.startswith(_FOREIGN) for step in case.all_steps):
            return ()
        return tuple(_run(case, arm) for arm in arms)


def _symptom(figure: Figure, found: Mapping[int, Analysis]) -> str:
    return f"{figure.test}: {found[figure.step].method or 'not chosen'}"


def _tables(case: Case) -> dict[int, str]:
    """Return the tables that the case analyzes, by the position of the query that directly follows ANALYZE."""
    found: dict[int, str] = {}
    steps = case.all_steps
    for position, (step, behind) in enumerate(pairwise(steps), start=1):
        analyzed = _ANALYZE.fullmatch(step.sql)
        if analyzed and behind.kind is Kind.QUERY:
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
    """Return the analyses of one of the oracle's own runs, by step; None if the connection was lost."""
    if observed.residue is None:
        return None
    logged = iter(statements(observed))
    found: dict[int, Analysis] = {}
    for position, table in _tables(case).items():
        sql = f"ANALYZE VERBOSE {table}"
        remote = next((lines for statement, lines in logged if statement == sql), ())
        analyzed, read = observed.steps[position - 1], observed.steps[position]
        if analyzed.outcome is Outcome.OK and read.outcome is Outcome.OK:
            each = analysis(table, analyzed, read, remote)
            if each is not None:
                found[position] = each
    return found


def _deviations(found: Mapping[int, Analysis], references: Mapping[int, Analysis]) -> dict[Figure, Deviation]:
    return {
        Figure(step, test, column): deviation
        for step, each in found.items()
        for deviations in (all_deviations(each), _relative_deviations(each, references.get(step)))
        for (test, column), deviation in deviations.items()
    }


Key = tuple[str, str]  # name of a test, and name of the column ("": the table)

_OFF: Final = "off"
# The TABLESAMPLE methods that each analyze_sampling method may use if the remote relation is a table with more rows
# than needed. A sample of blocks falls back to BERNOULLI if it would have all blocks.
_FORMS: Final = MappingProxyType(
    {_OFF: (None,), "random": ("",), "bernoulli": ("BERNOULLI",), "system": ("SYSTEM", "BERNOULLI")}
)
_SURELY: Final = 1.2  # factor: above `wanted` times it a table must be sampled, below `wanted` divided by it not
_RESERVE: Final = 3.0  # of a table of an inheritance tree, so many standard deviations more rows may be requested
_SHARE: Final = (0.3, 1.5)  # limits of expected rows divided by `wanted`
_MANY: Final = 30  # rows of a tree's sample that are due to a table, enough for it to have some despite wrong figures


def law_of(found: Analysis) -> Law | None:
    """Return the probability law of the sample; None if it is unknown."""
    by_blocks = [request for request in found.requests.values() if request.tablesample == "SYSTEM"]
    kept = sum(sample.kept for sample in found.table_samples)
    if found.remote is None:
        if by_blocks or not all(sample.whole for sample in found.table_samples):
            return None
        shares = {sample.table: sample.kept for sample in found.table_samples}
        numbers = {table: number for number, table in enumerate(shares)}
        members = numpy.array([numbers.get(member, -1) for member in found.members], dtype=numpy.int64)
        return Tablewise(members, tuple(shares.values()))
    if found.request is None:
        return None
    if not by_blocks:
        return RowByRow(found.rows, kept) if kept <= found.rows else None
    if found.blocks is None:
        return None
    request = found.request
    fractions = request.tablesample_fraction, request.random_fraction
    return Blockwise(found.blocks, kept, *fractions, thinned=kept >= found.wanted)


def all_deviations(found: Analysis) -> dict[Key, Deviation]:
    """Return the result of each applicable test of an analysis by itself."""
    results: dict[Key, Deviation] = {}
    if found.remote is not None and found.request is not None:
        results["remote SQL", ""] = _request_deviation(found, found.request)
        results["rows sampled", ""] = _size_deviation(found, found.request)
        results["row estimate", ""] = _estimate_deviation(found, found.request)
    results |= _foreign_deviations(found)
    law = law_of(found)
    if law is not None:
        total = sum(sample.total for sample in found.table_samples)
        results |= {
            (test, each.name): deviation for each in found.columns for test, deviation in deviations(each, law, total)
        }
    return results


def _relative_deviations(found: Analysis, reference: Analysis | None) -> dict[Key, Deviation]:
    """Return the result of each applicable comparison with the analysis of the reference."""
    if reference is None:
        return {}
    if found.remote is None:
        return {("tables sampled", ""): _tables_deviation(found, reference)}
    both_read_all = found.method == _OFF and reference.request is not None and reference.request.everything
    if not both_read_all or found.in_tree:
        return {}
    return {("remote queries", ""): _queries_deviation(found, reference)}


def _tables_deviation(found: Analysis, reference: Analysis) -> Deviation:
    """Test whether a tree's sample has rows of each table of which the reference's has some, and many are due."""
    ours, theirs = ({sample.table for sample in each.table_samples} for each in (reference, found))
    due = {table: found.wanted * rows / found.rows for table, rows in Counter(found.members).items()}
    missing = sorted(table for table in ours - theirs if due.get(table, 0) >= _MANY)
    if not missing:
        return NO_DEVIATION
    return Deviation(0.0, f"rows of {', '.join(missing)} in the sample", f"of {', '.join(sorted(theirs))} only")


def _queries_deviation(found: Analysis, reference: Analysis) -> Deviation:
    """Test the number of queries to the remote server, where both arms read all rows."""
    if len(found.queries) <= len(reference.queries):
        return NO_DEVIATION
    ours, theirs = ("; ".join(each.queries) for each in (reference, found))
    return Deviation(0.0, f"{len(reference.queries)} remote queries: {ours}", f"{len(found.queries)}: {theirs}")


def _request_deviation(found: Analysis, request: RequestedSample) -> Deviation:
    """Test the requested sample: its method and expected number of rows, if the remote catalogs were correct."""
    if found.method is None:
        return NO_DEVIATION
    few = found.rows * _SURELY <= found.wanted
    if found.method == _OFF or (found.current and few):
        whole = request.everything or (found.method != _OFF and request.limit >= max(found.rows, 1))
        return NO_DEVIATION if whole else Deviation(0.0, f"everything, by {found.method}", str(request))
    # In a tree, a table is read as a whole if it is expected to have no more rows than are requested of larger ones.
    most = found.wanted + (_RESERVE * math.sqrt(found.wanted) if found.in_tree else 0)
    if not found.current or found.rows < max(_SURELY * found.wanted, most / (1 - ALIKE)):
        return NO_DEVIATION
    forms = _FORMS.get(found.method)
    expected = found.rows * min(request.fraction, 1.0)
    if forms is not None and (request.everything or request.tablesample not in forms):
        return Deviation(0.0, f"a sample, by {found.method}", str(request))
    if request.limit or _SHARE[0] <= expected / found.wanted <= _SHARE[1]:
        return NO_DEVIATION
    return Deviation(
        0.0, f"{found.wanted} of {found.rows} rows, or somewhat less", f"{request}, so {expected:.6g} rows"
    )


def _size_deviation(found: Analysis, request: RequestedSample) -> Deviation:
    """Test the number of rows kept: all that were received, up to `wanted`."""
    kept = found.table_samples[0].kept
    if request.everything or request.limit:
        expected = min(found.rows, found.wanted)
        return NO_DEVIATION if kept == expected else Deviation(0.0, f"{expected} rows in the sample", f"{kept}")
    chance = 1.0
    if kept < found.wanted or found.rows * request.fraction < found.wanted:  # otherwise more may have been received
        chance = received(request, found.rows, found.blocks, kept)
    return Deviation(chance, f"about {found.rows * request.fraction:.6g} rows in the sample, by {request}", f"{kept}")


def _estimate_deviation(found: Analysis, request: RequestedSample) -> Deviation:
    """Test the estimates of all rows: the one that ANALYZE derives from the sample, and the stored one."""
    sample = found.table_samples[0]
    actual = f"{sample.total:.6g}, stored {found.estimate:.6g}"
    results = Deviation(0.0, f"an estimate of {found.rows} rows, by {request}", actual)
    if abs(found.estimate - sample.total) > 1 + sample.total * 1e-6:
        return results
    if sample.total == found.rows or abs(sample.total - found.quoted) <= 1:
        return NO_DEVIATION
    return Deviation(_chance(request, sample.total, found.rows, found.blocks), results.expected, results.actual)


def _chance(request: RequestedSample, total: float, rows: int, blocks: Numbers | None) -> float:
    """Return a bound on the probability of an estimate that is as far from the number of rows."""
    if request.everything or total <= 0:
        # an estimate of 0 means that no row was received
        return 0.0 if request.everything else received(request, rows, blocks, 0)
    if request.limit:
        return largest_key(request.limit, rows, total) if request.limit <= rows else 0.0
    return received(request, rows, blocks, round(total * min(request.fraction, 1.0)))


def _foreign_deviations(found: Analysis) -> Iterator[tuple[Key, Deviation]]:
    """Yield the result of each test of a foreign table of a tree."""
    rows = Counter(found.members)
    for sample in found.table_samples:
        member = found.foreign.get(sample.table)
        request = found.requests.get(member.remote) if member else None
        if member and request:
            yield (
                ("row estimate", sample.table),
                _member_estimate_deviation(sample, member, request, rows[sample.table]),
            )
            yield ("rows requested", sample.table), _share_deviation(found, sample, member, request)


def _member_estimate_deviation(
    sample: TableSample, member: ForeignMember, request: RequestedSample, rows: int
) -> Deviation:
    """Test the estimate of all rows of a foreign table of a tree. The blocks of its rows are unknown."""
    if sample.total == rows or abs(sample.total - member.quoted) <= 1:
        return NO_DEVIATION
    chance = _chance(request, sample.total, rows, None)
    return Deviation(chance, f"an estimate of {rows} rows, by {request}", f"{sample.total:.6g}")


def _share_deviation(
    found: Analysis, sample: TableSample, member: ForeignMember, request: RequestedSample
) -> Deviation:
    """Test whether a foreign table of a tree is asked for its share of the tree's sample, or all of its rows.

    The other tables must be local, and have more rows than their shares, which are then known. Each share is rounded.
    If the request depends on the number of rows, the remote catalogs must have it. A count of rows in some blocks
    replaces that number.
    """
    rows = Counter(found.members)
    others = [each for each in found.table_samples if each is not sample]
    if not all(each.whole and each.table not in found.foreign and each.kept < rows[each.table] for each in others):
        return NO_DEVIATION
    counted = any(sql.startswith("SELECT") and " TABLESAMPLE " in sql for sql in found.queries)
    if request.everything or (not request.limit and (counted or not member.current)):
        return NO_DEVIATION
    share = found.wanted - sum(each.kept for each in others) - len(found.table_samples) // 2
    due = min(share, rows[sample.table])
    requested = request.limit or rows[sample.table] * min(request.fraction, 1.0)
    if requested >= due * (1 - 2 * ALIKE):
        return NO_DEVIATION
    return Deviation(0.0, f"at least {due} rows requested", f"{request}, so {requested:.6g} rows")

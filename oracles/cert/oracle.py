"""CERT, cardinality estimation restriction testing: fewer rows are not expected to be more.

Ba and Rigger, "CERT: Finding Performance Issues in Database Systems Through the Lens of Cardinality Estimation", ICSE
2024. A query and a more restrictive one are planned in one statement, and so by the same statistics; what the planner
expects of the second must not exceed what it expects of the first, or one row, the least that it ever expects. Nothing
is said where the plan shows more than scans and one inner join, of views (the bounds in them are weighed together with
the query's where these stand alone, but not within OR), or where there are extended statistics, which know combinations
of columns better than single ones, or where a condition names no column: it is asked once, and taken to hold where it
stands alone, but not within OR.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from oracles.cert.restrictions import Restriction, restrictions
from oracles.framework.canaries import query
from oracles.framework.metamorphic import blamed
from oracles.framework.relations import PLAINLY, Played
from oracles.model.case import Case, Step
from oracles.model.finding import Evidence, Finding
from oracles.model.mode import Mode, Protocol
from oracles.model.observation import Outcome, Run
from oracles.model.oracle import Agree, Canary, More, NotApplicable, Observations, Oracle, Unstable, Verdict, accused
from oracles.model.sampling import Sample
from oracles.sql.case_views import made_by, used_by

# Joins of partitions by themselves are expected to return another number of rows than the join of the wholes, and which
# of both is told depends on costs; workers' shares are rounded.
_SETTINGS: Final = (
    ("enable_partitionwise_join", "off"),
    ("enable_partitionwise_aggregate", "off"),
    ("max_parallel_workers_per_gather", "0"),
)
_PLANNED: Final = Mode("estimated plainly", _SETTINGS, Protocol.SIMPLE)
ESTIMATED: Final = Sample("estimated", 32)  # planned once or twice, not executed
_KNOWN: Final = "SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_statistic_ext)"  # no row where more is known
_SCANS: Final = frozenset(
    {"Bitmap Heap Scan", "Index Only Scan", "Index Scan", "Seq Scan", "Tid Range Scan", "Tid Scan"}
)
_JOINS: Final = frozenset({"Hash Join", "Merge Join", "Nested Loop"})
_HELPERS: Final = frozenset(
    {
        *("Append", "Bitmap Index Scan", "BitmapAnd", "BitmapOr", "Hash", "Materialize", "Memoize", "Merge Append"),
        *("Result", "Sort", "Incremental Sort"),
    }
)
_TABLE: Final = Step("CREATE TABLE canary AS SELECT n FROM generate_series(1, 4) AS n")  # of a view nothing is said
_DISTINCT: Final = frozenset({"Aggregate", "Limit", "Unique"})  # on top of what returns rows


@dataclass(frozen=True, slots=True)
class _Arm:
    """What an arm expects of a case's queries and of restrictions of them."""

    played: Played

    def asked(self) -> dict[int, tuple[Restriction, ...]]:
        """Return pairs of queries by position."""
        steps = self.played.case.all_steps
        within = made_by(steps)
        return {
            position: pairs
            for position, sql in self.played.queries().items()
            if not steps[position].params and within.isdisjoint(used_by(sql)) and (pairs := restrictions(sql))
        }

    def missing(self) -> list[Run]:
        """Return the runs that it takes to go on."""
        if not (asked := self.asked()):
            return []
        runs = [self._guard(asked), self._run(asked)]
        if all(run in self.played.observations for run in runs) and any(self._broken(asked)):
            runs.append(self._run(asked, repetition=1))
        return [run for run in runs if run not in self.played.observations]

    def _guard(self, asked: Mapping[int, Any]) -> Run:
        return self.played.run(self.played.way(dict.fromkeys(asked, _KNOWN), PLAINLY))

    def _run(self, asked: Mapping[int, tuple[Restriction, ...]], repetition: int = 0) -> Run:
        instead = tuple((position, _together(pairs)) for position, pairs in asked.items())
        modes = (*self.played.case.modes, _PLANNED)
        return Run(self.played.arm, modes, plannings=1, instead=instead, repetition=repetition)

    def verdicts(self) -> Iterator[Verdict]:
        """Yield what is to be said; needs all runs."""
        if not (asked := self.asked()):
            yield NotApplicable()
            return
        broken = self._broken(asked)
        repeated = self._broken(asked, repetition=1) if any(broken) else ()
        again = {(position, pair) for position, pair, _, _ in repeated}
        for position, pair, wide, narrow in self._broken(asked):
            if (position, pair) in again:
                yield self._finding(position, pair, wide, narrow)
            else:
                yield Unstable(f"{pair.name}: not in each run")
        yield Agree(len({position for position, *_ in self._estimates(asked)}))

    def _broken(
        self, asked: Mapping[int, tuple[Restriction, ...]], repetition: int = 0
    ) -> Iterator[tuple[int, Restriction, int, int]]:
        return (each for each in self._estimates(asked, repetition) if each[3] > max(1, each[2]))

    def _estimates(
        self, asked: Mapping[int, tuple[Restriction, ...]], repetition: int = 0
    ) -> Iterator[tuple[int, Restriction, int, int]]:
        """Yield position, pair and both numbers of rows, where they may be compared."""
        guard = self.played.observations[self._guard(asked)].steps
        seen = self.played.observations[self._run(asked, repetition)].steps
        for position, pairs in asked.items():
            free = guard[position].outcome is Outcome.OK and guard[position].rows
            plan = seen[position].plan
            if not free or plan is None or "Plan" not in plan:
                continue
            planned = {node["Subplan Name"]: node for node in plan["Plan"].get("Plans", ()) if "Subplan Name" in node}
            for number, pair in enumerate(pairs):
                wide, narrow = (planned.get(f"CTE {side}{number}") for side in "wn")
                if wide and narrow and wide["Plan Rows"] and is_simple(wide) and is_simple(narrow):
                    yield position, pair, wide["Plan Rows"], narrow["Plan Rows"]

    def _finding(self, position: int, pair: Restriction, wide: int, narrow: int) -> Finding:
        return Finding(
            oracle=Cert.name,
            arms=(self.played.arm, self.played.arm),
            origin=f"more rows expected: {pair.name}",
            step=position,
            summary=f"step {position}: {narrow} rows are expected, {wide} without the restriction: {pair.name}",
            expected=f"at most {max(1, wide)} rows, as many as of\nquery: {pair.wide}",
            actual=f"{narrow} rows\nquery: {pair.narrow}",
            beside=tuple(Evidence(sql, _SETTINGS, planned=True, plainly=True) for sql in (pair.wide, pair.narrow)),
        )


def _together(pairs: Sequence[Restriction]) -> str:
    """Return one statement that plans all queries, each by itself."""
    sides = {f"{side}{number}": sql for number, pair in enumerate(pairs) for side, sql in _sides(pair)}
    made = ", ".join(f"{name} AS MATERIALIZED ({sql})" for name, sql in sides.items())
    return f"WITH {made} " + " UNION ALL ".join(f"SELECT count(*) FROM {name}" for name in sides)


def _sides(pair: Restriction) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("w", pair.wide), ("n", pair.narrow)


def is_simple(node: Mapping[str, Any]) -> bool:
    """Tell whether a plan is of scans and of one inner join at most, below what makes rows distinct."""
    while node["Node Type"] in _DISTINCT and len(node.get("Plans", ())) == 1:
        node = node["Plans"][0]
    nodes = list(_nodes(node))
    joins = [each for each in nodes if each["Node Type"] in _JOINS]
    known = all(each["Node Type"] in _SCANS | _JOINS | _HELPERS for each in nodes)
    inner = all(each.get("Join Type") == "Inner" for each in joins)
    gated = any("One-Time Filter" in each for each in nodes)
    return known and inner and not gated and len(joins) < 2 and not any("Subplan Name" in each for each in nodes[1:])


def _nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


class Cert(Oracle):
    """What restricts a query does not raise the number of rows that it is expected to return."""

    name: ClassVar[str] = "cert"
    needs_another_arm: ClassVar[bool] = False
    samples: ClassVar[tuple[Sample, ...]] = (ESTIMATED,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary(
            "want_all",
            Case("canary", (_TABLE,), (query("SELECT n FROM canary WHERE n < 3"),), samples=(ESTIMATED.name,)),
        ),
    )

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...] | More:
        """Return a finding for each kind of restriction that raises an estimate; ask for the plans that tell."""
        if case not in (ESTIMATED if len(arms) > 1 else ESTIMATED.alone):
            return (NotApplicable(),) * len(accused(arms))
        judges = [_Arm(Played(case, arm, observations)) for arm in arms]
        if missing := [run for judge in judges for run in judge.missing()]:
            return More(tuple(dict.fromkeys(missing)))
        broken: dict[str, dict[str, Finding]] = defaultdict(dict)
        others: list[Verdict] = []
        for judge in judges:
            for verdict in judge.verdicts():
                if isinstance(verdict, Finding):
                    broken[verdict.origin].setdefault(judge.played.arm, verdict)
                elif judge.played.arm in accused(arms):
                    others.append(verdict)
        return (*blamed(arms, broken), *others)

"""CERT, cardinality estimation restriction testing: a more restrictive query must not have a higher row estimate.

Ba and Rigger, "CERT: Finding Performance Issues in Database Systems Through the Lens of Cardinality Estimation", ICSE
2024. A query and a more restrictive one are planned in one statement, and so with the same statistics. The estimate
of the second must not exceed that of the first, or one row, which is the planner's minimum.

Nothing is compared in these cases:

- The plan contains more than scans and one inner join.
- A partitioned table is joined. Until release 17, the planner takes its number of distinct values from the estimated
  rows (`set_append_rel_size`) and rounds it, so fewer rows may match more often.
- The query reads views. The planner combines their bounds with top-level conditions of the query, but not within OR.
- There are extended statistics, which estimate combinations of columns better than single columns.
- The planner fails. That is a finding if no part of the queries can raise the error, else inconclusive. If it finds no
  operator, the pair with DISTINCT, which the types of some columns do not have, is left out.
- A condition names no column. It becomes a one-time filter, which is estimated as true at the top level, but not
  within OR.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from oracles.cert.restrictions import DISTINCT, Restriction, restrictions
from oracles.explain.nodes import Node, nodes_of
from oracles.framework.canaries import query
from oracles.framework.difference_text import ended
from oracles.framework.metamorphic import verdicts_of_arms
from oracles.framework.relations import SIMPLE_PROTOCOL, ArmRuns
from oracles.model.case import Case, Step
from oracles.model.finding import Evidence, Finding
from oracles.model.mode import Mode, Protocol
from oracles.model.observation import Message, Observation, Outcome, Run
from oracles.model.oracle import (
    Agree,
    Canary,
    Inconclusive,
    More,
    NotApplicable,
    Observations,
    Oracle,
    Sample,
    Unstable,
    Verdict,
    judged_arms,
)
from oracles.model.sqlstate import UNDEFINED_FUNCTION
from oracles.sql.building import identifier
from oracles.sql.case_views import created_names, used_names
from oracles.sql.infallible import impossible_error, origin_of, raised

# Partitionwise joins have other estimates than joins of whole tables, and costs decide which of both is in the plan;
# workers' shares are rounded.
_SETTINGS: Final = (
    ("enable_partitionwise_join", "off"),
    ("enable_partitionwise_aggregate", "off"),
    ("max_parallel_workers_per_gather", "0"),
)
_PLANNED: Final = Mode("simple plans", _SETTINGS, Protocol.SIMPLE)
ESTIMATED: Final = Sample("estimated", 32)  # planned once or twice, not executed
_KNOWN: Final = "SELECT 1 WHERE NOT EXISTS (SELECT FROM pg_statistic_ext)"  # no row if there are extended statistics
_SCANS: Final = frozenset(
    {"Bitmap Heap Scan", "Index Only Scan", "Index Scan", "Seq Scan", "Tid Range Scan", "Tid Scan"}
)
_JOINS: Final = frozenset({"Hash Join", "Merge Join", "Nested Loop"})
_APPENDS: Final = frozenset({"Append", "Merge Append"})
_HELPERS: Final = _APPENDS | {
    *("Bitmap Index Scan", "BitmapAnd", "BitmapOr", "Hash", "Materialize", "Memoize", "Result", "Sort"),
    "Incremental Sort",
}
_TABLE: Final = Step("CREATE TABLE canary AS SELECT n FROM generate_series(1, 4) AS n")  # views are not compared
_WIDE, _NARROW = "pgduel_wide", "pgduel_narrow"  # begin the names of subplans, which must not hide tables of the case
_ABOVE: Final = frozenset({"Aggregate", "Limit", "Unique"})  # node types on top of the scans and the join


@dataclass(frozen=True, slots=True)
class _Arm:
    """An arm's estimates for a case's queries and for restrictions of them."""

    runs: ArmRuns

    def pairs(self) -> dict[int, tuple[Restriction, ...]]:
        """Return the pairs of queries by position, without those that a first run could not plan."""
        pairs_at = self._all_pairs()
        first = self.runs.observations.get(self._run(pairs_at))
        if first is None:
            return pairs_at
        failed = (at for at in pairs_at if first.steps[at].sqlstate == UNDEFINED_FUNCTION)
        fewer = {at: tuple(pair for pair in pairs_at[at] if pair.name != DISTINCT) for at in failed}
        return {at: pairs for at, pairs in (pairs_at | fewer).items() if pairs}

    def _all_pairs(self) -> dict[int, tuple[Restriction, ...]]:
        steps = self.runs.case.all_steps
        created = created_names(steps)
        return {
            position: pairs
            for position, sql in self.runs.queries().items()
            if not steps[position].params and created.isdisjoint(used_names(sql)) and (pairs := restrictions(sql))
        }

    def missing(self) -> list[Run]:
        """Return the next runs that a verdict needs."""
        if not (pairs_at := self.pairs()):
            return []
        runs = [self._guard(pairs_at), self._run(pairs_at)]
        if all(run in self.runs.observations for run in runs) and self._is_doubtful(pairs_at):
            runs.append(self._run(pairs_at, repetition=1))
            runs += self._contents(pairs_at)
        return [run for run in runs if run not in self.runs.observations]

    def _is_doubtful(self, pairs_at: Mapping[int, tuple[Restriction, ...]]) -> bool:
        impossible = (error for _, _, error in self._errors(pairs_at))
        return any(self._broken(pairs_at)) or any(impossible)

    def _guard(self, pairs_at: Mapping[int, Any]) -> Run:
        return self.runs.run(self.runs.variant(dict.fromkeys(pairs_at, _KNOWN), SIMPLE_PROTOCOL))

    def _contents(self, pairs_at: Mapping[int, tuple[Restriction, ...]]) -> list[Run]:
        """Return the run that looks for rows in partitions which only restricted queries scan, if there are any.

        A weaker condition may be easier to refute, so it may exclude an empty partition that a stronger one does not.
        """
        names: dict[int, set[str]] = {}
        for position, _, wide, narrow in self._broken(pairs_at):
            names.setdefault(position, set()).update(scanned(narrow) - scanned(wide))
        queries = {position: _any_row(sorted(tables)) for position, tables in names.items() if tables}
        return [self.runs.run(self.runs.variant(queries, SIMPLE_PROTOCOL))] if queries else []

    def _filled(self, pairs_at: Mapping[int, tuple[Restriction, ...]], position: int) -> bool:
        """Return whether a partition that only a restricted query scans has rows."""
        return any(self.runs.observations[run].steps[position].rows for run in self._contents(pairs_at))

    def _run(self, pairs_at: Mapping[int, tuple[Restriction, ...]], repetition: int = 0) -> Run:
        instead = tuple((position, _together(pairs)) for position, pairs in pairs_at.items())
        modes = (*self.runs.case.modes, _PLANNED)
        return Run(self.runs.arm, modes, plannings=1, instead=instead, repetition=repetition)

    def verdicts(self) -> Iterator[Verdict]:
        """Yield the verdicts. Needs all runs."""
        if not (pairs_at := self.pairs()):
            yield NotApplicable()
            return
        doubtful = self._is_doubtful(pairs_at)
        repeated = self._broken(pairs_at, repetition=1) if doubtful else ()
        again = {(position, pair) for position, pair, _, _ in repeated}
        for position, pair, wide, narrow in self._broken(pairs_at):
            rows = (wide["Plan Rows"], narrow["Plan Rows"])
            sides = (f"at most {_most(wide)} rows", f"{rows[1]} rows")
            if not scanned(narrow) <= scanned(wide) and not self._filled(pairs_at, position):
                yield Inconclusive(f"{pair.name}: with it, more empty partitions are scanned", position, sides)
            elif (position, pair) in again:
                yield self._finding(position, pair, *rows)
            else:
                yield Unstable(f"{pair.name}: not in each run", position, sides)
        same = {(position, raised(seen)) for position, seen, _ in (self._errors(pairs_at, 1) if doubtful else ())}
        for position, seen, error in self._errors(pairs_at):
            yield self._error_verdict(position, pairs_at[position], seen, error, again=(position, raised(seen)) in same)
        yield from self._cut(pairs_at)
        yield Agree(len({position for position, *_ in self._estimates(pairs_at)}))

    def _cut(self, pairs_at: Mapping[int, tuple[Restriction, ...]]) -> Iterator[Inconclusive]:
        """Yield the positions at which queries were not planned, or their guard not executed, to the end."""
        guard, seen = (self.runs.observations[run] for run in (self._guard(pairs_at), self._run(pairs_at)))
        for position in pairs_at:
            for each in (guard.steps[position], seen.steps[position]):
                if not each.has_ended:
                    yield Inconclusive("queries are not planned to the end", position, ("a plan", ended(each)))
                    break

    def _broken(
        self, pairs_at: Mapping[int, tuple[Restriction, ...]], repetition: int = 0
    ) -> Iterator[tuple[int, Restriction, Node, Node]]:
        """Yield those of `_estimates` with more rows in the restricted query."""
        for position, pair, wide, narrow in self._estimates(pairs_at, repetition):
            if narrow["Plan Rows"] > _most(wide):
                yield position, pair, wide, narrow

    def _estimates(
        self, pairs_at: Mapping[int, tuple[Restriction, ...]], repetition: int = 0
    ) -> Iterator[tuple[int, Restriction, Node, Node]]:
        """Yield position, pair and both plans (wide, narrow) of each comparable pair."""
        guard = self.runs.observations[self._guard(pairs_at)].steps
        seen = self.runs.observations[self._run(pairs_at, repetition)].steps
        for position, pairs in pairs_at.items():
            free = guard[position].outcome is Outcome.OK and guard[position].rows
            plan = seen[position].plan
            if not free or plan is None or "Plan" not in plan:
                continue
            planned = {node["Subplan Name"]: node for node in plan["Plan"].get("Plans", ()) if "Subplan Name" in node}
            for number, pair in enumerate(pairs):
                wide, narrow = (planned.get(f"CTE {side}{number}") for side in (_WIDE, _NARROW))
                if wide and narrow and wide["Plan Rows"] and is_simple(wide) and is_simple(narrow):
                    yield position, pair, wide, narrow

    def _errors(
        self, pairs_at: Mapping[int, tuple[Restriction, ...]], repetition: int = 0
    ) -> Iterator[tuple[int, Observation, Message | None]]:
        """Yield the positions at which the planner failed; with the error if no part of the queries can raise it."""
        seen = self.runs.observations[self._run(pairs_at, repetition)].steps
        for position, pairs in pairs_at.items():
            if seen[position].outcome is Outcome.ERROR:
                error = impossible_error(self.runs.case.all_steps, _together(pairs), seen[position])
                yield position, seen[position], error

    def _error_verdict(
        self, position: int, pairs: Sequence[Restriction], seen: Observation, error: Message | None, *, again: bool
    ) -> Verdict:
        sides = ("a plan", raised(seen))
        if error is None:
            return Inconclusive("queries are not planned", position, sides)
        if not again:
            return Unstable("an error that occurred once", position, sides)
        return Finding(
            oracle=Cert.name,
            arms=(self.runs.arm, self.runs.arm),
            origin=origin_of(error),
            step=position,
            summary=f"step {position}: planning queries that cannot fail ends in an error of SQLSTATE {error.sqlstate}",
            expected="a plan",
            actual=f"{raised(seen)}\nquery: {_together(pairs)}",
            evidence=(Evidence(_together(pairs), _SETTINGS, planned=True, simple_protocol=True),),
        )

    def _finding(self, position: int, pair: Restriction, wide: int, narrow: int) -> Finding:
        return Finding(
            oracle=Cert.name,
            arms=(self.runs.arm, self.runs.arm),
            origin=f"more rows expected: {pair.name}",
            step=position,
            summary=f"step {position}: {narrow} rows are expected, {wide} without the restriction: {pair.name}",
            expected=f"at most {max(1, wide)} rows, as for\nquery: {pair.wide}",
            actual=f"{narrow} rows\nquery: {pair.narrow}",
            evidence=tuple(
                Evidence(sql, _SETTINGS, planned=True, simple_protocol=True) for sql in (pair.wide, pair.narrow)
            ),
        )


def _together(pairs: Sequence[Restriction]) -> str:
    """Return one statement with a separate subplan for each query."""
    sides = {f"{side}{number}": sql for number, pair in enumerate(pairs) for side, sql in _sides(pair)}
    made = ", ".join(f"{name} AS MATERIALIZED ({sql})" for name, sql in sides.items())
    return f"WITH {made} " + " UNION ALL ".join(f"SELECT count(*) FROM {name}" for name in sides)


def _sides(pair: Restriction) -> tuple[tuple[str, str], tuple[str, str]]:
    return (_WIDE, pair.wide), (_NARROW, pair.narrow)


def _most(wide: Node) -> int:
    """Return the expected rows of an unrestricted query, but at least the 1 of any scan."""
    return max(1, int(wide["Plan Rows"]))


def scanned(node: Node) -> frozenset[str]:
    """Return the names of the tables and partitions that a plan scans."""
    return frozenset(each["Relation Name"] for each in nodes_of(node) if "Relation Name" in each)


def _any_row(tables: Sequence[str]) -> str:
    """Return a query that has a row if one of the tables has any."""
    return " UNION ALL ".join(f"(SELECT 1 FROM ONLY {identifier(name)} LIMIT 1)" for name in tables)


def is_simple(node: Node) -> bool:
    """Return whether a plan consists of scans of one table, or of an inner join of two that are not partitioned.

    Nodes that make rows distinct may be above.
    """
    while node["Node Type"] in _ABOVE and len(node.get("Plans", ())) == 1:
        node = node["Plans"][0]
    nodes = list(nodes_of(node))
    joins = [each for each in nodes if each["Node Type"] in _JOINS]
    known = all(each["Node Type"] in _SCANS | _JOINS | _HELPERS for each in nodes)
    inner = all(each.get("Join Type") == "Inner" for each in joins)
    gated = any("One-Time Filter" in each for each in nodes)
    most = 0 if any(each["Node Type"] in _APPENDS for each in nodes) else 1
    return (
        known and inner and not gated and len(joins) <= most and not any("Subplan Name" in each for each in nodes[1:])
    )


class Cert(Oracle):
    """Row estimates that rise when a query is restricted."""

    name: ClassVar[str] = "cert"
    needs_another_arm: ClassVar[bool] = False
    samples: ClassVar[tuple[Sample, ...]] = (ESTIMATED,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary(
            "estimate_all_rows",
            Case("canary", (_TABLE,), (query("SELECT n FROM canary WHERE n < 3"),), samples=(ESTIMATED.name,)),
        ),
    )

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...] | More:
        """Return a finding for each kind of restriction that raises an estimate, or a request for planned runs."""
        if case not in (ESTIMATED if len(arms) > 1 else ESTIMATED.alone):
            return (NotApplicable(),) * len(judged_arms(arms))
        judges = [_Arm(ArmRuns(case, arm, observations)) for arm in arms]
        if missing := [run for judge in judges for run in judge.missing()]:
            return More(tuple(dict.fromkeys(missing)))
        return verdicts_of_arms(arms, ((judge.runs.arm, each) for judge in judges for each in judge.verdicts()))

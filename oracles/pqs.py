"""PQS, pivoted query synthesis: a query must return a row that meets its conditions.

Rigger and Su, "Testing Database Engines via Pivoted Query Synthesis", OSDI 2020. There are three queries:

1. The pivot rows: one row of each table of the query, read without an index or a join.
2. The truth values of the conditions in WHERE for these rows, given as constants instead of tables.
3. The query with each false or unknown condition turned into a true one. It must return the pivot rows.

In the paper, an interpreter evaluates the conditions. Here, the server does. So the oracle finds rows that access
paths, joins and pruning lose, but no operator that is wrong everywhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final

from pglast import ast
from pglast.enums import JoinType

from oracles.framework.canaries import canary_case, query
from oracles.framework.difference_text import texts_of
from oracles.framework.metamorphic import Metamorphic
from oracles.framework.relations import SIMPLE_PROTOCOL, ArmRuns, MetamorphicRelation, QueryVariant
from oracles.model.observation import Outcome
from oracles.model.oracle import Canary, Sample
from oracles.sql.building import conjuncts, identifier, snippet, sql_of, text_of
from oracles.sql.core import core
from oracles.sql.determinism import is_deterministic

CACHED: Final = 4096  # statements
_AS_ROW: Final = {"t": "({})", "f": "NOT ({})", "NULL": "({}) IS NULL"}  # truth value -> true form of the condition


@dataclass(frozen=True, slots=True)
class Pivots:
    """The tables of a query, their join conditions, and the conditions of WHERE."""

    tables: tuple[tuple[str, str], ...]  # name as SQL, alias
    joins: tuple[str, ...]  # the join condition of each table but the first; "" for none
    source: str  # the query's FROM
    conditions: tuple[str, ...]

    @property
    def filtered(self) -> str:
        """Return the query for the rows that meet WHERE."""
        return f"SELECT FROM {self.source} WHERE {' AND '.join(f'({each})' for each in self.conditions)}"

    def pick(self) -> str:
        """Return the query for one row of each table, as literals; rows that meet the join conditions are preferred.

        The conditions are in ORDER BY, which the planner cannot turn into a join. The query returns no row if a
        table's row does not equal its printed form.
        """
        items = [self._item(*table, condition) for table, condition in zip(self.tables, ("", *self.joins), strict=True)]
        conditions = [f"({alias}.*)::text::{table} *= ({alias}.*)" for table, alias in self.tables]
        conditions += [f"({join}) IS TRUE" for join in self.joins if join]
        rows = ", ".join(f"quote_literal(({alias}.*)::text)" for _, alias in self.tables)
        return f"SELECT {rows} FROM {', LATERAL '.join(items)} WHERE {' AND '.join(conditions)}"

    def _item(self, table: str, alias: str, condition: str) -> str:
        first = f"({condition}) IS TRUE DESC, " if condition else ""
        order = f"{first}hashtextextended(({alias}.*)::text, 0), ({alias}.*)::text"
        return f"(SELECT * FROM {table} AS {alias} ORDER BY {order} LIMIT 1) AS {alias}"

    def truths(self, rows: Sequence[str]) -> str:
        """Return the query for the truth value of each condition for these rows."""
        constants = ", ".join(
            f"(SELECT ({row}::{table}).*) AS {alias}" for row, (table, alias) in zip(rows, self.tables, strict=True)
        )
        # A literal such as 'yes' has no type by itself.
        values = ", ".join(f"({condition})::bool" for condition in self.conditions)
        return f"SELECT {values} FROM {constants}"

    def rectified(self, rows: Sequence[str], truths: Sequence[str]) -> str:
        """Return the query with true conditions, which must return these rows in the form of `pick`."""
        true = [_AS_ROW[truth].format(each) for truth, each in zip(truths, self.conditions, strict=True)]
        shown = ", ".join(f"({alias}.*)::text AS p{number}" for number, (_, alias) in enumerate(self.tables))
        there = " AND ".join(f"p{number} = {row}" for number, row in enumerate(rows))
        picked = ", ".join(f"quote_literal(p{number})" for number, _ in enumerate(rows))
        inner = f"SELECT {shown} FROM {self.source} WHERE {' AND '.join(true)} OFFSET 0"
        return f"SELECT DISTINCT {picked} FROM ({inner}) AS q WHERE {there}"


@lru_cache(CACHED)
def pivots(sql: str) -> Pivots | None:
    """Return the pivots of a query; None unless it reads only tables, joined from left to right."""
    select = core(sql)
    if select is None or select.withClause is not None or select.whereClause is None or len(select.fromClause) != 1:
        return None
    chain = _chain(select.fromClause[0])
    source = sql_of(select.fromClause[0])
    conditions = tuple(map(text_of, conjuncts(select.whereClause)))
    if not chain or not all(conditions) or snippet(f"SELECT FROM {source}").fromClause != select.fromClause:
        return None
    select.targetList = None
    for name in ("groupClause", "havingClause", "distinctClause", "windowClause"):
        setattr(select, name, None)
    if not is_deterministic(select):
        return None
    tables, joins = zip(*chain, strict=True)
    return Pivots(tables, joins[1:], source, conditions)


def _chain(item: Any) -> list[tuple[tuple[str, str], str]]:
    """Return each table with its alias and its join condition; an empty list if there is anything else."""
    if isinstance(item, ast.RangeVar) and not (item.alias and item.alias.colnames):
        alias = item.alias.aliasname if item.alias else item.relname
        table = ".".join(identifier(name) for name in (item.schemaname, item.relname) if name)
        return [((table, identifier(alias or "")), "")] if item.inh else []
    if not isinstance(item, ast.JoinExpr) or item.alias or item.usingClause or item.isNatural:
        return []
    left, right = _chain(item.larg), _chain(item.rarg)
    condition = text_of(item.quals) if item.quals is not None else "true"
    known = item.jointype in (JoinType.JOIN_INNER, JoinType.JOIN_LEFT, JoinType.JOIN_RIGHT, JoinType.JOIN_FULL)
    if not (left and len(right) == 1 and condition and known):
        return []
    return [*left, (right[0][0], condition)]


PIVOTED: Final = Sample("pivoted", 32)


class Pqs(Metamorphic):
    """Rows that meet a query's conditions, but are not among its result."""

    name: ClassVar[str] = "pqs"
    samples: ClassVar[tuple[Sample, ...]] = (PIVOTED,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary(
            "misread_constant", canary_case(query("SELECT n FROM canary WHERE n * 10 % 10 = 0"), samples=(PIVOTED,))
        ),
    )

    def relations(self, arm_runs: ArmRuns) -> Iterator[MetamorphicRelation]:
        """Yield the relation between the pivot rows and the query that must return them."""
        plain = {step: sql for step, sql in arm_runs.queries().items() if not arm_runs.case.all_steps[step].params}
        found = {step: each for step, sql in plain.items() if (each := pivots(sql)) is not None}
        made = arm_runs.with_exact_results(found, lambda each: each.filtered)
        picking = arm_runs.variant({step: each.pick() for step, each in made.items()}, SIMPLE_PROTOCOL)
        if made:
            yield from arm_runs.failed("the query for pivot rows fails", picking, made)
        rows = _single_rows(arm_runs, picking, made)
        check = arm_runs.variant({step: made[step].truths(row) for step, row in rows.items()}, SIMPLE_PROTOCOL)
        if rows:
            yield from arm_runs.failed("the query for truth values fails", check, rows)
        truths = _single_rows(arm_runs, check, {step: made[step] for step in rows})
        wanted = {step: made[step].rectified(rows[step], truth_values) for step, truth_values in truths.items()}
        if wanted:
            finding = arm_runs.variant(wanted, SIMPLE_PROTOCOL)
            yield MetamorphicRelation(
                "a row that meets all conditions is missing", frozenset(wanted), picking, finding, (check,)
            )


def _single_rows(arm_runs: ArmRuns, variant: QueryVariant, pivots_at: Mapping[int, Pivots]) -> dict[int, list[str]]:
    """Return the values of the single row of each step; steps with any other number of rows are omitted."""
    if not pivots_at:
        return {}
    steps = arm_runs.observation(variant).steps
    return {
        step: texts_of(steps[step].rows[0])
        for step in pivots_at
        if steps[step].outcome is Outcome.OK and len(steps[step].rows) == 1
    }

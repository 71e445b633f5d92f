"""DQE, differential query execution: SELECT, UPDATE and DELETE with the same condition must select the same rows.

Song, Dou, Cui and others, "Testing Database Systems via Differential Query Execution", ICSE 2023. UPDATE and DELETE
return their rows with RETURNING, in a transaction that is rolled back. Triggers, rules and row security may change
their effect; generated columns and references from other tables may forbid it. If the case has any of these, nothing
is compared.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, ClassVar, Final

from pglast import ast

from oracles.framework.canaries import canary_case, query
from oracles.framework.metamorphic import Metamorphic
from oracles.framework.relations import SIMPLE_PROTOCOL, ArmRuns, MetamorphicRelation, QueryVariant
from oracles.model.observation import Outcome
from oracles.model.oracle import Canary, Sample
from oracles.sql.building import columns_in, snippet, sql_of, text_of
from oracles.sql.core import core
from oracles.sql.determinism import is_deterministic

CACHED: Final = 4096  # statements
CHANGED: Final = Sample("changed", 32)

# Returns no rows if an object in any schema, such as a trigger, may change the statement's effect on a row.
_NO_SIDE_EFFECTS: Final = """\
SELECT 1 WHERE NOT EXISTS (
  SELECT FROM pg_class AS c WHERE c.oid >= 16384 AND (
    c.relkind = 'f' OR c.relrowsecurity
    OR EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = c.oid AND (a.attgenerated <> '' OR a.attidentity = 'a'))
    OR EXISTS (SELECT FROM pg_trigger AS t WHERE t.tgrelid = c.oid)
    OR EXISTS (SELECT FROM pg_rewrite AS r WHERE r.ev_class = c.oid AND r.ev_type <> '1')))"""


class Dqe(Metamorphic):
    """Conditions that select other rows in UPDATE or DELETE than in SELECT."""

    name: ClassVar[str] = "dqe"
    samples: ClassVar[tuple[Sample, ...]] = (CHANGED,)
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary("change_nothing", canary_case(query("SELECT n FROM canary WHERE canary.n > 2"), samples=(CHANGED,))),
    )

    def relations(self, arm_runs: ArmRuns) -> Iterator[MetamorphicRelation]:
        """Yield a relation for UPDATE and one for DELETE, for queries outside of transactions and without parameters.

        A change in a transaction of its own is several statements, which cannot have parameters.
        """
        given = arm_runs.case.all_steps
        idle = {step for step, seen in enumerate(arm_runs.observation(QueryVariant()).steps) if seen.transaction == "I"}
        plain = {step: sql for step, sql in arm_runs.queries().items() if step in idle and not given[step].params}
        found = {step: each for step, sql in plain.items() if (each := changes(sql))}
        made = arm_runs.with_exact_results(found, lambda each: each[0])
        if not made:
            return
        checking = arm_runs.variant(dict.fromkeys(made, _NO_SIDE_EFFECTS), SIMPLE_PROTOCOL)
        yield from arm_runs.failed("the query for triggers and rules fails", checking, made)
        checks = arm_runs.observation(checking).steps
        free = {step: each for step, each in made.items() if checks[step].outcome is Outcome.OK and checks[step].rows}
        for number, word in enumerate(("UPDATE", "DELETE"), start=1):
            pairs = {step: (each[0], each[number]) for step, each in free.items()}
            yield from arm_runs.relations(pairs, f"{word} changes other rows than SELECT returns")


@lru_cache(CACHED)
def changes(sql: str) -> tuple[str, str, str] | None:
    """Return statements for digests of the rows that SELECT, UPDATE and DELETE with the query's WHERE return.

    None unless the query reads a single table with a condition that names one of its columns.
    """
    select = core(sql)
    table: Any = None if select is None or len(select.fromClause) != 1 else select.fromClause[0]
    if not isinstance(table, ast.RangeVar) or select.withClause is not None or select.whereClause is None:
        return None
    condition = text_of(select.whereClause)
    alias = str(table.alias.aliasname if table.alias else table.relname)
    column = _column_of(select.whereClause, alias)
    if not condition or not column or (table.alias and table.alias.colnames):
        return None
    whole = sql_of(table)
    name = _written(alias)
    rows = f"({name}.*)::text"
    selected = f"SELECT count(*), sum(hashtextextended({rows}, 0)) FROM {whole} WHERE {condition}"
    if not is_deterministic(snippet(selected)):
        return None
    updated = f"UPDATE {whole} SET {column} = {name}.{column} WHERE {condition} RETURNING {rows} AS r"
    deleted = f"DELETE FROM {whole} WHERE {condition} RETURNING {rows} AS r"
    return selected, _undone(updated), _undone(deleted)


def _undone(change: str) -> str:
    """Return statements that execute a change, return a digest of its RETURNING rows `r`, and roll it back."""
    return f"BEGIN;WITH c AS ({change}) SELECT count(*), sum(hashtextextended(r, 0)) FROM c;ROLLBACK"


def _column_of(condition: Any, alias: str) -> str:
    """Return a column of the table that the condition names outside of subqueries; "" if there is none."""
    for reference in columns_in(condition):
        names = [getattr(field, "sval", "") for field in reference.fields]
        if names[-1] and names != [alias] and (len(names) == 1 or names[0] == alias):
            return _written(names[-1])
    return ""


def _written(name: str) -> str:
    """Return a name as SQL, quoted if necessary."""
    return sql_of(ast.ColumnRef(fields=(ast.String(sval=name),)))

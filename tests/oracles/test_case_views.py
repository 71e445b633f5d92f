"""Tests of `opaque_names` and `used_names`: views of a case that hide parts of a query."""

import pytest

from oracles.model.case import Step
from oracles.sql.case_views import opaque_names, used_names


def hidden(*statements: str) -> frozenset[str]:
    return opaque_names(map(Step, statements))


@pytest.mark.parametrize(
    "made",
    [
        "CREATE VIEW v AS SELECT x FROM t LIMIT 3",
        "CREATE VIEW v AS SELECT random() FROM t",
        "CREATE OR REPLACE TEMP VIEW s.v AS SELECT ctid FROM t",
        "CREATE SCHEMA s CREATE VIEW v AS TABLE pg_settings",
        "CREATE FUNCTION v(text) RETURNS text RETURN lower($1)",
        "CREATE FOREIGN TABLE v (x int CHECK (x > 0)) SERVER s",
        "CREATE FOREIGN TABLE v (x int NOT NULL) SERVER s",
        "ALTER FOREIGN TABLE v ADD CONSTRAINT c CHECK (x < 0)",
    ],
)
def test_objects_that_hide_nondeterminism_are_opaque(made: str) -> None:
    assert hidden(made) == {"v"}


def test_views_of_opaque_views_are_opaque() -> None:
    first, second = "CREATE VIEW v AS SELECT now()", "CREATE VIEW w AS SELECT x FROM t WHERE x IN (TABLE v)"
    assert hidden(first, second) == {"v", "w"}


def test_deterministic_views_are_not_opaque() -> None:
    assert hidden("CREATE VIEW v AS SELECT x FROM t WHERE x > 1", "INSERT INTO t SELECT 'VIEW'", "no VIEW") == set()
    assert hidden("CREATE FOREIGN TABLE v (x int DEFAULT 1) SERVER s", "ALTER TABLE t ADD CHECK (x > 1)") == set()


def test_used_names_are_tables_and_functions() -> None:
    sql = "WITH c AS (SELECT lower(x) FROM t) SELECT x FROM c WHERE EXISTS (SELECT FROM s.u, unnest(a) AS z)"
    assert used_names(sql) == {"t", "c", "u", "lower", "unnest"}

"""Probing: what becomes of many statements on an arm, each by itself."""

from collections.abc import Sequence
from typing import Any, Final

import psycopg

UNDERSTOOD: Final = frozenset({"", "22"})  # classes of SQLSTATE: success, and errors that the data make
_ATTEMPTED: Final = """
    CREATE OR REPLACE FUNCTION pg_temp.pgduel_attempted(sql text) RETURNS text LANGUAGE plpgsql AS $$
    BEGIN EXECUTE sql; RETURN ''; EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END $$
"""
_STATES: Final = "SELECT pg_temp.pgduel_attempted(s) FROM unnest(%s::text[]) WITH ORDINALITY AS t(s, n) ORDER BY n"


def attempted(connection: psycopg.Connection[Any], statements: Sequence[str]) -> list[str]:
    """Execute each and return its SQLSTATE, empty where it succeeds. Nothing of them stays. Raises psycopg.Error."""
    with connection.transaction(force_rollback=True):
        connection.execute(_ATTEMPTED)
        return [state for (state,) in connection.execute(_STATES, [list(statements)])]

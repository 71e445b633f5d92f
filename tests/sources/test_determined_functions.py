"""What the oracles take for determined, held against a real server's catalogs."""

from collections.abc import Iterator
from typing import Any, Final

import psycopg
import pytest

from fuzz.execution.source_database import SourceDatabase
from fuzz.sources.determinism.catalog import Catalog
from oracles.sql.determinism import DETERMINED, INEXACT_FUNCTIONS

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

# Stable ones that take or return integers, which the catalogs say may be OIDs; casts from OIDs and XML.
_ELSE_FIT: Final = frozenset({"int8", "length", "text", "to_char"})
_KINDS: Final = "SELECT proname FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND {}"
# Hashes and images of enums, and of what may hold them, have OIDs in them, which each run of a case numbers anew.
_HOLD_OIDS: Final = (
    "proname ~ 'hash|send' AND EXISTS (SELECT FROM pg_type WHERE oid = ANY (proargtypes) AND typtype = 'p')"
)
_INEXACT: Final = (
    "prorettype = ANY ('{numeric,interval,jsonb,float4,float8,tsquery,bpchar,numrange,nummultirange}'::regtype[])"
)
_OF_OTHERS: Final = "NOT prorettype = ANY (proargtypes)"


@pytest.fixture(scope="module")
def connection(target: SourceDatabase) -> Iterator[psycopg.Connection[Any]]:
    with target.session(()) as connection:
        yield connection


def names(connection: psycopg.Connection[Any], *conditions: str) -> frozenset[str]:
    return frozenset(name for (name,) in connection.execute(_KINDS.format(" AND ".join(conditions))))


def test_listed_functions_are_fit(connection: psycopg.Connection[Any]) -> None:
    found = Catalog.of(connection).functions.values()
    unfit = {function.name for function in found if not function.fit or function.kind != "f"}
    assert {function.name for function in found} >= DETERMINED | INEXACT_FUNCTIONS
    assert (DETERMINED | INEXACT_FUNCTIONS) & unfit <= _ELSE_FIT
    assert not (DETERMINED | INEXACT_FUNCTIONS) & names(connection, "proretset")


def test_no_oid_comes_out_of_them(connection: psycopg.Connection[Any]) -> None:
    assert not (DETERMINED | INEXACT_FUNCTIONS) & names(connection, _HOLD_OIDS)


def test_inexact_values_come_only_from_the_listed_functions(connection: psycopg.Connection[Any]) -> None:
    assert DETERMINED & names(connection, _INEXACT, _OF_OTHERS) <= {"sign", "length"}

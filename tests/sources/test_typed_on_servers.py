"""Tests of the source `typed` on a real server: its catalog, and deterministic statements."""

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from fuzz.execution.source_database import SourceDatabase
from fuzz.sources.determinism.analysis import Unanalysable, doubts
from fuzz.sources.determinism.catalog import Catalog
from fuzz.sources.typed.catalog import ServerCatalog, catalog_of
from fuzz.sources.typed.queries import query
from fuzz.sources.typed.relations import read_tables
from fuzz.sources.typed.scope import TypedScope
from fuzz.sources.typed.source import scene

pytestmark = [pytest.mark.servers, pytest.mark.timeout(1200)]

# These are deterministic if all columns are sorted, or if only peers distinguish rows.
_BY_CONSTRUCTION = ("window function", "frame of rows")


@pytest.fixture(scope="module")
def catalog(target: SourceDatabase) -> ServerCatalog:
    return catalog_of(target)


@pytest.fixture(scope="module")
def connection(target: SourceDatabase, catalog: ServerCatalog) -> Iterator[psycopg.Connection[Any]]:
    with target.session(scene(random.Random(1), catalog, 40)) as connection:
        yield connection


def named(catalog: ServerCatalog, name: str) -> list[str]:
    return [form.template for form in (*catalog.forms, *catalog.sets) if form.template.startswith(f"{name}(")]


@pytest.mark.parametrize("name", ["abs", "upper", "jsonb_set", "int4range", "date_part", "inet_merge", "array_replace"])
def test_the_catalog_has_functions_of_all_kinds(catalog: ServerCatalog, name: str) -> None:
    assert named(catalog, name)


@pytest.mark.parametrize(
    "name", ["random", "now", "pg_sleep", "set_config", "pg_read_file", "nextval", "pg_advisory_lock", "to_regclass"]
)
def test_the_catalog_lacks_nondeterministic_functions_and_side_effects(catalog: ServerCatalog, name: str) -> None:
    assert not named(catalog, name)


@pytest.mark.parametrize("name", ["hashenum", "hash_array", "hash_record_extended", "array_send", "record_image_lt"])
def test_the_catalog_lacks_functions_whose_results_contain_oids_of_enums(catalog: ServerCatalog, name: str) -> None:
    assert not named(catalog, name)


def test_the_catalog_lacks_functions_of_the_clock(catalog: ServerCatalog) -> None:
    assert named(catalog, "age") == ["age({}, {})"] * 2


def test_functions_that_fail_for_some_values_are_marked(catalog: ServerCatalog) -> None:
    partial = {form.template for form in catalog.partial}
    assert {"sqrt({})", "asin({})"} <= partial
    assert not {"({} + {})", "({} / nullif({}, 0))", "upper({})"} & {
        form.template for form in catalog.partial if form.result in ("int4", "text")
    }


def test_types_with_distinguishable_equal_values_are_inexact(catalog: ServerCatalog) -> None:
    exact = {key for key, type_ in catalog.types.items() if type_.exact}
    assert {"int4", "text", "varchar", "uuid", "date", "_int4", "int4range", "inet"} <= exact
    assert not {"numeric", "float8", "interval", "jsonb", "numrange", "_numeric", "json", "point"} & exact


def test_the_catalog_has_a_scenes_types_with_values(
    catalog: ServerCatalog, connection: psycopg.Connection[Any]
) -> None:
    types = catalog.in_scene(connection).types
    assert types["mood"].values[0] == "'sad'::mood"
    assert types["natural_number"].values[0] == "('0'::int4)::natural_number"  # -7 is not in the domain
    assert types["nested"].parts == ("pair", "date", "mood")
    assert {"_mood", "span", "span_multirange", "word", "_pair"} <= types.keys()


def test_queries_are_deterministic(catalog: ServerCatalog, connection: psycopg.Connection[Any]) -> None:
    own = catalog.in_scene(connection)
    sources, tables = read_tables(connection, own.types)
    assert len(tables) == len(sources)
    functions, analysed = Catalog.of(connection), 0
    for seed in range(150):
        sql, _, _ = query(random.Random(seed), TypedScope(sources, catalog=own))
        try:
            found = doubts(connection, functions, sql)
        except Unanalysable:
            continue
        analysed += 1
        assert not [doubt for doubt in found if not doubt.startswith(_BY_CONSTRUCTION)], sql
    assert analysed > 100

"""Tests of the source `typed` on a small catalog: statements parse, have the right types, and are deterministic."""

import random
from dataclasses import replace
from typing import Any

import pglast
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pglast import ast
from pglast.enums import LimitOption
from pglast.visitors import Visitor

from fuzz.engines.property_based import profile
from fuzz.generators.sql.expressions import Signature, syntax
from fuzz.generators.sql.scope import Column, Relation, RowSource
from fuzz.sources.typed.catalog import Aggregate, ServerCatalog, call
from fuzz.sources.typed.changes import change
from fuzz.sources.typed.datatypes import DataType
from fuzz.sources.typed.expressions import as_exact, expression, is_comparable, sort_key
from fuzz.sources.typed.queries import query
from fuzz.sources.typed.relations import ChangeableTable
from fuzz.sources.typed.scope import TypedScope


def data_type(key: str, kind: str, category: str, value: str, *parts: str, exact: bool = True) -> DataType:
    """Return a type with an order, and with the default collation if it is a text type."""
    fields = tuple(f"f{n}" for n, _ in enumerate(parts, 1)) if kind == "c" else ()
    made = DataType(key, key, kind, category, parts, fields, exact=exact, ordered=True, values=(value,))
    return replace(made, long=category == "A", collated=category == "S")


BOOL = data_type("bool", "b", "B", "true")
INT = replace(data_type("int4", "b", "N", "7"), edges=("2147483647",))
INT8 = data_type("int8", "b", "N", "9::int8")
NUMERIC = replace(data_type("numeric", "b", "N", "1.00", exact=False), long=True)
TEXT = replace(data_type("text", "b", "S", "'a'"), long=True, sources=("varchar",))
VARCHAR = data_type("varchar", "b", "S", "'a'::varchar")
JSON = data_type("jsonb", "b", "U", "'[1]'::jsonb", exact=False)
POINT = replace(data_type("point", "b", "G", "'(0,0)'::point", exact=False), ordered=False)
MOOD = data_type("mood", "e", "E", "'ok'::mood")
WORD = data_type("word", "d", "S", "'a'::word", "text")
PAIR = data_type("pair", "c", "C", "ROW(1, 'a')::pair", "int4", "text")
INTS = data_type("_int4", "a", "A", "'{}'::int4[]", "int4")
MOODS = data_type("_mood", "a", "A", "'{}'::mood[]", "mood")
RANGE = data_type("int4range", "r", "R", "'empty'::int4range", "int4")
RANGES = data_type("int4multirange", "m", "R", "'{}'::int4multirange", "int4range")
TYPES = (BOOL, INT, INT8, NUMERIC, TEXT, VARCHAR, JSON, POINT, MOOD, WORD, PAIR, INTS, MOODS, RANGE, RANGES)
FORMS = (
    call("+", "infix", ("int4", "int4"), "int4", INT),
    call("/", "infix", ("int4", "int4"), "int4", INT),
    call("=", "infix", ("anyarray", "anyarray"), "bool", BOOL),
    call("@>", "infix", ("anyrange", "anyelement"), "bool", BOOL),
    call("repeat", "function", ("text", "int4"), "text", TEXT),
    call("array_append", "function", ("anycompatiblearray", "anycompatible"), "anycompatiblearray", None),
    call("lower", "function", ("anyrange",), "anyelement", None),
    call("multirange", "function", ("anyrange",), "anymultirange", None),
    call("enum_first", "function", ("anyenum",), "anyenum", None),
    call("", "cast", ("int4",), "numeric", NUMERIC),
    syntax("text", "JSON_VALUE({jsonb}, '$.c' RETURNING text)"),
)
SQRT = call("sqrt", "function", ("numeric",), "numeric", NUMERIC)
AGGREGATES = (
    Aggregate("count", "n", 0, Signature("", (), "int8"), fit=True),
    Aggregate("max", "n", 0, Signature("", ("anyarray",), "anyarray"), fit=True),
    Aggregate("sum", "n", 0, Signature("", ("numeric",), "numeric"), fit=True),
    Aggregate("array_agg", "n", 0, Signature("", ("anynonarray",), "anyarray"), fit=False),
    Aggregate("mode", "o", 0, Signature("", ("anyelement",), "anyelement"), fit=True),
    Aggregate("rank", "h", 1, Signature("", ("any",), "int8"), fit=True),
    Aggregate("rank", "w", 0, Signature("", (), "int8"), fit=False),
    Aggregate("row_number", "w", 0, Signature("", (), "int8"), fit=False),
    Aggregate("lag", "w", 0, Signature("", ("anyelement", "int4"), "anyelement"), fit=False),
)
CATALOG = ServerCatalog(
    {each.key: each for each in TYPES}, (*FORMS, SQRT), frozenset({SQRT}),
    (call("unnest", "set", ("anyarray",), "anyelement", None),), AGGREGATES, ('"C"', '"POSIX"'), 170000,
)  # fmt: skip
COLUMNS = tuple(
    Column(f"c_{each.key}", f"c_{each.key}", each, nullable=True, collation='"POSIX"' if each is TEXT else "")
    for each in TYPES
)
KEY = Column("id", "id", INT)
TABLE = ChangeableTable(RowSource("t1", (KEY, *COLUMNS), 50), COLUMNS, (KEY,))
SCOPE = TypedScope((TABLE.source, RowSource("t2", COLUMNS, 20)), catalog=CATALOG, collation='"C"')
OVER = SCOPE.over((Relation("t1", "t1", COLUMNS, 50),), 50)

randoms = st.randoms(use_true_random=False)


def drawn(rng: random.Random) -> str:
    return query(rng, SCOPE)[0] if rng.randrange(3) else change(rng, SCOPE, TABLE)[0]


@profile()
@given(rng=randoms)
def test_a_statement_parses_as_one(rng: random.Random) -> None:
    assert len(pglast.parse_sql(drawn(rng))) == 1


def test_merge_may_return_expressions_with_a_returning_clause() -> None:
    for seed in range(200):
        pglast.parse_sql(change(random.Random(seed), SCOPE, TABLE)[0])


@profile()
@given(rng=randoms, type_=st.sampled_from(TYPES))
def test_an_expression_parses_as_an_operand(rng: random.Random, type_: DataType) -> None:
    assert len(pglast.parse_sql(f"SELECT {expression(rng, OVER, type_)}::text")) == 1


@pytest.mark.parametrize("seed", range(5))
def test_equal_seeds_make_equal_statements(seed: int) -> None:
    assert drawn(random.Random(seed)) == drawn(random.Random(seed))


class _Orders(Visitor):
    """A visitor that requires a total order for LIMIT, DISTINCT ON and array_agg."""

    def visit_SelectStmt(self, _: object, node: Any) -> None:
        ties = node.limitOption == LimitOption.LIMIT_OPTION_WITH_TIES
        first_of_each = any(node.distinctClause or ())
        if ties or not (node.limitCount or node.limitOffset or first_of_each):
            return
        keys = [_bare(key.node) for key in node.sortClause or ()]
        positions = {key.val.ival for key in keys if isinstance(key, ast.A_Const) and isinstance(key.val, ast.Integer)}
        for n, target in enumerate(node.targetList, 1):
            assert n in positions or _bare(target.val) in keys, "not in ORDER BY"

    def visit_FuncCall(self, _: object, node: Any) -> None:
        if node.funcname[-1].sval == "array_agg" and not node.over:
            assert node.agg_order or node.agg_distinct


def _bare(key: Any) -> Any:
    """Return the expression of a sort key without casts and collations."""
    while isinstance(key, ast.CollateClause | ast.TypeCast):
        key = key.arg
    return key


@profile()
@given(rng=randoms)
def test_limited_rows_are_in_a_total_order(rng: random.Random) -> None:
    _Orders()(pglast.parse_sql(drawn(rng)))


def test_numbers_that_determine_the_size_of_results_are_small() -> None:
    (form,) = (form for form in FORMS if form.template.startswith("repeat"))
    assert form.small
    assert not call("length", "function", ("text",), "int4", INT).small
    assert not call("+", "infix", ("numeric", "numeric"), "numeric", NUMERIC).small
    assert call("^", "infix", ("numeric", "numeric"), "numeric", NUMERIC).small


def test_nothing_is_divided_by_zero() -> None:
    assert call("/", "infix", ("int4", "int4"), "int4", INT).sql(["a", "b"]) == "(a / nullif(b, 0))"


def test_a_template_has_the_types_of_its_arguments() -> None:
    assert syntax("bool", "({text} LIKE 'a%' AND {int4} > 1)") == Signature(
        "({} LIKE 'a%' AND {} > 1)", ("text", "int4"), "bool"
    )


@pytest.mark.parametrize(
    ("arguments", "result", "required", "some", "expected"),
    [
        (("anyarray", "anyelement"), "anyarray", INTS, TEXT, ("_int4", "int4")),
        (("anyrange",), "anyelement", INT, TEXT, ("int4range",)),
        (("anymultirange", "anyrange"), "anymultirange", RANGES, TEXT, ("int4multirange", "int4range")),
        (("anyarray", "anyarray"), "bool", BOOL, MOODS, ("_mood", "_mood")),
        (("anyenum",), "bool", BOOL, WORD, None),
        (("anyenum",), "anyarray", MOODS, WORD, ("mood",)),
        (("anynonarray",), "anyelement", INTS, TEXT, None),
        (("anyrange",), "anyelement", TEXT, INT, None),
        (("int4",), "bool", BOOL, INT, ("int4",)),
        (("int4",), "bool", TEXT, INT, None),
    ],
)
def test_polymorphic_types_are_resolved_to_matching_types(
    arguments: tuple[str, ...], result: str, required: DataType, some: DataType, expected: tuple[str, ...] | None
) -> None:
    found = CATALOG.polymorphism.resolved(Signature("", arguments, result), required, some)
    assert (found and found.arguments) == expected


def test_distinguishable_equal_values_are_neither_grouped_nor_sorted() -> None:
    assert is_comparable(NUMERIC)
    assert as_exact("a", NUMERIC) == "trim_scale(a)"
    assert not is_comparable(JSON)
    assert sort_key("a", NUMERIC) == '((a)::text COLLATE "C")'
    assert sort_key("a", INT) == "a"


def test_text_is_converted_to_one_collation() -> None:
    assert OVER.of_type(TEXT) == ['(c_text COLLATE "C")', "(c_varchar)::text", "(c_word)::text"]


def test_functions_that_fail_for_some_values_are_rare() -> None:
    rng = random.Random(1)
    made = [expression(rng, OVER, NUMERIC) for _ in range(1000)]
    assert 0 < sum("sqrt" in sql for sql in made) < 60

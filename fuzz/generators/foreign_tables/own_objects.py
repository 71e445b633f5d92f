"""Objects of a user, which postgres_fdw does not send: a function, operators with an order, an aggregate, and more.

The operators order integers in reverse. The function is expensive, so it is computed after rows are sorted and limited.
PL/pgSQL keeps the planner from inlining them.
"""

from typing import Final

_OPERATORS: Final = (("lt", "<!", ">"), ("le", "<=!", ">="), ("eq", "=!", "="), ("ge", ">=!", "<="), ("gt", ">!", "<"))
_FUNCTION: Final = (
    "CREATE FUNCTION own_{0}(l int, r int) RETURNS {1} LANGUAGE plpgsql IMMUTABLE STRICT AS 'BEGIN RETURN {2}; END'"
)

OWN_OBJECTS: Final = (
    "CREATE FUNCTION own_twice(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE COST 1000 AS 'BEGIN RETURN 2 * n; END'",
    _FUNCTION.format("compare", "int", "sign(r::float8 - l)"),
    *(_FUNCTION.format(name, "bool", f"l {meaning} r") for name, _, meaning in _OPERATORS),
    *(f"CREATE OPERATOR {sign} (FUNCTION = own_{name}, LEFTARG = int, RIGHTARG = int)" for name, sign, _ in _OPERATORS),
    "CREATE OPERATOR CLASS own_order FOR TYPE int USING btree AS "
    + "".join(f"OPERATOR {number} {sign}, " for number, (_, sign, _) in enumerate(_OPERATORS, 1))
    + "FUNCTION 1 own_compare(int, int)",
    "CREATE AGGREGATE own_sum(int) (SFUNC = int4pl, STYPE = int, INITCOND = 0)",
    'CREATE COLLATION own FROM "C"',
    "CREATE TEXT SEARCH CONFIGURATION own (COPY = simple)",
    "CREATE TEXT SEARCH DICTIONARY own (TEMPLATE = simple)",
)

# Conditions on one relation, in the notation of `conditions`; constants of types that name objects; aggregates.
OWN_CONDITIONS: Final = (
    "own_twice({0}.a) {1} {3}",
    "{0}.a <! {3}",
    "{0}.a =! ANY (ARRAY[{3}, 1])",
    "CASE {0}.a WHEN own_twice({3}) THEN {0}.k ELSE 1 END {1} {2}",
    "{0}.b COLLATE own {1} 'v3'",
)
OWN_NAMES: Final = (
    "regprocedure 'own_twice(int)'", "regoper '<=!'", "regoperator '<!(int4, int4)'", "regcollation 'own'",
    "regconfig 'own'", "regdictionary 'own'",
)  # fmt: skip
OWN_AGGREGATES: Final = (
    "own_sum({0}.k)",
    "array_agg({0}.k ORDER BY {0}.k USING <!)",
    "sum(own_twice({0}.a))",
)
OWN_ORDERED: Final = (
    "SELECT x.k, x.b FROM {0} AS x ORDER BY x.k USING <!",
    "SELECT x.a, own_twice(x.a) FROM {0} AS x GROUP BY x.a ORDER BY x.a LIMIT 5",
    "SELECT x.a, count(*) FROM {0} AS x GROUP BY x.a ORDER BY x.a USING >!",
    "SELECT l.k, x.b FROM near AS l JOIN {0} AS x ON x.k =! l.k ORDER BY l.k",
)

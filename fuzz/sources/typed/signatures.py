"""Signatures of calls, and of expressions of the grammar that the catalogs do not list."""

from typing import Final

from fuzz.generators.sql.expressions import Signature
from fuzz.sources.typed.datatypes import DataType

# The result type's key, and a template whose placeholders name the types of arguments. If an arm refuses one, it is not
# used.
SYNTAX: Final[tuple[tuple[str, str], ...]] = (
    ("numeric", "EXTRACT(year FROM {date})"),
    ("numeric", "EXTRACT(epoch FROM {interval})"),
    ("numeric", "EXTRACT(dow FROM {timestamp})"),
    ("numeric", "EXTRACT(milliseconds FROM {time})"),
    ("timestamp", "date_trunc('month', {timestamp})"),
    ("interval", "date_trunc('hour', {interval})"),
    ("timestamp", "date_bin('15 minutes', {timestamp}, TIMESTAMP '2001-01-01')"),
    ("timestamptz", "({timestamp} AT TIME ZONE 'Europe/Helsinki')"),
    ("timestamp", "({timestamptz} AT TIME ZONE INTERVAL '-03:00')"),
    ("bool", "(({date}, {date}) OVERLAPS ({date}, {date}))"),
    ("text", "to_char({timestamp}, 'YYYY-MM-DD HH24:MI:SS.MS')"),
    ("text", "to_char({numeric}, 'FM9990.00')"),
    ("text", "SUBSTRING({text} FROM 2 FOR 3)"),
    ("text", "SUBSTRING({text} SIMILAR '%#\"[a-m]+#\"%' ESCAPE '#')"),
    ("text", "OVERLAY({text} PLACING {text} FROM 2)"),
    ("int4", "POSITION({text} IN {text})"),
    ("text", "TRIM(BOTH 'a' FROM {text})"),
    ("bool", "({text} SIMILAR TO '[a-f]%')"),
    ("bool", "({text} LIKE 'a%')"),
    ("bool", "({text} ILIKE '%B_%')"),
    ("bool", "({text} ~ '^[a-f]+')"),
    ("text", "regexp_replace({text}, '[aeiou]', '-', 'g')"),
    ("text", "normalize({text}, NFC)"),
    ("bool", "({text} IS NFKC NORMALIZED)"),
    ("bool", "({bool} IS TRUE)"),
    ("bool", "({bool} IS NOT UNKNOWN)"),
    ("bool", "({jsonb} ? 'a')"),
    ("jsonb", "({jsonb})['a']"),
    ("jsonb", "jsonb_strip_nulls({jsonb})"),
    ("jsonb", "to_jsonb({text})"),
    ("jsonb", "to_jsonb({date})"),
    ("bool", "({text} IS JSON)"),
    ("bool", "({text} IS JSON OBJECT WITH UNIQUE KEYS)"),
    ("bool", "({jsonb} IS JSON ARRAY)"),
    ("json", "JSON_OBJECT('a': {int4}, 'b': {text} ABSENT ON NULL)"),
    ("jsonb", "JSON_OBJECT('a' VALUE {date}, 'b' VALUE {jsonb} RETURNING jsonb)"),
    ("json", "JSON_ARRAY({int4}, {text}, {bool} NULL ON NULL)"),
    ("jsonb", "JSON_ARRAY({numeric}, {jsonb} RETURNING jsonb)"),
    ("json", "JSON_SCALAR({numeric})"),
    ("text", "JSON_SERIALIZE({json} RETURNING text)"),
    ("bool", "JSON_EXISTS({jsonb}, '$.a')"),
    ("bool", "JSON_EXISTS({jsonb}, '$[*] ? (@ > $n)' PASSING {int4} AS n)"),
    ("text", "JSON_VALUE({jsonb}, '$.c')"),
    ("int4", "JSON_VALUE({jsonb}, '$.a' RETURNING int4 DEFAULT -1 ON EMPTY DEFAULT -2 ON ERROR)"),
    ("numeric", "JSON_VALUE({jsonb}, 'lax $[0]' RETURNING numeric NULL ON ERROR)"),
    ("jsonb", "JSON_QUERY({jsonb}, '$.a.b' WITH CONDITIONAL WRAPPER)"),
    ("jsonb", "JSON_QUERY({jsonb}, '$[*]' WITH WRAPPER EMPTY ARRAY ON EMPTY)"),
    ("int4", "ascii(CAST({text} AS varchar(3)))"),
    ("numeric", "CAST({float8} AS numeric(12, 3))"),
    ("timestamp", "make_timestamp(2024, 1 + abs({int4} % 12), 1, 0, 0, 0)"),
    ("date", "({date} + ({int4} % 400)::int4)"),
    ("int4", "width_bucket({numeric}, 0, 10, 5)"),
    ("int4", "cardinality({_int4})"),
    ("text", "array_to_string({_text}, ',', '*')"),
    ("bool", "(ROW({int4}, {text}) < ROW({int4}, {text}))"),
    ("bool", "(ROW({int4}, {bool}) IS NOT NULL)"),
    ("bool", "(ROW({date}, {int8}) IS DISTINCT FROM ROW({date}, {int8}))"),
    ("int4", "num_nulls({int4}, {text}, {jsonb})"),
)
_ARITHMETIC: Final = frozenset("+-*/%")


def call(name: str, form: str, arguments: tuple[str, ...], key: str, result: DataType | None) -> Signature:
    """Return the signature for a row of calls.sql. `result` is None if it is polymorphic."""
    is_long = result is None or result.long
    if form == "cast":
        return Signature(f"({{}})::{result.name if result else key}", arguments, key)
    if form == "prefix":
        return Signature(f"({name} {{}})", arguments, key)
    if form == "infix":
        divisor = "nullif({}, 0)" if name in "/%" else "{}"
        return Signature(f"({{}} {name} {divisor})", arguments, key, is_long and name not in _ARITHMETIC)
    return Signature(f"{name}({', '.join('{}' for _ in arguments)})", arguments, key, form == "set" or is_long)

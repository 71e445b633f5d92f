"""Values of the built-in types: common ones, ascending if the type has an order, and extreme ones, which may fail.

Common values are small, so that sums stay in range and texts short. None depends on the session or the clock. bpchar
has no values: as text, they would lose trailing blanks.
"""

from collections.abc import Mapping
from typing import Final

_JSON: Final = ("null", "1", '"a"', "[]", "[1, null, 2]", '{"a": 1}', '{"a": {"b": [1, "x"]}, "c": "d"}')
_REALS: Final = ("-1.5", "0", "0.25", "1", "2", "10")
_DAYS: Final = ("1999-12-31", "2000-01-01", "2024-02-29", "2024-03-01", "2031-07-15")
_TIMES: Final = ("00:00:00", "01:02:03", "12:00:00.5", "23:59:59")
_MOMENTS: Final = tuple(f"{day} {time}" for day, time in zip(_DAYS, (*_TIMES, "06:00"), strict=True))

# By name in pg_type. Other types are used only if a scene has values of them.
VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "bool": ("false", "true"),
    "int2": ("-3", "0", "1", "2", "5", "12"),
    "int4": ("-7", "0", "1", "2", "3", "10", "42"),
    "int8": ("-100", "0", "1", "2", "7", "1000"),
    "numeric": ("-1.5", "0", "1", "1.00", "2.50", "10", "123.456"),
    "float4": _REALS,
    "float8": _REALS,
    "money": ("-2.50", "0", "1", "99.99"),
    "text": ("", " ", "0", "12", "A", "Foo", "a", "ab", "abc", "b", "foo bar", "é"),
    "varchar": ("", "A", "a", "ab", "b c", "é"),
    "name": ("a", "b", "some_name"),
    "char": ("A", "a", "b"),
    "bytea": (r"\x", r"\x00", r"\x6162", r"\xff"),
    "date": _DAYS,
    "time": _TIMES,
    "timetz": tuple(f"{time}+00" for time in _TIMES),
    "timestamp": _MOMENTS,
    "timestamptz": tuple(f"{moment}+00" for moment in _MOMENTS),
    "interval": ("-1 day", "0", "01:30:00", "1 day", "1 mon", "1 year 2 mons -3 days"),
    "uuid": tuple(f"00000000-0000-4000-8000-{number:012d}" for number in (0, 1, 2, 77)),
    "inet": ("10.0.0.1", "10.0.0.1/24", "192.168.1.5", "::1"),
    "cidr": ("10.0.0.0/8", "192.168.1.0/24", "::/0"),
    "macaddr": ("08:00:2b:01:02:03", "08:00:2b:01:02:04"),
    "macaddr8": ("08:00:2b:01:02:03:04:05", "08:00:2b:01:02:03:04:06"),
    "bit": ("0",),
    "varbit": ("", "0", "0110", "1", "101"),
    "json": _JSON,
    "jsonb": _JSON,
    "jsonpath": ("$", "$.a", "$.*", "$[*]", "$.a.b[*]", "$[*] ? (@ > 1)"),
    "tsvector": ("", "a b", "'foo':1A,3 'bar':2"),
    "tsquery": ("a", "a & b", "foo <-> bar", "!a | b"),
    "point": ("(0,0)", "(1,2)", "(-1,0.5)"),
    "lseg": ("[(0,0),(1,1)]", "[(0,1),(2,0)]"),
    "line": ("{1,-1,0}", "{0,1,2}"),
    "box": ("(1,1),(0,0)", "(3,2),(1,0)"),
    "path": ("[(0,0),(1,1),(2,0)]", "((0,0),(1,0),(0,1))"),
    "polygon": ("((0,0),(1,0),(0,1))", "((0,0),(2,0),(2,2),(0,2))"),
    "circle": ("<(0,0),1>", "<(1,1),2>"),
}
EDGES: Final[Mapping[str, tuple[str, ...]]] = {
    "int2": ("-32768", "32767"),
    "int4": ("-2147483648", "2147483647"),
    "int8": ("-9223372036854775808", "9223372036854775807"),
    "numeric": ("NaN", "Infinity", "-Infinity", "0.000", "99999999999999999999.5"),
    "float4": ("NaN", "Infinity", "-Infinity", "-0", "3e38"),
    "float8": ("NaN", "Infinity", "-Infinity", "-0", "1e300", "1e-300"),
    "text": ("%", "_", "(", "a\\b", "foo'bar", "long " * 30),
    "date": ("-infinity", "infinity", "0044-03-15 BC"),
    "timestamp": ("-infinity", "infinity"),
    "timestamptz": ("-infinity", "infinity"),
    "interval": ("100 years", "-1000 days 25:00"),
    "time": ("24:00:00",),
}
BOUNDED: Final = ("0", "1", "2", "3")  # integers for arguments that determine the size of a result

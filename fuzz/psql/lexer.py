"""What psql would make of a text: tokens of SQL, backslash commands, variables, and where a statement ends.

Only as much of SQL as decides whether psql sends a text as it stands. What psql would read otherwise (a quote without
its end, a backslash, a variable) is called so and not guessed at.
"""

import re
from collections.abc import Iterator
from functools import reduce
from typing import NamedTuple

_TOKENS = re.compile(
    r"""
      (?P<escape>   [eE]'(?:[^'\\]|\\.|'')*' )
    | (?P<string>   '(?:[^']|'')*' )
    | (?P<name>     "(?:[^"]|"")*" | [^\W\d][\w$]* )
    | (?P<dollar>   \$(?P<tag>(?:[^\W\d]\w*)?)\$ .*? \$(?P=tag)\$ )
    | (?P<number>   \$?\d[\w.]* )
    | (?P<comment>  --[^\n]* | /\*(?:(?!/\*|\*/).)*\*/ )
    | (?P<space>    \s+ )
    | (?P<joint>    \\; )
    | (?P<end>      ; )
    | (?P<command>  \\[^\n]* )
    | (?P<broken>   ['"$] | /\* )
    | (?P<cast>     :: | := )
    | (?P<variable> :(?=[^\W\d]|['"{]) )
    | (?P<symbol>   . )
    """,
    re.VERBOSE | re.DOTALL,
)
_DEPTH = {"(": 1, ")": -1}
_OTHERWISE = frozenset({"joint", "end", "command", "broken", "variable"})  # psql does more than pass these on
BLANK = frozenset({"space", "comment"})


class Token(NamedTuple):
    """A piece of text: what it is, where it starts, and itself. Tokens, put together, give the whole text."""

    kind: str
    start: int
    text: str


def tokens(text: str, start: int = 0, stop: int | None = None) -> Iterator[Token]:
    """Cut a text, or the part from `start` to `stop`, into tokens."""
    for match in _TOKENS.finditer(text, start, len(text) if stop is None else stop):
        yield Token(str(match.lastgroup), match.start(), match.group())


def one_statement(sql: str) -> bool:
    """Tell whether psql, given the text and a semicolon, sends exactly the text, and only it."""
    if "\r" in sql or "\0" in sql:  # psql or an editor might change the one, and nobody can send the other
        return False
    found = list(tokens(sql))
    solid = [token for token in found if token.kind not in BLANK]
    return (
        bool(solid)
        and not any(token.kind in _OTHERWISE for token in found)
        and not found[-1].text.startswith("--")
        and reduce(depth_after, found, 0) == 0
        and not _has_atomic_body(solid)
    )


def depth_after(depth: int, token: Token) -> int:
    """Return how many parentheses are open after the token, as psql counts: never less than none."""
    return max(0, depth + _DEPTH.get(token.text, 0))


def _has_atomic_body(solid: list[Token]) -> bool:
    """Tell whether psql may count BEGIN and END to find the end of the statement."""
    words = [token.text.lower() for token in solid if token.kind == "name"]
    return words[:1] == ["create"] and "begin" in words

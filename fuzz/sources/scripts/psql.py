r"""Reader of psql scripts without a server: statements, and the data after COPY FROM STDIN.

Variables, conditions and ends of statements work as in psql. Commands that only print (\d, \echo) are skipped. For
commands that use a result (\gexec, \gset), only their query is sent. So a variable may stay unset; it is then left as
text, as in psql. A condition is false unless it is known to be true.

Commands for variables and conditions: \set, \unset, \getenv, \if, \elif, \else, \endif, \quit.

The tokens cover only the SQL that decides whether psql sends a text unchanged. Text that psql interprets (an unclosed
quote, a backslash, a variable) has tokens of its own kind; its meaning is not guessed.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Final, NamedTuple

_COMMENT = r"/\*[^*/]*(?:(?:\*(?!/)|/(?!\*){})[^*/]*)*\*/"  # with room for one more kind of part
_NESTED = reduce(lambda inner, _: _COMMENT.format(f"|{inner}"), range(3), _COMMENT.format(""))  # in three others
_TOKENS = re.compile(
    rf"""
      (?P<escape>   [eE]'[^'\\]*(?:(?:\\.|'')[^'\\]*)*' )
    | (?P<string>   '[^']*(?:''[^']*)*' )
    | (?P<name>     "[^"]*(?:""[^"]*)*" | [^\W\d][\w$]* )
    | (?P<dollar>   \$(?P<tag>(?:[^\W\d]\w*)?)\$ .*? \$(?P=tag)\$ )
    | (?P<number>   \$?\d[\w.]* )
    | (?P<comment>  --[^\n]* | {_NESTED} )
    | (?P<space>    \s+ )
    | (?P<joint>    \\; )
    | (?P<end>      ; )
    | (?P<command>  \\[^\n]* )
    | (?P<broken>   ['"$] | /\* )
    | (?P<cast>     :: | := )
    | (?P<variable> :(?=[^\W\d]|['"{{]) )
    | (?P<symbol>   . )
    """,
    re.VERBOSE | re.DOTALL,
)
_DEPTH = {"(": 1, ")": -1}
_INTERPRETED = frozenset({"joint", "end", "command", "broken", "variable"})  # psql does not send these tokens unchanged
BLANK = frozenset({"space", "comment"})


class Token(NamedTuple):
    """A token: kind, start, and text. Concatenated tokens give the whole text."""

    kind: str
    start: int
    text: str


def tokens(text: str, start: int = 0, stop: int | None = None) -> Iterator[Token]:
    """Yield the tokens of a text, or of its part from `start` to `stop`."""
    for match in _TOKENS.finditer(text, start, len(text) if stop is None else stop):
        yield Token(str(match.lastgroup), match.start(), match.group())


def one_statement(sql: str) -> bool:
    """Return whether psql, given the text and a semicolon, sends exactly this text as one statement.

    It must under any setting of standard_conforming_strings, which psql follows.
    """
    if "\r" in sql or "\0" in sql:  # an editor or psql may change \r, and the protocol cannot send \0
        return False
    found = list(tokens(sql))
    solid = [token for token in found if token.kind not in BLANK]
    return (
        bool(solid)
        and not any(token.kind in _INTERPRETED or _ends_by_setting(token) for token in found)
        and not found[-1].text.startswith("--")
        and reduce(depth_after, found, 0) == 0
        and not _has_atomic_body(solid)
    )


def _ends_by_setting(token: Token) -> bool:
    """Return whether a setting determines where a string ends: a backslash before a quotation mark may be an escape."""
    return token.kind == "string" and "\\'" in token.text


def depth_after(depth: int, token: Token) -> int:
    """Return the number of open parentheses after the token. Like in psql, it is never less than 0."""
    return max(0, depth + _DEPTH.get(token.text, 0))


def _has_atomic_body(solid: list[Token]) -> bool:
    """Return whether psql may count BEGIN and END to find the end of the statement."""
    words = [token.text.lower() for token in solid if token.kind == "name"]
    return words[:1] == ["create"] and "begin" in words


_ROUTINE: Final = re.compile(r"create (or replace )?(function|procedure) ")


class Blocks:
    """The blocks of a statement, whose semicolons do not end it: BEGIN ATOMIC of a routine, and CASE within it."""

    def __init__(self) -> None:
        self.open = 0
        self._names: list[str] = []

    def add(self, token: Token) -> None:
        """Count the next token of the statement, as psql does, in which BEGIN opens a block in any routine."""
        if token.kind != "name":
            return
        name = token.text.lower()
        self._names.append(name)
        if not _ROUTINE.match(" ".join(self._names[:4]) + " "):
            return
        if name == "begin" or (name == "case" and self.open):
            self.open += 1
        elif name == "end" and self.open:
            self.open -= 1


_WORD: Final = re.compile(r"""(?:'(?:[^'\\]|\\.|'')*'|:\{\?\w+\}|:['"]?\w+['"]?|[^\s':]|:)+""")
_PART: Final = re.compile(
    r"""'(?P<quoted>(?:[^'\\]|\\.|'')*)'|:\{\?(?P<tested>\w+)\}|:(?P<mark>['"]?)(?P<name>\w+)(?P=mark)|(?P<plain>.)""",
    re.DOTALL,
)
_TRUE: Final = frozenset({"1", "on", "t", "true", "y", "yes"})


class Words:
    """The variables and conditions of a script."""

    def __init__(self, variables: dict[str, str], environment: Mapping[str, str]) -> None:
        self._variables = variables
        self._environment = environment
        self._branches: list[tuple[bool, bool]] = []  # per \if: whether this branch is taken, and whether any was
        self.quit = False

    @property
    def active(self) -> bool:
        """Return whether statements at this position are executed."""
        return all(taken for taken, _ in self._branches)

    def referred(self, found: re.Match[str]) -> str | None:
        """Return the value of a variable reference in a statement, or None if the variable is not set."""
        if tested := found["tested"]:
            return "TRUE" if tested in self._variables else "FALSE"
        value = self._variables.get(found["plain"] or found["literal"] or found["name"])
        if value is None or found["plain"]:
            return value
        mark = "'" if found["literal"] else '"'
        return mark + value.replace(mark, 2 * mark) + mark

    def command(self, name: str, arguments: str) -> None:
        """Process a backslash command. Unknown commands have no effect."""
        if name in ("if", "elif", "else", "endif"):
            self._condition(name, arguments)
        elif self.active:
            self._execute(name, [self._evaluated(word) for word in _WORD.findall(arguments)])

    def _condition(self, name: str, arguments: str) -> None:
        if name == "if":
            true = self._true(arguments)
            self._branches.append((true, true))
        elif self._branches:
            _, before = self._branches.pop()
            if name != "endif":
                true = not before and (name == "else" or self._true(arguments))
                self._branches.append((true, before or true))

    def _true(self, arguments: str) -> bool:
        words = _WORD.findall(arguments)
        return bool(words) and self._evaluated(words[0]).lower() in _TRUE

    def _execute(self, name: str, words: list[str]) -> None:
        if name in ("q", "quit"):
            self.quit = True
        elif name == "set" and words:
            self._variables[words[0]] = "".join(words[1:])
        elif name == "unset" and words:
            self._variables.pop(words[0], None)
        elif name == "getenv" and len(words) > 1 and words[1] in self._environment:
            self._variables[words[0]] = self._environment[words[1]]

    def _evaluated(self, word: str) -> str:
        return "".join(map(self._part, _PART.finditer(word)))

    def _part(self, part: re.Match[str]) -> str:
        if part["quoted"] is not None:
            return re.sub(r"''|\\(.)", lambda found: found[1] or "'", part["quoted"])
        if part["tested"]:
            return "true" if part["tested"] in self._variables else "false"
        return self._variables.get(part["name"], part[0]) if part["name"] else part[0]


_COPY_IN = re.compile(r"\s*COPY\b.*\bFROM\s+STDIN\b", re.IGNORECASE | re.DOTALL)
_SLASH_COPY_IN = re.compile(r"\\copy (.*\bfrom\s+(?:p?stdin\b|').*)", re.IGNORECASE)
_END_OF_DATA = re.compile(r"^\\\.(?:\r?\n|\Z)", re.MULTILINE)
_REFERENCE = re.compile(r""":(?:(?P<plain>\w+)|'(?P<literal>\w+)'|"(?P<name>\w+)"|\{\?(?P<tested>\w+)\})""")
_INCLUDING = frozenset({"i", "include", "ir", "include_relative"})
_INCLUDES = re.compile(r"\\i(?:r|nclude(?:_relative)?)?\s")
_SENDS = frozenset({"g", "gx", "gset", "gexec", "crosstabview"})


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that psql sends, its COPY data, and its line number in the script."""

    sql: str
    data: bytes | None
    line: int


def read_script(text: str, variables: Mapping[str, str], environment: Mapping[str, str]) -> list[Sent]:
    r"""Return the messages that psql sends for a script; \getenv reads `environment`.

    The last statement needs no semicolon. An unclosed quote or comment ends the script.
    """
    return _Reader(text, dict(variables), environment).read()


def inclusions(text: str) -> list[int]:
    r"""Return the numbers of the lines at which a script includes a file (\i, \ir). `read_script` leaves that out."""
    if not _INCLUDES.search(text):
        return []
    reader = _Reader(text, {}, {})
    reader.read()
    return reader.inclusions


class _Reader:
    def __init__(self, text: str, variables: dict[str, str], environment: Mapping[str, str]) -> None:
        self._text = text
        self._words = Words(variables, environment)
        self._sent: list[Sent] = []
        self.inclusions: list[int] = []
        self._line, self._counted = 1, 0  # line number of a position
        self._begin("")

    def _begin(self, sql: str) -> None:
        self._parts = [sql]
        self._start = -1
        self._depth = 0  # of open parentheses
        self._blocks = Blocks()

    def read(self) -> list[Sent]:
        at = 0
        while at < len(self._text) and not self._words.quit:
            token = next(tokens(self._text, at))
            if token.kind == "broken":
                return self._sent
            at = self._take(token)
        self._send(at)
        return self._sent

    def _take(self, token: Token) -> int:
        end = token.start + len(token.text)
        if token.kind == "command":
            return self._command(token, end)
        if token.kind == "variable":
            return self._reference(token)
        if token.kind == "end" and not self._depth and not self._blocks.open:
            return self._send(end)
        if self._start < 0:
            if token.kind in BLANK:  # comments before a statement are not part of it
                return end
            self._start = token.start
        self._depth = depth_after(self._depth, token)
        self._blocks.add(token)
        self._parts.append(";" if token.kind == "joint" else token.text)
        return end

    def _reference(self, token: Token) -> int:
        found = _REFERENCE.match(self._text, token.start)
        value = self._words.referred(found) if found else None
        if found is None or value is None:
            self._parts.append(token.text)
            return token.start + len(token.text)
        self._start = token.start if self._start < 0 else self._start
        self._parts.append(value)
        return found.end()

    def _send(self, end: int) -> int:
        """Append the message, with the COPY data below it, and return the position after both."""
        sql, line = "".join(self._parts).strip(), self._line_of(max(self._start, self._counted))
        nonempty, active = self._start >= 0, self._words.active
        self._begin("")
        data = None
        if nonempty and _COPY_IN.match(sql):
            newline = self._text.find("\n", end)
            found = _END_OF_DATA.search(self._text, newline + 1) if newline >= 0 else None
            if found is not None:
                data, end = self._text[newline + 1 : found.start()].encode(), found.end()
        if nonempty and active:
            self._sent.append(Sent(sql, data, line))
        return end

    def _line_of(self, position: int) -> int:
        """Return the line number of a position, which is not before those of earlier calls."""
        self._line += self._text.count("\n", self._counted, position)
        self._counted = position
        return self._line

    def _command(self, token: Token, end: int) -> int:
        command = token.text.rstrip()
        name = re.match(r"\\(\w*)", command)
        word = name[1] if name else ""
        if word in _SENDS:
            return self._send(end)
        if copied := _SLASH_COPY_IN.fullmatch(command):
            self._begin(f"COPY {copied[1].rstrip(';')}")
            self._start = token.start
            return self._send(end)
        if word in ("bind", "gdesc", "r", "reset"):  # they discard the statement or set parameters
            self._begin("")
        elif word in ("c", "connect") and self._words.active:
            self._sent.append(Sent("DISCARD ALL", None, self._line_of(token.start)))
        elif word in _INCLUDING and self._words.active:
            self.inclusions.append(self._line_of(token.start))
        else:
            self._words.command(word, command[len(word) + 1 :])
        return end

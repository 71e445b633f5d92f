r"""A script as psql would run it without a server: statements, with the data that follow a COPY FROM STDIN.

Variables, conditions and ends of statements work as in psql. What only shows something (\d, \echo) is passed over. What
takes its statements or values from a server's answer (\gexec, \gset) sends its query, and no more: a variable that was
not set stands as it is, as in psql, and a condition that is not known to be true is false.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fuzz.psql.lexer import BLANK, Token, depth_after, tokens
from fuzz.psql.words import Words

_COPY_IN = re.compile(r"\s*COPY\b.*\bFROM\s+STDIN\b", re.IGNORECASE | re.DOTALL)
_SLASH_COPY_IN = re.compile(r"\\copy (.*\bfrom\s+(?:p?stdin\b|').*)", re.IGNORECASE)
_END_OF_DATA = re.compile(r"^\\\.(?:\r?\n|\Z)", re.MULTILINE)
_REFERENCE = re.compile(r""":(?:(?P<plain>\w+)|'(?P<literal>\w+)'|"(?P<name>\w+)"|\{\?(?P<asked>\w+)\})""")
_SENDS = frozenset({"g", "gx", "gset", "gexec", "crosstabview"})
_ROUTINE = re.compile(r"create (or replace )?(function|procedure) ")


@dataclass(frozen=True, slots=True)
class Sent:
    """What psql sends at once, and the COPY data that go with it."""

    sql: str
    data: bytes | None
    line: int


def read_script(text: str, variables: Mapping[str, str], environment: Mapping[str, str]) -> list[Sent]:
    r"""Return what psql would send. `environment` is what \getenv finds. What is not closed ends the script."""
    return _Reader(text, dict(variables), environment).read()


class _Reader:
    def __init__(self, text: str, variables: dict[str, str], environment: Mapping[str, str]) -> None:
        self._text = text
        self._words = Words(variables, environment)
        self._sent: list[Sent] = []
        self._begin("")

    def _begin(self, sql: str) -> None:
        self._sql = sql
        self._start = -1
        self._depth = 0  # of parentheses
        self._blocks = 0  # of BEGIN ATOMIC and CASE within it
        self._names: list[str] = []

    def read(self) -> list[Sent]:
        at = 0
        while at < len(self._text) and not self._words.quit:
            token = next(tokens(self._text, at))
            if token.kind == "broken":
                break
            at = self._take(token)
        return self._sent

    def _take(self, token: Token) -> int:
        end = token.start + len(token.text)
        if token.kind == "command":
            return self._command(token, end)
        if token.kind == "variable":
            return self._reference(token)
        if token.kind == "end" and not self._depth and not self._blocks:
            return self._send(end)
        if self._start < 0:
            if token.kind in BLANK:  # comments before a statement are none of it
                return end
            self._start = token.start
        self._depth = depth_after(self._depth, token)
        if token.kind == "name":
            self._count_blocks(token.text.lower())
        self._sql += ";" if token.kind == "joint" else token.text
        return end

    def _count_blocks(self, name: str) -> None:
        """Count as psql does: BEGIN opens a block in the definition of a routine, and there CASE does as well."""
        self._names.append(name)
        if not _ROUTINE.match(" ".join(self._names[:4]) + " "):
            return
        if name == "begin" or (name == "case" and self._blocks):
            self._blocks += 1
        elif name == "end" and self._blocks:
            self._blocks -= 1

    def _reference(self, token: Token) -> int:
        found = _REFERENCE.match(self._text, token.start)
        value = self._words.referred(found) if found else None
        if found is None or value is None:
            self._sql += token.text
            return token.start + len(token.text)
        self._start = token.start if self._start < 0 else self._start
        self._sql += value
        return found.end()

    def _send(self, end: int) -> int:
        """Send what there is, with the data below it where it asks for any; return where to go on."""
        sql, line = self._sql.strip(), self._text.count("\n", 0, max(self._start, 0)) + 1
        asked, active = self._start >= 0, self._words.active
        self._begin("")
        data = None
        if asked and _COPY_IN.match(sql):
            newline = self._text.find("\n", end)
            found = _END_OF_DATA.search(self._text, newline + 1) if newline >= 0 else None
            if found is not None:
                data, end = self._text[newline + 1 : found.start()].encode(), found.end()
        if asked and active:
            self._sent.append(Sent(sql, data, line))
        return end

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
        if word in ("bind", "gdesc", "r", "reset"):  # parameters that follow the statement; or it is not run at all
            self._begin("")
        elif word in ("c", "connect") and self._words.active:
            self._sent.append(Sent("DISCARD ALL", None, self._text.count("\n", 0, token.start) + 1))
        else:
            self._words.command(word, command[len(word) + 1 :])
        return end

r"""psql's variables and conditions: \set, \unset, \getenv, \if, \elif, \else, \endif, \quit."""

import re
from collections.abc import Mapping
from typing import Final

_WORD: Final = re.compile(r"""(?:'(?:[^'\\]|\\.|'')*'|:\{\?\w+\}|:['"]?\w+['"]?|[^\s':]|:)+""")
_PART: Final = re.compile(
    r"""'(?P<quoted>(?:[^'\\]|\\.|'')*)'|:\{\?(?P<asked>\w+)\}|:(?P<mark>['"]?)(?P<name>\w+)(?P=mark)|(?P<plain>.)""",
    re.DOTALL,
)
_TRUE: Final = frozenset({"1", "on", "t", "true", "y", "yes"})


class Words:
    """The state of a script apart from its statements."""

    def __init__(self, variables: dict[str, str], environment: Mapping[str, str]) -> None:
        self._variables = variables
        self._environment = environment
        self._branches: list[tuple[bool, bool]] = []  # taken now; one of this condition was taken
        self.quit = False

    @property
    def active(self) -> bool:
        """Whether statements here are run."""
        return all(taken for taken, _ in self._branches)

    def referred(self, found: re.Match[str]) -> str | None:
        """Return what a reference in a statement stands for, or None if it is no variable that is set."""
        if asked := found["asked"]:
            return "TRUE" if asked in self._variables else "FALSE"
        value = self._variables.get(found["plain"] or found["literal"] or found["name"])
        if value is None or found["plain"]:
            return value
        mark = "'" if found["literal"] else '"'
        return mark + value.replace(mark, 2 * mark) + mark

    def command(self, name: str, arguments: str) -> None:
        """Take a backslash command; one that is not known here does nothing."""
        if name in ("if", "elif", "else", "endif"):
            self._condition(name, arguments)
        elif self.active:
            self._act(name, [self._evaluated(word) for word in _WORD.findall(arguments)])

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

    def _act(self, name: str, words: list[str]) -> None:
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
        if part["asked"]:
            return "true" if part["asked"] in self._variables else "false"
        return self._variables.get(part["name"], part[0]) if part["name"] else part[0]

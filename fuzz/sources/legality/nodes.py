"""Node trees: how PostgreSQL writes what its parser made of a statement (pg_node_tree), read back as objects."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_TOKEN = re.compile(r"[(){}]|(?:\\.|[^\s(){}\\])+", re.DOTALL)


@dataclass(slots=True)
class Node:
    """A node: its kind, as QUERY or OPEXPR, and its fields, each a list of words and nodes. Lists are flattened."""

    kind: str
    fields: dict[str, list["str | Node"]] = field(default_factory=dict)

    def word(self, name: str) -> str:
        """Return the first word of a field; empty where there is none, or the field is null."""
        first = next(iter(self.fields.get(name, ())), "")
        return first if isinstance(first, str) and first != "<>" else ""

    def number(self, name: str) -> int:
        """Return a field that is an integer; 0 where there is no such field."""
        return int(self.word(name) or 0)

    def children(self, name: str) -> list["Node"]:
        """Return the nodes of a field, those of lists within it too."""
        return [value for value in self.fields.get(name, ()) if isinstance(value, Node)]

    def walk(self) -> Iterator["Node"]:
        """Yield this node and all below it."""
        yield self
        for name in self.fields:
            for child in self.children(name):
                yield from child.walk()


def read_nodes(text: str) -> list[Node]:
    """Return the nodes at the top of a node tree."""
    top = Node("")
    stack = [top]
    current: list[str | Node] = top.fields.setdefault("", [])
    currents = [current]
    words = iter(_TOKEN.findall(text))
    for word in words:
        if word == "{":
            node = Node(next(words))
            currents[-1].append(node)
            stack.append(node)
            currents.append([])
        elif word == "}":
            stack.pop()
            currents.pop()
        elif word.startswith(":"):
            currents[-1] = stack[-1].fields.setdefault(word[1:], [])
        elif word not in "()":
            currents[-1].append(word)
    return top.children("")

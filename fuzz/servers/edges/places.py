"""Places of edges: the file and the functions of each counted edge of a build.

SanitizerCoverage has a table of the addresses of all edges, in the order of their counters. Its addresses are only in
the relocations of a program that may be loaded anywhere (ELF, "Relocation").
"""

import json
import os.path
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from fuzz.servers.build import Build
from fuzz.servers.coverage import tool_output
from fuzz.servers.edges.counters import PC, PCS, programs_of, sections_of


class Frame(NamedTuple):
    """A function at an edge."""

    file: str  # its path in the tree
    function: str
    line: int


Place = tuple[Frame, ...]  # an inlined function before its caller

_SYMBOLIZER: Final = "llvm-symbolizer-19"
_RELOCATIONS: Final = ".rela.dyn"
_SYMBOLS: Final = ".dynsym"
_FAILING: Final = "cannot read the places of edges"
_RELOCATION: Final = np.dtype([("place", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<u8")])
_SYMBOL: Final = np.dtype([("name", "<u4"), ("kind", "<u4"), ("value", "<u8"), ("size", "<u8")])


def places_of(build: Build) -> list[Place]:
    """Return the place of each counted edge, in the order of `EdgeCounters.counts`, with paths in the build's tree.

    Raises ServerError.
    """
    tree = f"{build.source}/"
    return [
        tuple(frame._replace(file=frame.file.removeprefix(tree)) for frame in place)
        for program in programs_of(build)
        for place in places_in(program)
    ]


def places_in(program: Path) -> Iterator[Place]:
    """Yield the place of each counted edge of one program or library. Raises ServerError."""
    addresses = "".join(f"{address:#x}\n" for address in _addresses(program))
    arguments = (f"--obj={program}", "--output-style=JSON")
    symbols = tool_output(_SYMBOLIZER, *arguments, given=addresses, failing=_FAILING)
    for line in symbols.splitlines():
        frames = json.loads(line).get("Symbol", ())
        yield tuple(map(_frame, frames))


def _frame(symbol: Mapping[str, Any]) -> Frame:
    return Frame(_normal(symbol["FileName"]), symbol["FunctionName"].partition(".")[0], symbol["Line"])


@cache
def _normal(path: str) -> str:
    """Return a path of debug information without `build/../`."""
    return os.path.normpath(path) if path else ""


def _addresses(program: Path) -> list[int]:
    """Return the address of each edge in the program."""
    sections = sections_of(program)

    def content(name: str, row: np.dtype[Any]) -> Any:
        section = sections[name]
        return np.fromfile(program, row, section.size // row.itemsize, offset=section.offset)

    addresses = content(PCS, PC)["address"].copy()
    table = sections[PCS]
    if _RELOCATIONS in sections:
        relocations = content(_RELOCATIONS, _RELOCATION)
        places = relocations["place"]
        inside = relocations[(places >= table.address) & (places < table.address + table.size)]
        symbols = content(_SYMBOLS, _SYMBOL)["value"]  # the first one, of relocations without a symbol, is 0
        addresses[(inside["place"] - table.address) // PC.itemsize] = symbols[inside["symbol"]] + inside["addend"]
    return [int(address) for address in addresses]

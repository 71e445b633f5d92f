"""Tests of edges: programs that clang compiled count them in a file, in listed source files only; maps add them up."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fuzz.errors import ServerError
from fuzz.servers.edges.compiling import edge_options
from fuzz.servers.edges.counters import Counts, EdgeMap, Layout, layout_in
from fuzz.servers.edges.places import places_in
from fuzz.servers.flavor import FLAVORS, GUIDED
from tests.servers.rights import open_to_all

CLANG = FLAVORS[GUIDED].compiler
LISTED = """\
static inline __attribute__((always_inline)) int
inlined(int n)
{
	if (n > 3)
		n = 5;
	return n;
}

int
small(int n)
{
	return inlined(n);
}
"""
MAIN = """\
#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>

extern int pgduel_share_counters(int file);
extern int small(int n);
int before = 1;

int
main(int n, char **v)
{
	if (before != 1 || pgduel_share_counters(open(v[1], O_RDWR)) < 0)
		return 1;
	small(2);
	if (n > 2)
	{
		int (*late)(int) = (int (*)(int)) dlsym(dlopen(v[2], RTLD_NOW), "late");

		if (late(9) != 5)
			return 2;
	}
	return before - 1;
}
"""
LATE = "int late(int n) { return n > 3 ? 5 : n; }\n"


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """Yield a directory with a program and a library that count. The account of servers reads their sections."""
    if not shutil.which(CLANG):
        pytest.skip(f"{CLANG} is not installed")
    with open_to_all() as directory:
        make(directory)
        yield directory


def make(directory: Path, *sanitizer: str) -> None:
    listed = directory / "src" / "backend" / "executor"
    listed.mkdir(parents=True)
    (listed / "listed.c").write_text(LISTED)
    (listed / "late.c").write_text(LATE)
    (directory / "main.c").write_text(MAIN)
    compiling, linking = edge_options(CLANG, sanitized=bool(sanitizer))
    for source in ("./src/backend/executor/listed.c", "./src/backend/executor/late.c", "main.c"):
        compiled = [CLANG, "-g", "-fPIC", *sanitizer, *compiling.split(), "-Wall", "-Werror", "-c", source]
        subprocess.run(compiled, cwd=directory, check=True)
    program = [CLANG, *sanitizer, "-rdynamic", "main.o", "listed.o", *linking.split(), "-o", "program"]
    library = [CLANG, *sanitizer, "-shared", "late.o", *linking.split(), "-o", "late.so"]
    for command in (program, library):
        subprocess.run(command, cwd=directory, check=True)


def counts(home: Path, layout: Layout, *arguments: str) -> Counts:
    """Return the counters of both regions after a run of the program."""
    file = home / "counters"
    file.write_bytes(bytes(layout.size))
    subprocess.run(["./program", "counters", *arguments], cwd=home, check=True)
    read = np.fromfile(file, np.uint8)
    return np.concatenate([read[region.offset : region.offset + region.edges] for region in layout.regions])


def test_a_program_and_a_library_count_in_one_file(home: Path) -> None:
    layout = layout_in((home / "program", home / "late.so"))
    first, second = layout.regions
    assert (first.offset, second.offset % 4096, layout.size % 4096) == (0, 0, 0)
    assert first.edges > 1  # main.c is not listed
    assert second.edges > 1
    alone = counts(home, layout)
    assert alone[: first.edges].sum() > 0
    assert alone[first.edges :].sum() == 0
    both = counts(home, layout, "./late.so")
    assert (both[: first.edges] == alone[: first.edges]).all()
    assert both[first.edges :].sum() > 0


def test_a_program_with_a_sanitizer_counts_too(home: Path) -> None:
    with open_to_all() as directory:
        make(directory, "-fsanitize=address")
        layout = layout_in((directory / "program", directory / "late.so"))
        reached = counts(directory, layout, "./late.so")
        first = layout.regions[0].edges
        assert reached[:first].sum() > 0
        assert reached[first:].sum() > 0


def test_a_program_that_counts_nothing_is_refused(home: Path) -> None:
    (home / "plain.c").write_text("int main(void) { return 0; }\n")
    subprocess.run([CLANG, "plain.c", "-o", "plain"], cwd=home, check=True)
    with pytest.raises(ServerError, match="plain: it counts no edges"):
        layout_in((home / "plain",))


def test_each_edge_has_a_function_and_a_file(home: Path) -> None:
    directory = home / "src" / "backend" / "executor"
    for program, function in (("program", "small"), ("late.so", "late")):
        places = list(places_in(home / program))
        assert len(places) == layout_in((home / program,)).edges
        file = str(directory / ("listed.c" if function == "small" else "late.c"))
        inlined = {((file, "inlined"), (file, function))} if function == "small" else set()
        assert {tuple(frame[:2] for frame in place) for place in places} == {((file, function),)} | inlined
        lines = len(Path(file).read_text().splitlines())
        assert all(1 <= frame.line <= lines for place in places for frame in place)


def test_a_map_tells_new_edges_and_counts_them() -> None:
    seen = EdgeMap(4)
    assert seen.add(np.array([0, 1, 200, 0], np.uint8)) == 2
    assert seen.add(np.array([0, 7, 0, 0], np.uint8)) == 0
    assert seen.reached == 2
    assert seen.add(np.array([1, 0, 0, 0], np.uint8), mark=7) == 1
    assert seen.reached == 3


def test_processes_share_a_map(tmp_path: Path) -> None:
    one, other = (EdgeMap.shared(tmp_path / "edges", 3) for _ in range(2))
    one.add(np.array([1, 0, 0], np.uint8))
    other.add(np.array([0, 0, 7], np.uint8))
    assert (one.reached, other.reached) == (2, 2)
    assert EdgeMap.shared(tmp_path / "edges", 3).reached == 2

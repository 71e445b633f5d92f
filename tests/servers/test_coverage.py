"""Tests of coverage: counts of a program that clang compiled, and the owners of a series' lines."""

import shutil
import subprocess
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from fuzz.report.coverage_result import ranges
from fuzz.servers import git
from fuzz.servers.coverage import (
    Covered,
    FileCoverage,
    PatchCoverage,
    changed_files,
    line_owners,
    read_tracefile,
    together,
)
from fuzz.servers.flavor import COVERAGE, FLAVORS, PROFILE_FILE

PROGRAM = """\
#define BOTH(n) ((n) > 1 || (n) < -5)
static int
idle(int n)
{
	return n;
}
static int
small(int n)
{
	if (BOTH(n))
		return 2;
	return 3;
}
int
main(int n, char **v)
{
	int (*f)(int) = n > 9 ? idle : small;

	return f(n);
}
"""


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> FileCoverage:
    """Return the coverage of PROGRAM after one run without arguments."""
    flavor, directory = FLAVORS[COVERAGE], tmp_path_factory.mktemp("program")
    if not shutil.which(flavor.compiler):
        pytest.skip(f"{flavor.compiler} is not installed")
    (directory / "it.c").write_text(PROGRAM)
    compiling = [flavor.compiler, *flavor.compiler_flags.split(), "-o", "it", "it.c"]
    merging = ["llvm-profdata-19", "merge", "-o", "merged", "it.profraw"]
    exporting = ["llvm-cov-19", "export", "--format=lcov", "--instr-profile=merged", "it"]
    subprocess.run(compiling, cwd=directory, check=True)
    subprocess.run([directory / "it"], cwd=directory, env={PROFILE_FILE: "it.profraw"}, check=False)
    subprocess.run(merging, cwd=directory, check=True)
    exported = subprocess.run(exporting, cwd=directory, check=True, capture_output=True, text=True).stdout
    ((name, found),) = read_tracefile(exported.splitlines())
    assert Path(name) == directory / "it.c"
    return found


def test_functions_lines_and_branches_are_read(counted: FileCoverage) -> None:
    assert counted.functions == {"idle": 0, "small": 1, "main": 1}
    assert counted.not_entered == ["idle"]
    assert counted.lines_not_reached(counted.lines) == [4, 5, 6, 11]
    assert counted.branches_not_reached(counted.branches) == [10, 17]
    assert counted.covered == Covered(lines=13, lines_reached=9, branches=6, branches_reached=3)


def test_some_lines_have_their_own_figures(counted: FileCoverage) -> None:
    assert counted.covered_at([1, 2, 10, 11, 99]) == Covered(3, 2, 4, 2)


def _tree(directory: Path, **files: str) -> str:
    for name, text in files.items():
        (directory / f"{name}.c").write_text(text)
    return git.import_directory(directory)


def test_each_line_belongs_to_the_patch_that_wrote_it_last(tmp_path: Path) -> None:
    base = _tree(tmp_path, one="a\nb\nc\n", two="x\n", same="s\n")
    first = _tree(tmp_path, one="new\na\nb\nc\nend\n")
    second = _tree(tmp_path, one="new\na\nB\nc\nend\n", two="y\nx\n")
    third = _tree(tmp_path, one="new\na\nB\nc\n")  # adds no line
    assert changed_files(base, third) == ["one.c", "two.c"]
    assert line_owners((base, first, second, third), ["one.c", "two.c"]) == [
        {"one.c": {1}},
        {"one.c": {3}, "two.c": {1}},
        {},
    ]


def test_a_patch_has_the_figures_of_its_lines(counted: FileCoverage) -> None:
    patch = PatchCoverage(
        {"it.c": {10: "\tif (BOTH(n))", 11: "\t\treturn 2;"}, "again.c": {17: ""}},
        {"it.c": counted, "again.c": counted},
    )
    assert patch.covered == Covered(3, 2, 6, 3)
    assert PatchCoverage({}, {}).covered == Covered(0, 0, 0, 0)


def test_a_line_is_reached_if_either_measurement_reaches_it(counted: FileCoverage) -> None:
    other = replace(
        counted,
        lines=dict.fromkeys(counted.lines, 0) | {11: 4},
        branches=defaultdict(list, {line: [1] * len(each) for line, each in counted.branches.items()}),
        functions=Counter(idle=2, small=0, main=0),
    )
    one, two = (PatchCoverage({"it.c": {10: "", 11: "", 17: ""}}, {"it.c": each}) for each in (counted, other))
    both = together(one, two)
    assert both.covered == Covered(3, 3, 6, 6)
    assert both.files["it.c"].lines[11] == 4
    assert both.files["it.c"].not_entered == []


def test_tests_are_no_changed_files(tmp_path: Path) -> None:
    (tmp_path / "src" / "test").mkdir(parents=True)
    base = git.import_directory(tmp_path)
    (tmp_path / "src" / "test" / "one.c").write_text("a\n")
    (tmp_path / "src" / "two.c").write_text("a\n")
    assert changed_files(base, git.import_directory(tmp_path)) == ["src/two.c"]


def test_consecutive_lines_are_a_range() -> None:
    assert ranges([7, 3, 5, 6]) == "3, 5-7"
    assert ranges([]) == ""

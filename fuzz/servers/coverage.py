"""Coverage: the reached lines and branches of the server's C, in all of a tree and in the changes of each patch.

It comes from profiles of a build in flavor `coverage`.
"""

import json
import re
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Self

from fuzz import workdir
from fuzz.errors import ServerError, first_line
from fuzz.servers import git
from fuzz.servers.account import server_account
from fuzz.servers.build import Build
from fuzz.servers.internal_errors import internal_errors

# One file per program and library, in which all of its processes count while they run.
PROFILES: Final = "%m%c.profraw"
_MERGE: Final = "llvm-profdata-19"
_EXPORT: Final = "llvm-cov-19"
_HEADER: Final = re.compile(rb"^(?P<commit>[0-9a-f]{40}) \d+ (?P<line>\d+)")  # of a line in git's porcelain format
_SOURCES: Final = (".c", ".h")
_TESTS: Final = re.compile(r"(^|/)(test|tests)/")


@dataclass(frozen=True, slots=True)
class Covered:
    """Numbers of lines and branches of some files, and of those reached. A condition has two branches."""

    lines: int
    lines_reached: int
    branches: int
    branches_reached: int


def total(parts: Iterable[Covered]) -> Covered:
    """Return the sums of all figures."""
    return Covered(*(sum(figures) for figures in zip((0,) * 4, *map(astuple, parts), strict=True)))


@dataclass(frozen=True, slots=True)
class FileCoverage:
    """Counts of one source file: how often each line with code, each branch and each function was executed.

    Branches have the line of their condition. In it, they come in pairs: true, false. Lines of internal errors are left
    out.
    """

    lines: dict[int, int] = field(default_factory=dict)
    branches: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    functions: Counter[str] = field(default_factory=Counter)
    left_out: frozenset[int] = frozenset()  # lines with code

    def without_internal_errors(self, source: str) -> Self:
        """Leave out the internal errors of the file's text, and the branches of conditions that guard only these."""
        found = internal_errors(source)
        lines = {line: count for line, count in self.lines.items() if line not in found.errors}
        without = found.errors | found.conditions
        branches = {line: counts for line, counts in self.branches.items() if line not in without}
        left_out = frozenset(self.lines.keys() - lines.keys())
        return replace(self, lines=lines, branches=defaultdict(list, branches), left_out=left_out)

    def plus(self, other: Self) -> Self:
        """Return the sums of both counts of one file."""
        lines = {line: count + other.lines[line] for line, count in self.lines.items()}
        branches = {
            line: list(map(sum, zip(counts, other.branches[line], strict=True)))
            for line, counts in self.branches.items()
        }
        functions = self.functions + other.functions
        return replace(self, lines=lines, branches=defaultdict(list, branches), functions=functions)

    @property
    def covered(self) -> Covered:
        """Return the numbers of lines and branches."""
        return self.covered_at(self.lines.keys() | self.branches.keys())

    def covered_at(self, lines: Iterable[int]) -> Covered:
        """Return the numbers of some lines with code and their branches."""
        chosen = set(lines)
        counts = [self.lines[line] for line in chosen & self.lines.keys()]
        branches = [count for line in chosen & self.branches.keys() for count in self.branches[line]]
        return Covered(len(counts), sum(map(bool, counts)), len(branches), sum(map(bool, branches)))

    @property
    def lines_reached(self) -> set[int]:
        """Return the lines with code that were reached."""
        return {line for line, count in self.lines.items() if count}

    def lines_not_reached(self, lines: Iterable[int]) -> list[int]:
        """Return those of some lines that have code and were not reached."""
        return sorted(line for line in lines if self.lines.get(line) == 0)

    def branches_not_reached(self, lines: Iterable[int]) -> list[int]:
        """Return those of some lines that were reached, but not all of their branches."""
        return sorted(line for line in lines if self.lines.get(line) and 0 in self.branches.get(line, ()))

    @property
    def not_entered(self) -> list[str]:
        """Return the names of the functions that were never called."""
        return sorted(name for name, calls in self.functions.items() if not calls)


def require_tools() -> None:
    """Check that the tools which read profiles are installed. Raises ServerError."""
    for tool in (_MERGE, _EXPORT):
        tool_output(tool, "--version")


def paths_named(build: Build, names: Sequence[str]) -> list[str]:
    """Return the files of a build's tree that names mean: a name is a path or its end.

    Raises ServerError if there is none.
    """
    listing = ("--git-dir", git.repository(), "ls-tree", "-r", "-z", "--name-only", build.tree)
    listed = git.output(*listing, failing=f"no tree {build.tree}").decode(errors="surrogateescape").split("\0")
    found: dict[str, None] = {}
    for name in names:
        paths = [path for path in listed if f"/{path}".endswith(f"/{name}")]
        if not paths:
            raise ServerError(f"the measured arm has no file {name}; give --file a name such as nodeHash.c")
        found |= dict.fromkeys(paths)
    return list(found)


def file_coverage(build: Build, profiles: Path, files: Sequence[str]) -> dict[str, FileCoverage]:
    """Return the coverage of files of a build's tree, by their paths in it, without files that are not compiled.

    `profiles` is the directory with the counts of its processes, which may still run. Raises ServerError.
    """
    found = dict(_tracefile(build, profiles))
    places = {file: str(build.source / file) for file in files}
    return {
        file: found[place].without_internal_errors(git.show(build.tree, file) or "")
        for file, place in places.items()
        if place in found
    }


def function_calls(build: Build, profiles: Path) -> dict[tuple[str, str], int]:
    """Return the calls of each function, by the file's path in the build's tree and by name. Raises ServerError."""
    tree = f"{build.source}/"
    return {
        (place.removeprefix(tree), name): calls
        for place, found in _tracefile(build, profiles)
        if place.startswith(tree)
        for name, calls in found.functions.items()
    }


def _tracefile(build: Build, profiles: Path) -> Iterator[tuple[str, FileCoverage]]:
    with _merged(profiles) as merged:
        exported = tool_output(_EXPORT, "export", "--format=lcov", f"--instr-profile={merged}", *_objects(build))
    return read_tracefile(exported.splitlines())


def write_html(build: Build, profiles: Path, files: Sequence[str], directory: Path) -> None:
    """Write annotated source of files of a build's tree into a directory, as HTML. Raises ServerError, StorageError.

    llvm-cov needs the source, which is deleted after the compilation. It writes as the account of servers.
    """
    account = server_account()
    with _merged(profiles) as merged, tempfile.TemporaryDirectory(prefix="pgduel-source-") as name:
        source = Path(name)
        account.lend(source)
        git.extract(build.tree, source, *files)
        pages = account.make_private(source / "pages")
        where = (f"--path-equivalence={build.source},{source}", f"--instr-profile={merged}", f"--output-dir={pages}")
        options = ("--format=html", "--show-branches=count", "--show-expansions=false")
        tool_output(_EXPORT, "show", *options, *where, *_objects(build), *(source / file for file in files))
        _copy(pages, directory)


def _copy(pages: Path, directory: Path) -> None:
    """Copy files of the account into a directory of the caller."""
    account = server_account()
    with account.file_access():
        contents = {path.relative_to(pages): path.read_bytes() for path in sorted(pages.rglob("*")) if path.is_file()}
    for path, content in contents.items():
        with workdir.writing(directory / path):
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            (directory / path).write_bytes(content)


def read_tracefile(lines: Iterable[str]) -> Iterator[tuple[str, FileCoverage]]:
    """Yield name and coverage of each file of a tracefile of lcov (geninfo(1))."""
    name, found = "", FileCoverage()
    for line in lines:
        kind, _, record = line.partition(":")
        fields = record.split(",")
        if kind == "SF":
            name, found = record, FileCoverage()
        elif kind == "DA":
            found.lines[int(fields[0])] = int(fields[1])
        elif kind == "BRDA":
            found.branches[int(fields[0])].append(0 if fields[3] == "-" else int(fields[3]))
        elif kind == "FNDA":  # a static function has its file's name before its own
            found.functions[fields[1].rpartition(":")[2]] += int(fields[0])
        elif kind == "end_of_record":
            yield name, found


def covered(program: Path, profiles: Path, directories: Sequence[str]) -> dict[str, Covered]:
    """Return the coverage of each source directory by a program. Raises ServerError.

    `profiles` is the directory with the counts of its processes, which may still run.
    """
    with _merged(profiles) as merged:
        summary = json.loads(tool_output(_EXPORT, "export", "--summary-only", f"--instr-profile={merged}", program))
    files = summary["data"][0]["files"]
    return {
        name: _summed([file["summary"] for file in files if f"/{name}/" in file["filename"]]) for name in directories
    }


def keep_counts(profiles: Path, directory: Path, name: str) -> Path:
    """Merge the counts of a server's processes into a file of another directory of the account, and return the file.

    Raises ServerError.
    """
    with server_account().file_access():
        written = sorted(profiles.glob("*.profraw"))
    merged = directory / f"{name}.profraw"
    tool_output(_MERGE, "merge", "-o", merged, *written)
    return merged


@contextmanager
def _merged(profiles: Path) -> Iterator[Path]:
    """Merge the profiles of all programs into one file of the account, which is deleted afterwards."""
    account = server_account()
    with tempfile.TemporaryDirectory(prefix="pgduel-coverage-") as directory:
        account.give(Path(directory))
        yield keep_counts(profiles, Path(directory), "all")


def _objects(build: Build) -> list[str | Path]:
    """Return the server and the libraries that it may load, as arguments of llvm-cov."""
    libraries = sorted((build.prefix / "lib" / "postgresql").glob("*.so"))
    return [build.bindir / "postgres", *(f"--object={library}" for library in libraries)]


def _summed(summaries: Sequence[Any]) -> Covered:
    counts = (
        sum(summary[kind][figure] for summary in summaries)
        for kind in ("lines", "branches")
        for figure in ("count", "covered")
    )
    return Covered(*counts)


def tool_output(tool: str, *arguments: str | Path, given: str = "", failing: str = "cannot read coverage") -> str:
    """Return the output of an LLVM tool. Raises ServerError, with `failing` as the first words of its message."""
    try:
        options = server_account().options()  # these tools read files of patched programs
        done = subprocess.run([tool, *arguments], input=given, capture_output=True, text=True, **options)
    except FileNotFoundError as error:
        raise ServerError(f"{failing} without {tool}; see {workdir.COMMAND} doctor") from error
    if done.returncode:
        raise ServerError(f"{failing}: {first_line(done.stderr)}")
    return done.stdout


@dataclass(frozen=True, slots=True)
class PatchCoverage:
    """The lines of the final tree that a patch wrote last, and the coverage of the files that have them."""

    lines: Mapping[str, Mapping[int, str]]  # file -> number -> text
    files: Mapping[str, FileCoverage]

    @property
    def covered(self) -> Covered:
        """Return the numbers of lines and branches in all files."""
        return total(self.files[file].covered_at(lines) for file, lines in self.lines.items())


def together(one: PatchCoverage, other: PatchCoverage) -> PatchCoverage:
    """Return the sums of a patch's counts in two measurements of one build."""
    return PatchCoverage(one.lines, {file: found.plus(other.files[file]) for file, found in one.files.items()})


def patch_coverage(build: Build, profiles: Path, trees: Sequence[str]) -> tuple[PatchCoverage, ...]:
    """Return the coverage of each patch of a build's series. `trees` are the base and the tree after each patch.

    Raises ServerError, SourceError.
    """
    files = file_coverage(build, profiles, changed_files(trees[0], trees[-1]))
    texts = {file: (git.show(trees[-1], file) or "").split("\n") for file in files}
    return tuple(
        PatchCoverage({file: _with_texts(owned[file], texts[file]) for file in sorted(owned)}, files)
        for owned in line_owners(trees, list(files))
    )


def _with_texts(lines: Iterable[int], texts: Sequence[str]) -> dict[int, str]:
    return {line: texts[line - 1] for line in sorted(lines)}


def changed_files(before: str, after: str) -> list[str]:
    """Return the C files and headers of a tree that differ from those of another, without tests.

    Raises SourceError.
    """
    changed = git.changed_files(before, after, deleted=False)
    return [path for path in changed if path.endswith(_SOURCES) and not _TESTS.search(path)]


def line_owners(trees: Sequence[str], files: Sequence[str]) -> list[dict[str, set[int]]]:
    """Return for each tree but the first, in order: the lines of the last tree that it wrote last, by file.

    Raises SourceError.
    """
    commits = git.chain(trees)
    owners: list[dict[str, set[int]]] = [{} for _ in commits[1:]]
    numbers = {commit: number for number, commit in enumerate(commits[1:])}
    for file in files:
        for commit, line in _blamed(commits[-1], file):
            if commit in numbers:
                owners[numbers[commit]].setdefault(file, set()).add(line)
    return owners


def _blamed(commit: str, file: str) -> Iterator[tuple[str, int]]:
    """Yield the commit that wrote each line of a file, with the line's number."""
    failing = f"cannot find the origin of the lines of {file}"
    blamed = git.output("--git-dir", git.repository(), "blame", "--porcelain", commit, "--", file, failing=failing)
    for line in blamed.split(b"\n"):
        if header := _HEADER.match(line):  # the text of a line has a tab before it
            yield header["commit"].decode(), int(header["line"])

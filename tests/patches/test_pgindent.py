"""Test of the patches' C code: PostgreSQL's pgindent changes no line that a patch adds.

pgindent and its pg_bsd_indent are those of the patched tree, and so are the names of types. Lines of PostgreSQL itself
do not count: those of a released branch are not always as pgindent would have them.
"""

import subprocess
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path

import pytest

from fuzz import workdir
from fuzz.servers import git
from fuzz.servers.base import Base, resolve_base
from fuzz.servers.build import Build
from fuzz.servers.coverage import line_owners
from fuzz.servers.series import Patch, Series, apply_series, series_from_directory

pytestmark = [pytest.mark.servers, pytest.mark.long(group="pgindent")]

PATCHES = workdir.PROJECT / "patches"
SERIES = sorted(path.parent for path in PATCHES.glob("pg*/**/series"))
TOOLS = ("src/tools/pgindent", "src/tools/pg_bsd_indent")
PLANTED_FILE = "src/backend/planted.c"
PLANTED = f"""\
diff --git a/{PLANTED_FILE} b/{PLANTED_FILE}
new file mode 100644
--- /dev/null
+++ b/{PLANTED_FILE}
@@ -0,0 +1,5 @@
+int
+planted(int a)
+{{
+    return planted( 1 );
+}}
"""


@pytest.mark.parametrize("directory", SERIES, ids=lambda path: str(path.relative_to(PATCHES)))
def test_pgindent_changes_no_line_of_a_patch(directory: Path, build: Build, tmp_path: Path) -> None:
    base = resolve_base(directory.relative_to(PATCHES).parts[0], print)
    indent = _pg_bsd_indent(base, build, tmp_path)
    series = _with_baseline(directory)
    changed = []
    for patch, (before, after) in zip(series.patches, pairwise(apply_series(base.tree, series)), strict=True):
        if (directory / patch.name).exists():  # those of other series are tested with these
            changed += [
                f"{patch.name}: {line}" for line in _changed_lines(before, after, indent, tmp_path / patch.name)
            ]
    assert not changed, "\n".join(changed)


def test_pgindent_changes_a_line_that_is_indented_wrongly(build: Build, tmp_path: Path) -> None:
    base = resolve_base("pg17", print)
    planted = Series("planted", (Patch("planted.patch", PLANTED.encode()),))
    indent = _pg_bsd_indent(base, build, tmp_path)
    changed = list(_changed_lines(base.tree, apply_series(base.tree, planted)[-1], indent, tmp_path / "checkout"))
    assert changed == [f"{PLANTED_FILE}:4\n-    return planted( 1 );\n+\treturn planted(1);"]


def _with_baseline(directory: Path) -> Series:
    own = series_from_directory(directory)
    baseline = directory.parent / "baseline"
    if directory.name == "optimizations" and (baseline / "series").exists():
        return series_from_directory(baseline) + own
    return own


def _pg_bsd_indent(base: Base, build: Build, directory: Path) -> Path:
    """Compile pg_bsd_indent of a base with the installed headers and libraries of a build."""
    git.extract(base.tree, directory, *TOOLS)
    program = directory / "pg_bsd_indent"
    sources = sorted((directory / TOOLS[1]).glob("*.c"))
    headers = [f"-I{build.prefix / 'include' / 'postgresql' / name}" for name in ("server", "internal")]
    libraries = [f"-L{build.prefix / 'lib'}", "-lpgcommon", "-lpgport", "-lm"]
    _run("gcc", "-w", "-o", program, *headers, *sources, *libraries)
    return program


def _changed_lines(before: str, after: str, indent: Path, checkout: Path) -> Iterator[str]:
    """Yield the changes that the second tree's pgindent makes to lines between two trees."""
    files = [file for file in git.changed_files(before, after, deleted=False) if file.endswith((".c", ".h"))]
    if not files:
        return
    checkout.mkdir()
    git.extract(after, checkout, "src/tools/pgindent", *files)
    texts = {file: _lines(checkout / file) for file in files}
    pgindent = checkout / "src/tools/pgindent"
    command = ("perl", pgindent / "pgindent", f"--indent={indent}", f"--typedefs={pgindent / 'typedefs.list'}")
    _run(*command, *files, directory=checkout)
    (owned,) = line_owners((before, after), files)
    for file, old in texts.items():
        new = _lines(checkout / file)
        if new == old:
            continue
        mine = owned.get(file, set())
        for tag, first, last, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            numbers = set(range(first + 1, last + 1)) or {first, first + 1}  # an insertion is between two lines
            if tag != "equal" and numbers & mine:
                yield "\n".join((f"{file}:{first + 1}", *_marked("-", old[first:last]), *_marked("+", new[start:end])))


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def _marked(mark: str, lines: list[str]) -> list[str]:
    return [f"{mark}{line}" for line in lines]


def _run(*command: str | Path, directory: Path | None = None) -> None:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr, done.stderr  # pgindent reports files that it cannot read, and exits with 0

"""Test of `pgduel coverage` on real servers: known functions are entered, and each patch's lines are named."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz import workdir
from fuzz.report.coverage_result import read_coverage
from fuzz.servers.account import server_account
from fuzz.servers.arm import build_arms, parse_arm
from fuzz.servers.base import resolve_base
from fuzz.servers.coverage import file_coverage
from fuzz.servers.flavor import COVERAGE, FLAVORS
from fuzz.servers.regress import count_suites
from fuzz.servers.release import DEFAULT
from fuzz.servers.series import series_from_directory
from tests.cli.command import Command, json_of

pytestmark = [pytest.mark.servers, pytest.mark.long(group="coverage"), pytest.mark.timeout(2400)]

SERIES = workdir.PROJECT / "patches" / "pg17"
GENERATORS = ("copy_batches", "foreign_analyze", "hash_growth", "many_partitions", "outer_joins")  # one for each patch
WHAT = (*(word for name in GENERATORS for word in ("--generator", name)), "--cases", "15", "--seed", "1")


def test_files_and_patches_have_their_lines(pgduel: Command, tmp_path: Path) -> None:
    file, pages = tmp_path / "coverage.json", tmp_path / "pages"
    ended = pgduel("coverage", *WHAT, "--series", "--html", pages, "--json", file)
    found = json_of(ended, file, 0)
    joins = found["files"]["src/backend/executor/nodeHashjoin.c"]
    assert "ExecHashJoin" not in joins["functions_not_entered"]
    assert "copy_dest_destroy" in found["files"]["src/backend/commands/copyto.c"]["functions_not_entered"]
    assert 0 < joins["lines_reached"] < joins["lines"]
    assert 0 < joins["branches_reached"] < joins["branches"]
    remote = found["files"]["contrib/postgres_fdw/postgres_fdw.c"]
    assert "postgresAcquireSampleRowsFunc" not in remote["functions_not_entered"]
    shipped = [series_from_directory(SERIES / part) for part in ("baseline", "optimizations")]
    assert [patch["patch"] for patch in found["patches"]] == [
        patch.name for series in shipped for patch in series.patches
    ]
    without_lines = {patch["patch"][:11] for patch in found["patches"] if not patch["lines"]}
    assert without_lines == {"0002-Revert"}  # 0016 adds the removed lines again
    assert [patch.whole.covered.lines for patch in read_coverage(file).patches] == [
        patch["lines"] for patch in found["patches"]
    ]
    assert [patch["patch"] for patch in found["patches"] if patch["lines"] and not patch["lines_reached"]] == []
    assert any(page.name == "nodeHashjoin.c.html" for page in pages.rglob("*"))
    assert "nodeHashjoin.c" in ended.out


@pytest.fixture
def counts() -> Iterator[Path]:
    """Return a directory of the account of servers, which cannot enter those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        server_account().lend(Path(name))
        yield server_account().make_private(Path(name, "counts"))


def test_what_postgresqls_own_suites_reach_is_counted(counts: Path) -> None:
    ((build, _),) = build_arms([parse_arm("it=patched", resolve_base(DEFAULT, print), FLAVORS[COVERAGE], print)], print)
    name, result = next(count_suites(build, counts))
    assert name == "regress"
    assert not result.failed, result.summary
    file = "src/backend/partitioning/partprune.c"
    found = file_coverage(build, counts, [file])[file]
    assert found.covered.lines_reached > 0.9 * found.covered.lines
    assert 0 < len(found.left_out) < 0.05 * found.covered.lines


def test_a_file_that_the_tree_lacks_is_refused(pgduel: Command) -> None:
    ended = pgduel("coverage", *WHAT, "--file", "nowhere.c")
    assert ended.status == 2
    assert ended.err == "pgduel: the measured arm has no file nowhere.c; give --file a name such as nodeHash.c\n"

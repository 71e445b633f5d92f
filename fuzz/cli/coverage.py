"""`pgduel coverage`: the lines, branches and functions of PostgreSQL that a campaign reaches."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

import typer

from fuzz.campaign.pool import processors
from fuzz.cli import options
from fuzz.cli.app import app, console, say, write_json
from fuzz.cli.fuzz import new_plan
from fuzz.cli.run_campaign import run_campaign
from fuzz.errors import CanaryMissed
from fuzz.report.coverage_result import annotated_json, file_json, patch_json, print_files, print_patches
from fuzz.report.summary import print_summary
from fuzz.servers.account import server_account
from fuzz.servers.arm import Arm
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.build import Build
from fuzz.servers.coverage import (
    FileCoverage,
    PatchCoverage,
    file_coverage,
    patch_coverage,
    paths_named,
    require_tools,
    write_html,
)
from fuzz.servers.flavor import COVERAGE
from fuzz.servers.regress import count_suites

# What the mails' patches change, and the code in which injected bugs were found late.
_FILES: Final = (
    "src/backend/partitioning/partbounds.c",
    "src/backend/partitioning/partprune.c",
    "src/backend/partitioning/partdesc.c",
    "src/backend/executor/execPartition.c",
    "src/backend/executor/nodeAppend.c",
    "src/backend/executor/nodeMergeAppend.c",
    "src/backend/executor/nodeHash.c",
    "src/backend/executor/nodeHashjoin.c",
    "src/backend/executor/nodeModifyTable.c",
    "src/backend/commands/copyfrom.c",
    "src/backend/commands/copyfromparse.c",
    "src/backend/commands/copyto.c",
    "src/backend/utils/resowner/resowner.c",
    "src/backend/optimizer/path/equivclass.c",
    "src/backend/optimizer/path/joinrels.c",
    "src/backend/optimizer/path/joinpath.c",
    "src/backend/optimizer/path/pathkeys.c",
    "src/backend/commands/analyze.c",
    "contrib/postgres_fdw/postgres_fdw.c",
    "contrib/postgres_fdw/deparse.c",
)
_ARM: Final = "patched"
_PANEL: Final = "What is measured"
_Coverage = tuple[Mapping[str, FileCoverage], Sequence[PatchCoverage]]


@dataclass
class _Measurement:
    """The coverage of the last arm of a campaign."""

    wanted: Sequence[str]  # names of files
    with_series: bool
    with_suites: bool
    html: Path | None
    files: Mapping[str, FileCoverage] = field(default_factory=dict)
    patches: Sequence[PatchCoverage] = ()
    suites: Mapping[str, FileCoverage] = field(default_factory=dict)  # the same files by PostgreSQL's suites
    patches_of_suites: Sequence[PatchCoverage] = ()

    @contextmanager
    def counting(self, arms: Sequence[Arm]) -> Iterator[None]:
        """Read the counts at the end, while the servers still exist. Raises PgduelError."""
        build, profiles = arms[-1].build, arms[-1].cluster.coverage
        paths = paths_named(build, self.wanted)  # a mistake ends the command before its campaign
        trees = arms[-1].trees if self.with_series else ()
        if self.with_suites:
            self.suites, self.patches_of_suites = _suites_coverage(build, paths, trees)
        yield
        self.files, self.patches = _coverage(build, profiles, paths, trees)
        if self.html is not None:
            write_html(build, profiles, list(self.files), self.html)


def _suites_coverage(build: Build, paths: Sequence[str], trees: Sequence[str]) -> _Coverage:
    """Return the coverage by PostgreSQL's own suites. Raises PgduelError."""
    with tempfile.TemporaryDirectory(prefix="pgduel-suites-") as name:
        server_account().lend(Path(name))
        counts = server_account().make_private(Path(name, "counts"))
        for suite, result in count_suites(build, counts):
            say(f"{suite}: {len(result.passed)} tests passed, {len(result.failed)} failed")
        return _coverage(build, counts, paths, trees)


def _coverage(build: Build, counts: Path, paths: Sequence[str], trees: Sequence[str]) -> _Coverage:
    """Return the coverage of files and, if there are trees, of the patches between them. Raises PgduelError."""
    return file_coverage(build, counts, paths), patch_coverage(build, counts, trees) if trees else ()


@app.command()
def coverage(
    *,
    minutes: options.Minutes = None,
    cases: options.Cases = None,
    seed: options.Seed = None,
    generator: options.GeneratorOption = None,
    oracle: options.OracleOption = None,
    sql: options.Sql = None,
    file: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="File of PostgreSQL's source: a name or the end of a path (repeat the option). Default: files of "
            "partitions, joins, COPY, ANALYZE, resource owners and postgres_fdw.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    series: Annotated[
        bool,
        typer.Option(
            "--series",
            help="Print also the lines that each patch of the arm's series adds or changes.",
            rich_help_panel=_PANEL,
        ),
    ] = False,
    suites: Annotated[
        bool,
        typer.Option(
            "--suites",
            help="Run PostgreSQL's own suites first (regress, isolation, modules), and print what they reach, too.",
            rich_help_panel=_PANEL,
        ),
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write annotated source to DIR.",
            callback=options.writable_directory,
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None,
    base: options.Base = None,
    repo: options.Repo = None,
    arm: options.ArmOption = None,
    manifest: options.Manifest = None,
    setting: options.SetOption = None,
    json_file: options.JsonFile = None,
) -> None:
    """Run a campaign on servers that count, and print the reached lines, branches and functions of the last arm.

    The arm is `patched` unless --arm names others. Canaries and repeated runs count too; reduction has other servers.
    """
    arms = ArmOptions.given(base, None, repo, None, arm or [_ARM], COVERAGE, manifest, setting)
    plan = new_plan(
        arms,
        options.given(sql),
        seed=seed,
        generators=generator,
        oracles=oracle,
        minutes=minutes,
        cases=cases,
        even=True,
    )
    require_tools()
    measured = _Measurement(file or _FILES, series, suites, html)
    summary = run_campaign(None, plan, processors(), console, new_seed=seed is None, while_open=measured.counting)
    names = list(summary.arms.values())[-1]["series"]
    patches = list(zip(names, measured.patches, strict=series))
    by_suites: Sequence[PatchCoverage | None] = measured.patches_of_suites or [None] * len(patches)
    print_summary(console, summary)
    print_files(console, measured.files, measured.suites)
    if series:
        print_patches(console, patches, measured.patches_of_suites)
    write_json(
        json_file,
        {
            "arms": summary.arms,
            "seed": summary.seed,
            "cases": summary.counters.cases.total(),
            "files": {name: file_json(each) for name, each in measured.files.items()},
            "suites": {name: file_json(each) for name, each in measured.suites.items()},
            "patches": [
                {"patch": name, **annotated_json(each, suites)}
                for (name, each), suites in zip(patches, by_suites, strict=True)
            ],
            "patches_of_suites": [patch_json(each) for each in measured.patches_of_suites],
        },
    )
    if summary.missed:
        raise CanaryMissed(summary.missed)
    raise typer.Exit(summary.exit_code)

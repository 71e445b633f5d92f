"""`pgduel mutate`: mutants of the lines that a series adds, held against a duel and the series' own tests."""

from pathlib import Path
from typing import Annotated, Final

import typer

from fuzz import __version__
from fuzz.campaign.stop import interruptible
from fuzz.cli import options
from fuzz.cli.app import app, console, say, write_files, write_json
from fuzz.errors import PgduelError
from fuzz.mutation.mutants import mutator_version
from fuzz.mutation.result import MutantOutcome
from fuzz.mutation.run import MutationRun, Subject, Wanted, subject_of
from fuzz.mutation.store import opened
from fuzz.report.mutants_table import (
    annotated,
    mutants_json,
    print_control,
    print_failures,
    print_mutants,
    print_survivors,
    print_unconfirmed,
    print_without_time,
)
from fuzz.report.terminal import display
from fuzz.servers import git
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.flavor import DEFAULT_FLAVOR
from fuzz.sources.source import UserInput
from fuzz.sources.workloads import require_workload

_PANEL: Final = "Mutants"
_DUEL_SECONDS: Final = 120.0


@app.command()
def mutate(
    *,
    mutants: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of mutants to judge.", rich_help_panel=_PANEL)
    ] = 120,
    cases: Annotated[
        int, typer.Option(min=1, metavar="N", help="Maximum number of cases for a mutant.", rich_help_panel=_PANEL)
    ] = 100,
    seconds: Annotated[
        float,
        typer.Option(
            min=1,
            max=1e6,
            metavar="N",
            help="Seconds after which a mutant gets no further case.",
            rich_help_panel=_PANEL,
        ),
    ] = _DUEL_SECONDS,
    minutes: Annotated[
        float,
        options.minutes_option(
            "Minutes after which no further mutant is judged. The same command continues.", rich_help_panel=_PANEL
        ),
    ] = 60.0,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Seed of the draw of mutants, and of the cases.", rich_help_panel=_PANEL)
    ] = 1,
    generator: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Generator or source of the cases (repeat the option). Default: those of a campaign without options.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write the mutated files to DIR, with each mutant below its line.",
            callback=options.writable_directory,
            rich_help_panel=_PANEL,
            show_default=False,
        ),
    ] = None,
    base: options.Base = None,
    series: options.SeriesOption = None,
    repo: options.Repo = None,
    commits: options.Range = None,
    arm: options.ArmOption = None,
    flavor: options.FlavorOption = DEFAULT_FLAVOR,
    manifest: options.Manifest = None,
    setting: options.SetOption = None,
    json_file: options.JsonFile = None,
) -> None:
    """Change lines that a series adds, one at a time, and count the detected ones: by the duel, or by its own tests.

    The lines are those of the last arm's patches that the first arm lacks. Each mutant is compiled, then compared with
    the build without the mutation, and tested. Exit status 1 if a mutant survives.
    """
    given = ArmOptions.given(base, series, repo, commits, arm, flavor, manifest, setting)
    names = tuple(require_workload(name, UserInput()) for name in generator or ())
    mutator = mutator_version()
    wanted = Wanted(seed, mutants, cases, seconds, minutes * 60, names)
    with display(console, None) as shown:
        subject = subject_of(given.specs(shown.progress))
        shown.progress("finding the mutants of the series' lines")
        if not subject.lines:
            raise PgduelError("no patch adds a line of the server's C that can be mutated; give others with --series")
        identity = (*subject.identity, __version__, mutator, str(seed), str(cases), *names)
        with opened(identity) as store, interruptible() as interrupt:
            run = MutationRun(subject, wanted, store, shown.progress, shown.say, lambda: bool(interrupt))
            ended = run.run()
    if store.control is not None:
        print_control(console, store.control)
    print_failures(console, run.results)
    print_unconfirmed(console, run.results)
    print_without_time(console, run.results)
    print_survivors(console, run.results, store.patch)
    print_mutants(console, [patch.name for patch in subject.patches], run.results)
    limits = f"at most {cases} cases and {seconds:g} seconds each"
    say(f"{ended}; seed {seed}, {limits}; results are kept in {store.directory}")
    facts = {"seed": seed, "cases": cases, "seconds": seconds, "ended": ended}
    write_json(json_file, facts | mutants_json(run.results, subject.lines))
    if source is not None:
        write_files(source, annotated(run.results, _texts(subject)))
    raise typer.Exit(_exit_code([each.outcome for each in run.results if each.judged]))


def _texts(subject: Subject) -> dict[str, str]:
    tree = subject.trees[-1]
    return {file: git.show(tree, file) or "" for file in dict.fromkeys(line.file for line in subject.lines)}


def _exit_code(judged: list[MutantOutcome]) -> int:
    if not judged:
        return 2
    return 1 if MutantOutcome.NOBODY in judged else 0

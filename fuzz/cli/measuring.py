"""The common part of all commands of `pgduel bench`: options, measurements and tables."""

import functools
import inspect
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer

from fuzz import workdir
from fuzz.bench.bench import NO_MAIL, Bench, BenchError, Point
from fuzz.bench.default_arms import default_arms
from fuzz.bench.kept_data import have_equal_catalogs, kept_data
from fuzz.bench.kept_visits import kept_measurements
from fuzz.bench.run import Limits, Row, run_bench
from fuzz.campaign.stop import Interrupt, interruptible
from fuzz.cli import options
from fuzz.cli.app import console, say, write_json
from fuzz.documents import from_data
from fuzz.report.bench_result import BenchResult, print_headlines, print_rows, row_json
from fuzz.report.terminal import display
from fuzz.servers import Report
from fuzz.servers.arm import Arm, ArmSpec, build_arms, open_arms, remarks
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.base import resolve_base
from fuzz.servers.build import Build
from fuzz.servers.release import DEFAULT as DEFAULT_BASE

Chosen = tuple[Bench, list[Point]]


@dataclass(frozen=True, slots=True)
class Selection:
    """Benches and their points. `minutes` is a limit of time for all together."""

    benches: Sequence[Chosen]
    minutes: float | None = None


_RELEASE = "release"
_MOST_ROUNDS = 50  # with a limit of time, which ends the rounds before
_INTERRUPTED = 2  # exit status
_Rounds = Annotated[
    int | None,
    typer.Option(
        min=2,
        help="Measurements of each arm at each point. Default: the bench's own; with a limit of time, as many as fit.",
    ),
]
_Seconds = Annotated[int, typer.Option(min=1, help="Length of each measurement.")]
_Resume = Annotated[
    bool, typer.Option("--resume", help="Continue the last run of the same command, which was interrupted.")
]


def numbers(text: str | None, option: str) -> list[int]:
    """Return the numbers in an option's value. Raises BenchError."""
    try:
        return [int(part) for part in (text or "").split(",") if part.strip()]
    except ValueError as error:
        raise BenchError(f"cannot read {option} {text}; give whole numbers, separated by commas") from error


def measuring(choose: Callable[..., Selection | Sequence[Chosen]]) -> Callable[..., None]:
    """Make a command from a function that returns benches and points. Its own options precede those of `_measure`."""
    own = inspect.signature(choose).parameters
    _, *shared = inspect.signature(_measure).parameters.values()

    @functools.wraps(choose)
    def run(**given: Any) -> None:
        chosen = choose(**{name: given.pop(name) for name in own})
        _measure(chosen if isinstance(chosen, Selection) else Selection(chosen), **given)

    run.__signature__ = inspect.Signature([*own.values(), *shared])  # type: ignore[attr-defined]  # Typer reads it
    return run


def _measure(
    selection: Selection,
    *,
    rounds: _Rounds = None,
    seconds: _Seconds = 1,
    resume: _Resume = False,
    base: options.Base = None,
    series: options.SeriesOption = None,
    repo: options.Repo = None,
    commits: options.Range = None,
    arm: options.ArmOption = None,
    flavor: options.FlavorOption = _RELEASE,
    manifest: options.Manifest = None,
    setting: options.SetOption = None,
    json_file: options.JsonFile = None,
) -> None:
    wanted = ArmOptions.given(base, series, repo, commits, arm, flavor, manifest, setting)
    effort = _Effort(rounds, seconds, resume)
    with display(console, None) as shown:
        runs = _prepared(selection.benches, wanted, shown.progress, limited=selection.minutes is not None)
        for line in dict.fromkeys(line for run in runs for line in remarks(run.specs)):
            shown.say(line)
    say(_expected(runs, effort, selection.minutes))
    results: list[dict[str, Any]] = []
    with interruptible() as interrupt:
        for run, limits in _limited(runs, effort, selection.minutes, interrupt):
            results += _results(run, effort, limits)
            write_json(json_file, results[0] if results and len(runs) == 1 else results)
    if len(runs) > 1:
        print_headlines(console, [from_data(each, BenchResult) for each in results])
    if interrupt:
        say("interrupted; all finished rounds are kept, and the same command with --resume continues")
        raise typer.Exit(_INTERRUPTED)


@dataclass(frozen=True, slots=True)
class _Effort:
    rounds: int | None
    seconds: int
    resume: bool

    def rounds_of(self, bench: Bench, *, limited: bool) -> int:
        return self.rounds or (_MOST_ROUNDS if limited else bench.rounds)


@dataclass(frozen=True, slots=True)
class _Run:
    """A bench with its built arms. `own_arms`: they are the bench's default arms, which may share data."""

    bench: Bench
    points: Sequence[Point]
    options: ArmOptions
    specs: Sequence[ArmSpec]
    own_arms: bool
    builds: Sequence[Build] = ()

    @property
    def seconds_a_round(self) -> float:
        """Return the typical duration of a round."""
        return self.bench.typical_seconds * len(self.points) * len(self.specs)


def _prepared(chosen: Sequence[Chosen], wanted: ArmOptions, report: Report, *, limited: bool) -> list[_Run]:
    """Return the benches with their arms, all of which are built. Raises BenchError, SourceError, BuildError."""
    runs = [_run(bench, points, wanted, report, limited=limited) for bench, points in chosen]
    for run in runs:
        if len(run.specs) < 2:
            raise BenchError("a ratio needs two arms; name another with --arm")
    return [replace(run, builds=[build for build, _ in build_arms(run.specs, report)]) for run in runs]


def _run(bench: Bench, points: Sequence[Point], wanted: ArmOptions, report: Report, *, limited: bool) -> _Run:
    own: tuple[str, ...] = ()
    if not (wanted.arms or wanted.series or wanted.range):
        base = resolve_base(wanted.base or DEFAULT_BASE, report)
        own = default_arms(bench, base, () if limited else bench.beside)
    given = replace(wanted, arms=own) if own else wanted
    return _Run(bench, points, given, given.specs(report), own_arms=bool(own))


def _limited(
    runs: Sequence[_Run], effort: _Effort, minutes: float | None, interrupt: Interrupt
) -> Iterator[tuple[_Run, Limits]]:
    """Yield the benches in order, each with its part of the time that is left, until an interrupt."""
    until = None if minutes is None else time.monotonic() + minutes * 60
    for place, run in enumerate(runs):
        if interrupt:
            return
        rounds = effort.rounds_of(run.bench, limited=until is not None)
        mine = None
        if until is not None:
            now = time.monotonic()
            mine = now + (until - now) * run.seconds_a_round / sum(each.seconds_a_round for each in runs[place:])
        yield run, Limits(rounds, mine, lambda: bool(interrupt))


def _expected(runs: Sequence[_Run], effort: _Effort, minutes: float | None) -> str:
    """Return the expected duration as text."""
    rows = sum(len(run.points) for run in runs)
    if minutes is not None:
        return f"{rows} rows, at most {minutes:g} minutes"
    seconds = sum(run.seconds_a_round * effort.rounds_of(run.bench, limited=False) for run in runs) * effort.seconds
    return f"{rows} rows, about {math.ceil(seconds / 60)} minutes on two processors"


def _results(run: _Run, effort: _Effort, limits: Limits) -> list[dict[str, Any]]:
    """Measure one bench, print its table, and return it as JSON data; nothing if it has no row."""
    with display(console, None) as shown, ExitStack() as stack:
        arms, filled = _opened(run, stack, shown.progress)
        keeping = kept_measurements(run.bench, arms, run.points, effort.seconds, resume=effort.resume)
        rows = run_bench(
            run.bench,
            arms,
            run.points,
            limits=limits,
            seconds=effort.seconds,
            report=shown.progress,
            taken=stack.enter_context(keeping),
            filled=filled,
        )
        facts = options.facts_of(run.specs, arms)
    return [_conclude(run, rows, facts, effort.seconds)] if rows else []


def _opened(run: _Run, stack: ExitStack, report: Report) -> tuple[Sequence[Arm], Sequence[str]]:
    """Start the arms, and return them, and the names of those that have the data."""
    opening = functools.partial(
        open_arms,
        run.specs,
        report,
        allow_same_build=run.options.same_build_wanted,
        settings=dict(run.bench.settings),
        directory=workdir.clusters_on_disk(),
        environment=run.bench.environment,
    )
    if not run.own_arms:
        return stack.enter_context(opening()), ()
    reference = run.builds[0]
    alike = {build.key for build in run.builds if have_equal_catalogs(build, reference)}
    with kept_data(run.bench, run.points, reference, report) as data:
        arms = stack.enter_context(opening(data=lambda build: data if build.key in alike else None))
    return arms, [arm.name for arm in arms if arm.build.key in alike]


def _conclude(
    run: _Run, measured: Sequence[Row], facts: Mapping[str, Mapping[str, Any]], seconds: int
) -> dict[str, Any]:
    """Print the table and its conditions, and return them as JSON data."""
    bench, mail = run.bench, run.bench.mail
    processors = len(os.sched_getaffinity(0))
    environment = run.builds[0].flavor.environment if bench.environment is None else bench.environment
    rounds = [len(row.samples) for row in measured]
    least, most = min(rounds), max(rounds)
    say(bench.name)
    print_rows(console, measured, bench.unit)
    number = f"{most}" if least == most else f"{least} to {most}"
    say(f"{number} rounds of {seconds} s on {processors} processors; a ratio is the median of the rounds' ratios")
    if mail is not NO_MAIL:
        say(f"mail: {mail.subject} <{mail.message_id}>{': ' * bool(mail.claim)}{mail.claim}")
    say("settings: " + ", ".join(f"{name} = {value!r}" for name, value in bench.settings.items()))
    for name, each in facts.items():
        if given := (*each.get("settings", ()), *each.get("server_settings", ())):
            say(f"settings of {name}: {', '.join(given)}")
    if environment:
        say("environment: " + ", ".join(f"{name}={value}" for name, value in environment.items()))
    source = {"subject": mail.subject, "message_id": mail.message_id, "claim": mail.claim}
    return {
        "bench": bench.name,
        "unit": bench.unit,
        "mail": None if mail is NO_MAIL else source,
        "rounds": most,
        "seconds": seconds,
        "processors": processors,
        "settings": dict(bench.settings),
        "environment": dict(environment),
        "arms": facts,
        "rows": [row_json(row) for row in measured],
    }

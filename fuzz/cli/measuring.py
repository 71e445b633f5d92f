"""The common part of all commands of `pgduel bench`: options, measurements and tables."""

import functools
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

from fuzz import workdir
from fuzz.bench.bench import NO_MAIL, Bench, BenchError, Point
from fuzz.bench.run import Row, run_bench
from fuzz.cli import options
from fuzz.cli.app import console, say, write_json
from fuzz.report.bench_result import print_rows, row_json
from fuzz.report.terminal import display
from fuzz.servers.arm import open_arms, remarks
from fuzz.servers.arm_options import ArmOptions

Chosen = tuple[Bench, Mapping[str, Sequence[int]]]  # a bench, and values of its axes

_RELEASE = "release"
_Rounds = Annotated[int, typer.Option(min=2, help="Measurements of each arm at each point.")]
_Seconds = Annotated[int, typer.Option(min=1, help="Length of each measurement.")]


def numbers(text: str | None, option: str) -> list[int]:
    """Return the numbers in an option's value. Raises BenchError."""
    try:
        return [int(part) for part in (text or "").split(",") if part.strip()]
    except ValueError as error:
        raise BenchError(f"cannot read {option} {text}; give whole numbers, separated by commas") from error


def measuring(
    *, rounds: int, upstream: bool = False
) -> Callable[[Callable[..., Sequence[Chosen]]], Callable[..., None]]:
    """Make a command from a function that returns benches. Its own options precede those of `_measure`.

    With `upstream`, that arm is the third by default: PostgreSQL's own later solution, for mails that have one.
    """

    def command(choose: Callable[..., Sequence[Chosen]]) -> Callable[..., None]:
        own = inspect.signature(choose).parameters
        _, _, *shared = inspect.signature(functools.partial(_measure, rounds=rounds)).parameters.values()

        @functools.wraps(choose)
        def run(**given: Any) -> None:
            _measure(choose(**{name: given.pop(name) for name in own}), upstream=upstream, **given)

        run.__signature__ = inspect.Signature([*own.values(), *shared])  # type: ignore[attr-defined]  # Typer reads it
        return run

    return command


def _measure(
    chosen: Sequence[Chosen],
    *,
    upstream: bool,
    rounds: _Rounds,
    seconds: _Seconds = 1,
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
    wanted = wanted.with_upstream(say) if upstream else wanted
    planned = [(bench, bench.points(values)) for bench, values in chosen]  # errors of all benches first
    results = [_result(bench, points, wanted, rounds, seconds) for bench, points in planned]
    write_json(json_file, results[0] if len(results) == 1 else results)


def _result(bench: Bench, points: Sequence[Point], wanted: ArmOptions, rounds: int, seconds: int) -> dict[str, object]:
    with display(console, None) as shown:
        specs = wanted.specs(shown.progress)
        for line in remarks(specs):
            shown.say(line)
        if len(specs) < 2:
            raise BenchError("a ratio needs two arms; name another with --arm")
        same = wanted.same_build_wanted
        settings, disk = dict(bench.settings), workdir.clusters_on_disk()
        with open_arms(specs, shown.progress, allow_same_build=same, settings=settings, directory=disk) as arms:
            measured = run_bench(bench, arms, points, rounds=rounds, seconds=seconds, report=shown.progress)
            facts = options.facts_of(specs, arms)
    return _conclude(bench, measured, facts, specs[0].flavor.environment, rounds, seconds)


def _conclude(
    bench: Bench,
    measured: Sequence[Row],
    facts: Mapping[str, Mapping[str, Any]],
    environment: Mapping[str, str],
    rounds: int,
    seconds: int,
) -> dict[str, object]:
    """Print the table and its conditions, and return them as JSON data."""
    processors = len(os.sched_getaffinity(0))
    say(bench.name)
    print_rows(console, measured, bench.unit)
    say(f"{rounds} rounds of {seconds} s on {processors} processors; a ratio is the median of the rounds' ratios")
    if bench.mail is not NO_MAIL:
        say(f"mail: {bench.mail.subject} <{bench.mail.message_id}>")
    say("settings: " + ", ".join(f"{name} = {value!r}" for name, value in bench.settings.items()))
    for name, each in facts.items():
        if given := (*each.get("settings", ()), *each.get("server_settings", ())):
            say(f"settings of {name}: {', '.join(given)}")
    if environment:
        say("environment: " + ", ".join(f"{name}={value}" for name, value in environment.items()))
    return {
        "bench": bench.name,
        "unit": bench.unit,
        "mail": None if bench.mail is NO_MAIL else {"subject": bench.mail.subject, "message_id": bench.mail.message_id},
        "rounds": rounds,
        "seconds": seconds,
        "processors": processors,
        "settings": dict(bench.settings),
        "environment": dict(environment),
        "arms": facts,
        "rows": [row_json(row) for row in measured],
    }

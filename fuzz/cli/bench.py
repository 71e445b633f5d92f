"""`pgduel bench`: a mail's table measured again, arms interleaved in one run."""

import os
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from fuzz import workdir
from fuzz.bench.bench import Bench, BenchError
from fuzz.bench.bloom import BloomBench, Join
from fuzz.bench.copying import CopyBench
from fuzz.bench.run import Row, run_bench
from fuzz.cli import options
from fuzz.cli.app import app, console, say, write_json
from fuzz.report.bench_table import print_rows, row_json
from fuzz.report.terminal import display
from fuzz.servers.arm import open_arms

benches = typer.Typer(help="Measure a table of a mail again: arms interleaved in one run, medians of ratios.")
app.add_typer(benches, name="bench")

RELEASE = "release"


def _listed(axis: str) -> str:
    return ",".join(map(str, CopyBench.axes[axis]))


Rounds = Annotated[int, typer.Option(min=2, help="Measurements of each arm at each point.")]
Seconds = Annotated[int, typer.Option(min=1, help="Length of each measurement.")]


@benches.command()
def copy(
    *,
    rows: Annotated[
        str | None, typer.Option(metavar="N,N...", help=f"Rows a COPY. Default: {_listed('rows')}.")
    ] = None,
    clients: Annotated[
        str | None, typer.Option(metavar="N,N...", help=f"Clients at once. Default: {_listed('clients')}.")
    ] = None,
    rounds: Rounds = 16,
    seconds: Seconds = 1,
    base: options.Base = None,
    series: options.SeriesOption = None,
    repo: options.Repo = None,
    commits: options.Range = None,
    arm: options.ArmOption = None,
    flavor: options.FlavorOption = RELEASE,
    json_file: options.JsonFile = None,
) -> None:
    """COPY a file of so many rows into an unlogged table, in transactions a second (about 10 minutes)."""
    wanted = options.ArmOptions.given(base, series, repo, commits, arm, flavor)
    chosen = {"rows": _numbers(rows, "--rows"), "clients": _numbers(clients, "--clients")}
    _run(CopyBench(), wanted, chosen, rounds, seconds, json_file)


@benches.command()
def bloom(
    *,
    join: Annotated[Join, typer.Option(help="Which join; the mail's table is of inner.")] = Join.INNER,
    work_mem: Annotated[
        str | None, typer.Option(metavar="MB,MB...", help="work_mem at the mail's size. Default: 16,64 and one batch.")
    ] = None,
    limit: Annotated[str | None, typer.Option(metavar="N,N...", help="Sixteenths of dim. Default: 1 to 15.")] = None,
    scale: Annotated[float, typer.Option(min=0.001, max=1, help="Share of the mail's 10M and 100M rows.")] = 0.1,
    memory: Annotated[
        int | None,
        typer.Option(min=32, metavar="MB", help="Limit on a server's memory, its temporary files' cache included."),
    ] = None,
    rounds: Rounds = 5,
    seconds: Seconds = 1,
    base: options.Base = None,
    series: options.SeriesOption = None,
    repo: options.Repo = None,
    commits: options.Range = None,
    arm: options.ArmOption = None,
    flavor: options.FlavorOption = RELEASE,
    json_file: options.JsonFile = None,
) -> None:
    """Join a large table with part of a smaller one, in many batches and in one (about 20 minutes)."""
    wanted = options.ArmOptions.given(base, series, repo, commits, arm, flavor)
    chosen = {"work_mem": _numbers(work_mem, "--work-mem"), "limit": _numbers(limit, "--limit")}
    _run(BloomBench(join, scale, memory), wanted, chosen, rounds, seconds, json_file)


def _numbers(text: str | None, option: str) -> list[int]:
    """Return the numbers that an option lists. Raises BenchError."""
    try:
        return [int(part) for part in (text or "").split(",") if part.strip()]
    except ValueError as error:
        raise BenchError(f"{option} {text}: give whole numbers, separated by commas") from error


def _run(
    bench: Bench,
    wanted: options.ArmOptions,
    chosen: Mapping[str, Sequence[int]],
    rounds: int,
    seconds: int,
    json_file: options.JsonFile,
) -> None:
    points = bench.points(chosen)
    with display(console, None) as shown:
        specs = wanted.specs(shown.progress)
        if len(specs) < 2:
            raise BenchError("a ratio needs two arms: name another with --arm")
        same = wanted.same_build_wanted
        settings, disk = dict(bench.settings), workdir.clusters_on_disk()
        with open_arms(specs, shown.progress, allow_same_build=same, settings=settings, directory=disk) as arms:
            measured = run_bench(bench, arms, points, rounds=rounds, seconds=seconds, report=shown.progress)
            facts = options.arms_json(specs, [arm.build.key for arm in arms])
    _conclude(bench, measured, facts, rounds, seconds, json_file)


def _conclude(
    bench: Bench,
    measured: Sequence[Row],
    facts: Mapping[str, object],
    rounds: int,
    seconds: int,
    json_file: options.JsonFile,
) -> None:
    processors = len(os.sched_getaffinity(0))
    print_rows(console, measured, bench.unit)
    say(f"{rounds} rounds of {seconds} s on {processors} processors; a ratio is the median of the rounds' ratios")
    say(f"mail: {bench.mail.subject} <{bench.mail.message_id}>")
    say("settings: " + ", ".join(f"{name} = {value!r}" for name, value in bench.settings.items()))
    result = {
        "bench": bench.name,
        "unit": bench.unit,
        "mail": {"subject": bench.mail.subject, "message_id": bench.mail.message_id},
        "rounds": rounds,
        "seconds": seconds,
        "processors": processors,
        "settings": dict(bench.settings),
        "arms": facts,
        "rows": [row_json(row) for row in measured],
    }
    write_json(json_file, result)

"""`pgduel bench`: measurements of a mail's tables, or of the user's SQL, with arms interleaved in one run."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from fuzz.bench import join_order
from fuzz.bench.bench import Bench, BenchError, all_benches
from fuzz.bench.bloom import BloomBench, Join
from fuzz.bench.buckets import LARGEST, BucketsBench
from fuzz.bench.copying import CopyBench, DefaultAllocatorBench, LoggedTableBench
from fuzz.bench.fdw import ANALYZE_METHODS, PERCENTS, ROWS, TARGETS, FdwAnalyzeBench, FdwSamplingBench
from fuzz.bench.join_order import JoinOrderBench
from fuzz.bench.oltp import OltpBench
from fuzz.bench.overestimates import OverestimatedBloomBench, OverestimatedBucketsBench
from fuzz.bench.own_sql import SqlBench
from fuzz.bench.planning import RELATIONS, SIZES, QueryABench, QueryBBench
from fuzz.bench.store_load import WORKERS, FailedLoad, Load, loads, medians
from fuzz.campaign.pool import processors
from fuzz.cli import options
from fuzz.cli.app import app, console, say, write_json
from fuzz.cli.comparisons import fuzzers, reduction
from fuzz.cli.engine_comparison import engines
from fuzz.cli.measuring import Chosen, Selection, measuring, numbers
from fuzz.report.load_table import load_json, print_loads
from fuzz.report.summary import numbered
from fuzz.report.terminal import display

benches = typer.Typer(
    help="Measure your own SQL, or repeat the measurements of a mail's table: arms interleaved in one run, medians of "
    "ratios."
)
app.add_typer(benches, name="bench")
benches.command()(fuzzers)
benches.command()(reduction)
benches.command()(engines)


_QUICK_MINUTES = 15


class Workload(StrEnum):
    """The workloads of `planning`."""

    QUERY_B = QueryBBench.name
    QUERY_A = QueryABench.name
    JOIN_ORDER = JoinOrderBench.name
    PGBENCH = OltpBench.name


class CopyTest(StrEnum):
    """The measurements of `copy`."""

    KEEPING = "keeping"
    DEFAULT = "default"
    LOGGED = "logged"


class FdwTest(StrEnum):
    """The measurements of `fdw`."""

    ANALYZE = "analyze"
    SAMPLING = "sampling"


class JoinTest(StrEnum):
    """The measurements of `bloom`, and those of `buckets`."""

    MAIL = "mail"
    OVERESTIMATED = "overestimated"


def _listed(bench: type[Bench], axis: str) -> str:
    return ",".join(map(str, bench.axes[axis]))


def _grid(bench: Bench, chosen: Mapping[str, Sequence[int]]) -> Chosen:
    return bench, bench.points(chosen)


_JoinTests = Annotated[
    list[JoinTest] | None,
    typer.Argument(help="The table of the mail, or hash tables with fewer rows than expected. Default: both."),
]
_FewRows = Annotated[
    str | None,
    typer.Option(
        metavar="N,N...",
        help=f"For overestimated: rows of the hash table. Default: {_listed(OverestimatedBucketsBench, 'rows')}.",
    ),
]
_Expected = Annotated[
    str | None,
    typer.Option(
        metavar="N,N...",
        help=f"For overestimated: expected rows. Default: {_listed(OverestimatedBucketsBench, 'expected')}.",
    ),
]
_Processes = Annotated[
    str | None,
    typer.Option(
        metavar="N,N...",
        help="For overestimated: processes that share a hash table. "
        f"Default: {_listed(OverestimatedBucketsBench, 'processes')}.",
    ),
]


def _overestimated(bench: Bench, rows: str | None, expected: str | None, processes: str | None) -> Chosen:
    chosen = {"rows": rows, "expected": expected, "processes": processes}
    return _grid(bench, {axis: numbers(text, f"--{axis}") for axis, text in chosen.items()})


@benches.command("all")
@measuring
def all_(
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help=f"The most important rows only, in {_QUICK_MINUTES} minutes.")
    ] = False,
    minutes: Annotated[
        float | None,
        options.minutes_option(
            "Limit of time. Rows with a narrow interval get no more rounds, but each row gets three.",
            show_default=False,
        ),
    ] = None,
) -> Selection:
    """Repeat the tables of all mails, one after the other. --json has a list of results."""
    found = all_benches().values()
    if quick:
        chosen = [(type(each).for_headlines(), list(each.headlines)) for each in found if each.headlines]
        return Selection(chosen, minutes or _QUICK_MINUTES)
    grids = (_grid(each, {}) for each in found)
    return Selection([(bench, points) for bench, points in grids if points], minutes)


@benches.command()
def store(
    *,
    workers: Annotated[str, typer.Option(metavar="N,N...", help="Numbers of simulated workers.")] = ",".join(
        map(str, WORKERS)
    ),
    rounds: Annotated[int, typer.Option(min=1, help="Measurements of each number.")] = 1,
    seconds: Annotated[int, typer.Option(min=1, help="Length of each measurement.")] = 5,
    json_file: options.JsonFile = None,
) -> None:
    """Load a store, and the process of a campaign, with many simulated workers, which return recorded results.

    SQLite and PostgreSQL take turns. Workers are busy while they simulate cases; the rest of the time they wait.
    """
    ended: list[Load | FailedLoad] = []
    try:
        with display(console, None) as shown:
            for each in loads(numbers(workers, "--workers"), rounds, seconds, shown.progress):
                ended.append(each)
    except KeyboardInterrupt as interrupt:
        raise BenchError("interrupted: the rest is not measured; run it again") from interrupt
    finally:
        if ended:
            found = medians(each for each in ended if isinstance(each, Load))
            print_loads(console, found)
            say(f"{numbered(rounds, 'round')} of {seconds} s on {numbered(processors(), 'processor')}")
            write_json(json_file, [load_json(each) for each in found])
    failed = [each for each in ended if isinstance(each, FailedLoad)]
    for each in failed:
        say(f"not measured: {each.store}, {each.workers} workers, {each.shapes} plan shapes before: {each.reason}")
    if failed:
        raise BenchError(f"{len(failed)} of {numbered(len(ended), 'measurement')} failed; run those again")


@benches.command()
@measuring
def copy(
    *,
    test: Annotated[
        list[CopyTest] | None,
        typer.Argument(
            help="An unlogged table, while glibc's allocator is keeping freed memory, or has its default settings; or a"
            " logged table. Default: all."
        ),
    ] = None,
    rows: Annotated[
        str | None, typer.Option(metavar="N,N...", help=f"Rows per COPY. Default: {_listed(CopyBench, 'rows')}.")
    ] = None,
    clients: Annotated[
        str | None,
        typer.Option(metavar="N,N...", help=f"Clients at once. Default: {_listed(CopyBench, 'clients')}."),
    ] = None,
) -> list[Chosen]:
    """COPY a file into a table: transactions per second, by rows and clients."""
    chosen = {"rows": numbers(rows, "--rows"), "clients": numbers(clients, "--clients")}
    made: dict[CopyTest, Bench] = {
        CopyTest.KEEPING: CopyBench(),
        CopyTest.DEFAULT: DefaultAllocatorBench(),
        CopyTest.LOGGED: LoggedTableBench(),
    }
    return [_grid(made[each], chosen) for each in dict.fromkeys(test or CopyTest)]


@benches.command()
@measuring
def bloom(
    *,
    test: _JoinTests = None,
    join: Annotated[Join, typer.Option(help="Kind of join; the mail's table has inner joins.")] = Join.INNER,
    work_mem: Annotated[
        str | None, typer.Option(metavar="MB,MB...", help="work_mem at the mail's size. Default: 16,64 and one batch.")
    ] = None,
    limit: Annotated[str | None, typer.Option(metavar="N,N...", help="Sixteenths of dim. Default: 1 to 15.")] = None,
    scale: Annotated[float, typer.Option(min=0.001, max=1, help="Share of the mail's 10M and 100M rows.")] = 0.1,
    memory: Annotated[
        int | None,
        typer.Option(min=32, metavar="MB", help="Limit of a server's memory, including its cache of temporary files."),
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="Parallel workers of each query, which share a hash table.")] = 0,
    rows: _FewRows = None,
    expected: _Expected = None,
    processes: _Processes = None,
) -> list[Chosen]:
    """Join a large table with part of a smaller one, in many batches and in one, and with too high estimates."""
    chosen = {"work_mem": numbers(work_mem, "--work-mem"), "limit": numbers(limit, "--limit")}
    made: dict[JoinTest, Chosen] = {
        JoinTest.MAIL: _grid(BloomBench(join, scale, memory, workers), chosen),
        JoinTest.OVERESTIMATED: _overestimated(OverestimatedBloomBench(), rows, expected, processes),
    }
    return [made[each] for each in dict.fromkeys(test or JoinTest)]


@benches.command()
@measuring
def buckets(
    *,
    test: _JoinTests = None,
    size: Annotated[
        str | None,
        typer.Option(
            metavar="KB,KB...",
            help=f"Size of the mail's hash table without buckets, up to {LARGEST}. "
            f"Default: those of {_listed(BucketsBench, 'size')} that fit into memory.",
        ),
    ] = None,
    ntup: Annotated[
        str | None,
        typer.Option(
            metavar="N,N...",
            help=f"Rows per bucket (hash_ntup_per_bucket), in arms with that setting. "
            f"Default: {_listed(BucketsBench, 'ntup')}.",
        ),
    ] = None,
    scale: Annotated[float, typer.Option(min=0.0001, max=1, help="Share of the mail's 50M outer rows.")] = 0.2,
    rows: _FewRows = None,
    expected: _Expected = None,
    processes: _Processes = None,
) -> list[Chosen]:
    """Left join with a hash table in one batch: master's fixed buckets, ours, PostgreSQL's. And too high estimates.

    Only arms without the patch choose their buckets by N. The mail's ratio at each N is its time with N = 1, divided by
    its time with that N.
    """
    chosen = {"size": numbers(size, "--size"), "ntup": numbers(ntup, "--ntup")}
    made: dict[JoinTest, Chosen] = {
        JoinTest.MAIL: _grid(BucketsBench(scale), chosen),
        JoinTest.OVERESTIMATED: _overestimated(OverestimatedBucketsBench(), rows, expected, processes),
    }
    return [made[each] for each in dict.fromkeys(test or JoinTest)]


@benches.command()
@measuring
def fdw(
    *,
    test: Annotated[list[FdwTest] | None, typer.Argument(help="Measurements to run. Default: both.")] = None,
    rows: Annotated[
        str | None, typer.Option(metavar="N,N...", help=f"Rows of the table. Default: {','.join(map(str, ROWS))}.")
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(metavar="N,N...", help=f"For analyze: targets. Default: {','.join(map(str, TARGETS))}."),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(metavar="NAME,NAME...", help=f"For analyze: methods. Default: {','.join(ANALYZE_METHODS)}."),
    ] = None,
    percent: Annotated[
        str | None,
        typer.Option(metavar="N,N...", help=f"For sampling: percents. Default: {','.join(map(str, PERCENTS))}."),
    ] = None,
) -> list[Chosen]:
    """ANALYZE a foreign table by each method, and read samples through one.

    Arms without the patch read all remote rows.
    """
    size = numbers(rows, "--rows")
    methods = [
        ANALYZE_METHODS.index(each) + 1 if each in ANALYZE_METHODS else 0
        for each in (method or ",".join(ANALYZE_METHODS)).split(",")
    ]
    if 0 in methods:
        raise BenchError(f"unknown method in --method {method}; give some of {', '.join(ANALYZE_METHODS)}")
    made: dict[FdwTest, Chosen] = {
        FdwTest.ANALYZE: _grid(
            FdwAnalyzeBench(), {"rows": size, "target": numbers(target, "--target"), "method": methods}
        ),
        FdwTest.SAMPLING: _grid(FdwSamplingBench(), {"rows": size, "percent": numbers(percent, "--percent")}),
    }
    return [made[each] for each in dict.fromkeys(test or FdwTest)]


@benches.command()
@measuring
def sql(
    *,
    file: Annotated[list[Path], typer.Argument(metavar="FILE", help="Files of SQL, or scripts for pgbench.")],
    setup: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="SQL that psql runs once on each arm, before all tables are analyzed.",
            show_default=False,
        ),
    ] = None,
) -> list[Chosen]:
    r"""Time your own SQL: milliseconds of each file on each arm, and the ratio to the first arm.

    pgbench executes the files, so they may have its commands, such as \set, but no COPY from or to the client. The
    first round takes --seconds per file; all others execute it as often. A second reference shows the noise: --arm
    master --arm again=master --arm patched.
    """
    return [_grid(SqlBench(file, setup), {})]


@benches.command()
@measuring
def planning(
    *,
    workload: Annotated[list[Workload] | None, typer.Argument(help="Workloads to measure. Default: all.")] = None,
    partitions: Annotated[
        str | None,
        typer.Option(
            metavar="N,N...",
            help=f"Partitions. Default: 1 to {SIZES[-1]}; 1024 for query_a (query_b allows it), 128 for pgbench.",
        ),
    ] = None,
    relations: Annotated[
        int, typer.Option(min=2, metavar="N", help="For query_b: number of joined relations; the mail has eight.")
    ] = RELATIONS,
    schema: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            show_default="films",
            help="For join_order: SQL that creates and may fill tables. Tables PARTITION BY HASH get N partitions.",
        ),
    ] = join_order.HOME / "schema.sql",
    queries: Annotated[
        Path,
        typer.Option(
            metavar="DIR", show_default="films", help="For join_order: a directory of *.sql files with SELECTs."
        ),
    ] = join_order.HOME / "queries",
) -> list[Chosen]:
    """Plan joins of partitioned relations, and run pgbench on them.

    query_b joins eight relations on one key; query_a joins and groups three. join_order plans many joins of up to 14
    relations. pgbench runs its own short transactions. With several workloads, --json has a list of results.
    """
    made: dict[Workload, Bench] = {
        Workload.QUERY_B: QueryBBench(relations),
        Workload.QUERY_A: QueryABench(),
        Workload.JOIN_ORDER: JoinOrderBench(schema, queries),
        Workload.PGBENCH: OltpBench(),
    }
    chosen = {"partitions": numbers(partitions, "--partitions")}
    return [_grid(made[each], chosen) for each in dict.fromkeys(workload or Workload)]

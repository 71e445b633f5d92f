"""Tables of comparisons of fuzzers, of engines, and of reducers, for people and for programs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from math import inf, sqrt
from statistics import fmean, median, stdev
from typing import Any

from rich.table import Column, Table
from scipy.stats import t

from fuzz.bench.engines import PARTS, EngineFigures
from fuzz.bench.fuzzers import DIRECTORIES, Figures
from fuzz.bench.reduction.comparison import ReducerResult
from fuzz.bench.reduction.reducer import Size
from fuzz.report.console import Console


def print_figures(console: Console, measured: Mapping[str, Sequence[Figures]]) -> None:
    """Print a column for each fuzzer: means of its rounds, with 95 % confidence intervals if there are several."""
    titles = ["statements a second", "without error, %", "answers judged a second", "plan shapes"]
    reached = [name for name in DIRECTORIES if any(name in each.reached for rows in measured.values() for each in rows)]
    titles += [f"{name.rpartition('/')[2]}: {what}" for name in reached for what in ("lines, %", "branches, %")]
    _print_means(console, titles, {name: list(map(_numbers_of_fuzzer, rows)) for name, rows in measured.items()})


def _print_means(console: Console, titles: Sequence[str], measured: Mapping[str, Sequence[Iterable[float]]]) -> None:
    """Print a column for each name, from the numbers of its rounds, and a line for each title."""
    columns = [[_mean(values) for values in zip(*rounds, strict=True)] for rounds in measured.values()]
    table = Table("", *(Column(name, justify="right", no_wrap=True) for name in measured))
    for title, *row in zip(titles, *columns, strict=True):
        table.add_row(title, *row)
    console.print(table)


def _numbers_of_fuzzer(figures: Figures) -> Iterator[float]:
    """Yield the numbers of a row; shares are in percent."""
    total = figures.succeeded + figures.failed
    yield from (total / figures.seconds, 100 * figures.valid_share, figures.judged / figures.seconds, figures.shapes)
    for covered in figures.reached.values():
        yield 100 * covered.lines_reached / covered.lines
        yield 100 * covered.branches_reached / covered.branches


def _mean(values: Sequence[float]) -> str:
    """Return the mean, with its 95 % confidence interval by Student's t if there are several values."""
    mean = fmean(values)
    digits = 1 if mean <= 100 else 0
    text = f"{mean:.{digits}f}"
    if len(values) == 1:
        return text
    error = t.ppf(0.975, len(values) - 1) * stdev(values) / sqrt(len(values))
    return f"{text} ± {error:.{digits}f}"


def figures_json(figures: Figures) -> Mapping[str, Any]:
    """Return the data of one fuzzer for `--json`."""
    return asdict(figures) | {"valid_share": round(figures.valid_share, 5)}


def print_engines(console: Console, measured: Sequence[EngineFigures]) -> None:
    """Print a column for each engine: means of its rounds, with 95 % confidence intervals if there are several."""
    titles = ["cases", "statements compared", "plan shapes", "edges", "edges in changed functions"]
    titles += [f"edges: {part}" for part in PARTS]
    titles += ["findings"]
    rounds: dict[str, list[Iterable[float]]] = {}
    for each in measured:
        rounds.setdefault(each.engine, []).append(_numbers_of_engine(each))
    _print_means(console, titles, rounds)


def _numbers_of_engine(figures: EngineFigures) -> Iterator[float]:
    yield from (figures.cases, figures.judged, figures.shapes, figures.edges.reached, figures.changed.reached)
    yield from (figures.parts[part].reached for part in PARTS)
    yield len(figures.findings)


Comparisons = Mapping[str, Sequence[ReducerResult]]  # finding -> outcome of each reducer
_COLUMNS = ("statements", "characters", "nodes", "its statement", "tries", "seconds", "ms a try")
_OVERTAKEN = "seconds of {} to get there"  # until the size of the other reducer's result


def print_comparisons(console: Console, comparisons: Comparisons) -> None:
    """Print a table per finding, then medians per other reducer, over findings that it and the first one reduced."""
    for finding, outcomes in comparisons.items():
        _print(console, finding, outcomes)
    whole, first, *others = zip(*comparisons.values(), strict=True)
    for other in others if len(comparisons) > 1 else ():
        done = [each for each in zip(whole, first, other, strict=True) if all(outcome.size for outcome in each)]
        if done:
            title = f"medians of {len(done)} findings that {first[0].name} and {other[0].name} reduced"
            _print(console, title, [_median(each) for each in zip(*done, strict=True)])


def _median(outcomes: Sequence[ReducerResult]) -> ReducerResult:
    sizes = [asdict(each.size) for each in outcomes if each.size is not None]
    return ReducerResult(
        outcomes[0].name,
        Size(**{field: round(median(size[field] for size in sizes)) for field in sizes[0]}),
        tries=round(median(each.tries for each in outcomes)),
        seconds=median(each.seconds for each in outcomes),
        overtaken=_finite(median(inf if each.overtaken is None else each.overtaken for each in outcomes)),
    )


def _finite(seconds: float) -> float | None:
    return None if seconds == inf else seconds


def _print(console: Console, title: str, outcomes: Sequence[ReducerResult]) -> None:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("by")
    for name in (*_COLUMNS, _OVERTAKEN.format(outcomes[1].name)):
        table.add_column(name, justify="right")
    for each in outcomes:
        if each.size is not None:
            table.add_row(each.name, *_cells(each))
    console.print(table, crop=False)
    for each in outcomes:
        if each.size is None:
            console.say(f"{each.name}: {each.why}")


def _cells(outcome: ReducerResult) -> tuple[str, ...]:
    size = outcome.size
    assert size is not None
    sizes = (str(figure) for figure in (size.statements, size.characters, size.nodes, size.alone))
    if not outcome.tries:
        return (*sizes, "", "", "", "")
    each = 1000 * outcome.seconds / outcome.tries
    overtaken = "" if outcome.overtaken is None else f"{outcome.overtaken:.1f}"
    return (*sizes, str(outcome.tries), f"{outcome.seconds:.1f}", f"{each:.0f}", overtaken)


def comparisons_json(comparisons: Comparisons) -> list[dict[str, Any]]:
    """Return the data for `--json`."""
    return [
        {"finding": finding, "outcomes": [asdict(each) for each in outcomes]}
        for finding, outcomes in comparisons.items()
    ]

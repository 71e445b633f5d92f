"""The result of a run over mutants: a table by patch, the survivors, annotated source, and JSON."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from rich.table import Table

from fuzz import documents
from fuzz.mutation.mutants import MutableLine, lines_of
from fuzz.mutation.result import JUDGED, MutantOutcome, MutantResult
from fuzz.mutation.store import Control
from fuzz.report.console import Console
from fuzz.report.summary import numbered

_HEADINGS: Final = {
    MutantOutcome.INVALID: "invalid",
    MutantOutcome.EQUIVALENT: "equivalent",
    MutantOutcome.DUEL: "duel only",
    MutantOutcome.TESTS: "tests only",
    MutantOutcome.BOTH: "both",
    MutantOutcome.NOBODY: "nobody",
}
_KILL_SECONDS: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {  # of the duels with a finding
    "median kill, s": median,
    "longest kill, s": max,
}


def print_mutants(console: Console, patches: Sequence[str], results: Sequence[MutantResult]) -> None:
    """Print a line for each patch, and one for all: the mutants drawn, those of each outcome, the seconds of kills."""
    table = Table()
    table.add_column("patch", no_wrap=True)
    for title in ("mutants", *_HEADINGS.values(), *_KILL_SECONDS):
        table.add_column(title, justify="right", no_wrap=True)
    for patch in patches:
        table.add_row(patch, *_cells([each for each in results if each.mutant.patch == patch]))
    table.add_section()
    table.add_row("all", *_cells(results))
    console.print_whole(table)


def _cells(results: Sequence[MutantResult]) -> list[str]:
    counted = Counter(each.outcome for each in results)
    seconds = _seconds_of_kills(results)
    times = (f"{figure_of(seconds):.0f}" if seconds else "" for figure_of in _KILL_SECONDS.values())
    return [str(len(results)), *(str(counted[outcome]) for outcome in _HEADINGS), *times]


def _seconds_of_kills(results: Sequence[MutantResult]) -> list[float]:
    """Return the seconds of the duels with a finding, except those that an earlier version stored without."""
    duels = (each.duel for each in results if each.duel is not None and each.duel.kill is not None)
    return [duel.seconds for duel in duels if duel.seconds is not None]


def print_survivors(console: Console, results: Sequence[MutantResult], patch_of: Callable[[str], Path]) -> None:
    """Print each mutant that nobody killed: its line before and after, and the file of its diff."""
    for each in results:
        if each.outcome is MutantOutcome.NOBODY:
            mutant = each.mutant
            console.say(f"survived: {mutant.file}:{mutant.line}, of {mutant.patch}; {patch_of(mutant.key)}")
            console.say(f"  - {mutant.before.strip()}")
            console.say(f"  + {mutant.after.strip()}")


def print_control(console: Console, control: Control) -> None:
    """Print the false alarms of the series against itself, and its failed tests, which limit the result."""
    for summary in control.false_alarms.values():
        console.say(f"no kill, because the series against itself shows it, too: {summary}")
    for test in control.tests.failed:
        console.say(f"no kill, because the test fails without a mutation, too: {test}")


def print_unconfirmed(console: Console, results: Sequence[MutantResult]) -> None:
    """Print each kill by the duel that did not occur again on the same case."""
    for each in results:
        if each.duel is not None and (kill := each.duel.kill) is not None and not kill.again:
            where = f"{each.mutant.file}:{each.mutant.line}"
            console.say(
                f"killed once, but not when case {kill.case} ran again: {where}, by {kill.oracle}: {kill.summary}"
            )


def print_failures(console: Console, results: Sequence[MutantResult]) -> None:
    """Print the number of cases that were not judged because pgduel itself failed, if any."""
    failures = [each.duel.failures for each in results if each.duel is not None and each.duel.failures]
    if failures:
        console.say(
            f"pgduel itself failed on {sum(failures)} cases of {len(failures)} mutants, which these cases cannot kill; "
            "--json has the number for each"
        )


def print_without_time(console: Console, results: Sequence[MutantResult]) -> None:
    """Print the number of duels whose seconds are unknown, if any."""
    unknown = sum(each.duel is not None and each.duel.seconds is None for each in results)
    if unknown:
        console.say(f"an earlier version stored the results of {numbered(unknown, 'duel')}, without the seconds")


def mutants_json(results: Sequence[MutantResult], lines: Sequence[MutableLine]) -> dict[str, Any]:
    """Return the results for `--json`: counts by patch, and all mutants."""
    patches = dict.fromkeys(line.patch for line in lines)
    return {
        "patches": [
            {"patch": patch, "lines": sum(line.patch == patch for line in lines)} | _counts(results, patch)
            for patch in patches
        ],
        "mutants": [{"key": each.mutant.key, "outcome": each.outcome} | documents.to_data(each) for each in results],
    }


def _counts(results: Sequence[MutantResult], patch: str) -> dict[str, int]:
    counted = Counter(each.outcome for each in results if each.mutant.patch == patch)
    return {title.replace(" ", "_"): counted[outcome] for outcome, title in _HEADINGS.items()}


def annotated(results: Sequence[MutantResult], texts: Mapping[str, str]) -> dict[str, str]:
    """Return files of source by path, with each judged mutant below the line that it changes. `texts` are the files."""
    judged = [each for each in results if each.outcome in JUDGED]
    width = max(map(len, JUDGED))
    files = {}
    for file in sorted({each.mutant.file for each in judged}):
        lines = []
        for number, text in enumerate(lines_of(texts[file]), 1):
            lines.append(f"{number:>{width}} | {text}")
            for each in judged:
                if (each.mutant.file, each.mutant.line) == (file, number):
                    lines.append(f"{each.outcome:>{width}} + {each.mutant.after}")
        files[f"{file}.txt"] = "\n".join((*lines, ""))
    return files

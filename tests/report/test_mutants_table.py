"""Tests of the report of mutants: a table by patch, survivors, annotated source, JSON."""

from io import StringIO
from pathlib import Path

from fuzz.mutation.mutants import MutableLine, Mutant
from fuzz.mutation.own_tests import SoundTests
from fuzz.mutation.result import DuelResult, Kill, MutantResult
from fuzz.mutation.store import Control
from fuzz.report.console import Console
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

PATCHES = ("0001-One.patch", "0002-Two.patch")


def mutant(patch: int, line: int, after: str) -> Mutant:
    return Mutant(PATCHES[patch], "a.c", line, f"\tline({line});", f"\t{after}", "x ==> y", f"{line} {after}")


KILLED = DuelResult(3, 0, Kill("result", "1 row missing", "1/outer_joins/3", again=True), 12.5, 120.0)
RESULTS = (
    MutantResult(mutant(0, 1, "line(0);"), duel=KILLED, failed_tests=("regress/a",)),
    MutantResult(mutant(1, 2, "line(\x1b[31m3);"), duel=DuelResult(100, 0, None, 90.0, 120.0)),
    MutantResult(mutant(1, 2, "line(02);")),
)


def printed(print_it: object, *arguments: object) -> str:
    file = StringIO()
    print_it(Console(file=file, width=200), *arguments)  # type: ignore[operator]
    return file.getvalue()


def test_a_patch_has_a_line_with_the_numbers_of_each_outcome() -> None:
    rows = [line.replace("│", " ").split() for line in printed(print_mutants, PATCHES, RESULTS).splitlines()]
    assert ["0001-One.patch", "1", "0", "0", "0", "0", "1", "0", "12", "12"] in rows
    assert ["0002-Two.patch", "2", "0", "1", "0", "0", "0", "1"] in rows
    assert ["all", "3", "0", "1", "0", "0", "1", "1", "12", "12"] in rows


def test_seconds_are_those_of_the_kills_by_the_duel() -> None:
    kill = KILLED.kill
    others = [MutantResult(mutant(0, 1, f"line({n});"), duel=DuelResult(1, 0, kill, n, 120.0)) for n in (1.0, 90.0)]
    earlier = MutantResult(mutant(1, 2, "line(3);"), duel=DuelResult(3, 0, kill))
    printed_rows = printed(print_mutants, PATCHES, (*RESULTS, *others, earlier)).splitlines()
    rows = [line.replace("│", " ").split() for line in printed_rows]
    assert [row[-2:] for row in rows if row and row[0] in ("0001-One.patch", "all")] == [["12", "90"]] * 2
    assert printed(print_without_time, (*RESULTS, *others, earlier)).splitlines() == [
        "an earlier version stored the results of 1 duel, without the seconds"
    ]
    assert not printed(print_without_time, RESULTS)


def test_survivors_have_their_line_and_patch() -> None:
    key = RESULTS[1].mutant.key
    assert printed(print_survivors, RESULTS, lambda key: Path(f"{key}.patch")).splitlines() == [
        f"survived: a.c:2, of 0002-Two.patch; {key}.patch",
        "  - line(2);",
        "  + line(\\x1b[31m3);",
    ]


def test_what_is_no_kill_is_printed() -> None:
    control = Control({}, {"0123456789ab": "1 row missing"}, 2.5, SoundTests((), ("regress/b",), {}))
    assert printed(print_control, control).splitlines() == [
        "no kill, because the series against itself shows it, too: 1 row missing",
        "no kill, because the test fails without a mutation, too: regress/b",
    ]


def test_a_kill_that_did_not_occur_again_is_printed() -> None:
    once = MutantResult(
        mutant(0, 1, "line(0);"), duel=DuelResult(3, 0, Kill("hang", "no answer", "1/a/3", again=False))
    )
    assert printed(print_unconfirmed, (*RESULTS, once)).splitlines() == [
        "killed once, but not when case 1/a/3 ran again: a.c:1, by hang: no answer"
    ]


def test_cases_on_which_pgduel_failed_are_printed() -> None:
    failed = [MutantResult(mutant(0, line, "line(0);"), duel=DuelResult(90, line)) for line in (1, 2)]
    assert printed(print_failures, (*RESULTS, *failed)).splitlines() == [
        "pgduel itself failed on 3 cases of 2 mutants, which these cases cannot kill; --json has the number for each"
    ]
    assert not printed(print_failures, RESULTS)


def test_judged_mutants_stand_below_their_lines() -> None:
    files = annotated(RESULTS, {"a.c": "\tline(1);\n\tline(2);\n", "b.c": "\n"})
    assert list(files) == ["a.c.txt"]
    assert [line.split() for line in files["a.c.txt"].splitlines()] == [
        ["1", "|", "line(1);"],
        ["killed", "by", "both", "+", "line(0);"],
        ["2", "|", "line(2);"],
        ["killed", "by", "nobody", "+", "line(\x1b[31m3);"],
    ]


def test_json_has_counts_and_mutants() -> None:
    lines = [MutableLine(patch, "a.c", number, "", ()) for number, patch in enumerate(PATCHES, 1)]
    data = mutants_json(RESULTS, lines)
    assert [(each["patch"], each["lines"], each["both"], each["nobody"]) for each in data["patches"]] == [
        (PATCHES[0], 1, 1, 0),
        (PATCHES[1], 1, 0, 1),
    ]
    assert data["mutants"][0]["key"] == RESULTS[0].mutant.key
    assert data["mutants"][0]["duel"]["kill"]["case"] == "1/outer_joins/3"
    assert [each["duel"] and each["duel"]["seconds"] for each in data["mutants"]] == [12.5, 90, None]

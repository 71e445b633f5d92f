"""Test of `pgduel mutate` on real servers: mutants of one planted line are killed, or recognized as equivalent."""

from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest

from fuzz.mutation.result import MutantOutcome
from fuzz.servers import git
from fuzz.servers.base import Base
from tests.cli.command import Command, json_of

pytestmark = [pytest.mark.servers, pytest.mark.long(group="mutate"), pytest.mark.timeout(2400)]

FILE = "src/backend/utils/adt/int.c"
TEST = "src/test/regress/{}/int4.{}"
SEED = 9  # draws mutants of all kinds early
SQL, OUTPUT = "SELECT int4pl(1, 1) AS planted;\n", " planted \n---------\n       2\n(1 row)\n\n"


def series(base: Base, directory: Path) -> Path:
    """Write a patch that adds 0 to each sum of integers, with a regression test."""
    old = git.show(base.tree, FILE) or ""
    above, function, below = old.partition("\nint4pl(PG_FUNCTION_ARGS)")
    texts = {FILE: above + function + below.replace("PG_RETURN_INT32(result);", "PG_RETURN_INT32(result + 0);", 1)}
    for kind, suffix, added in (("sql", "sql", SQL), ("expected", "out", SQL + OUTPUT)):
        path = TEST.format(kind, suffix)
        texts[path] = (git.show(base.tree, path) or "") + added
    patch = directory / "planted.patch"
    patch.write_text("".join(diff(base, path, text) for path, text in texts.items()))
    return patch


def diff(base: Base, path: str, text: str) -> str:
    before = (git.show(base.tree, path) or "").splitlines(keepends=True)
    return "".join(unified_diff(before, text.splitlines(keepends=True), f"a/{path}", f"b/{path}"))


def test_mutants_are_killed_or_equivalent_and_a_second_run_continues(
    pgduel: Command, base: Base, tmp_path: Path
) -> None:
    file, pages = tmp_path / "mutants.json", tmp_path / "source"
    cases = ("--cases", "6", "--generator", "outer_joins", "--seed", str(SEED))
    what = ("mutate", "--series", series(base, tmp_path), *cases)
    first = json_of(pgduel(*what, "--mutants", "1", "--json", file), file, 0)
    assert changes(first) == ["INT32(result + (0+1));"]
    ended = pgduel(*what, "--mutants", "2", "--json", file, "--source", pages)
    second = json_of(ended, file, 0)
    assert second["mutants"][:1] == first["mutants"]
    assert changes(second)[1:] == ["INT32(result + 0); \tbreak;", "INT32(result - 0);", "INT32(result + 1);"]
    assert [each["outcome"] for each in second["mutants"][1:3]] == [MutantOutcome.INVALID, MutantOutcome.EQUIVALENT]
    assert all("regress/int4" in second["mutants"][number]["failed_tests"] for number in (0, 3))
    assert (pages / f"{FILE}.txt").read_text().count(" + \tPG_RETURN_INT32(") == 2
    assert second["ended"] == "all mutants done"
    assert second["seconds"] == 120
    duels = [each["duel"] for each in second["mutants"] if each["duel"] is not None]
    assert all(0 < each["seconds"] < 600 and each["limit"] == 120 for each in duels)
    assert ended.out.count("int.c:830: ") == 3  # the mutants that the first run lacks


def changes(found: Any) -> list[str]:
    return [each["mutant"]["after"].strip().removeprefix("PG_RETURN_") for each in found["mutants"]]

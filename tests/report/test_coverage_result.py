"""Tests of measurements of coverage: files of `pgduel coverage --series --json` are read, others are refused."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from fuzz.errors import CaseError
from fuzz.report.coverage_result import AddedLine, LineCounts, Reach, annotated_json, patch_json, read_coverage
from fuzz.servers.coverage import Covered, FileCoverage, PatchCoverage

CASES = FileCoverage({1: 4, 2: 0, 3: 2, 6: 0}, defaultdict(list, {1: [4, 0], 3: [1, 1]}), left_out=frozenset((5,)))
SUITES = FileCoverage({1: 1, 2: 7, 3: 0, 6: 0}, defaultdict(list, {1: [0, 1], 3: [0, 0]}), left_out=frozenset((5,)))
TEXTS = {1: "\tif (a)", 2: "\t\tb();", 3: "\tc(a ? 1 : 2);", 4: "", 5: '\telog(ERROR, "x");', 6: "\td();"}


def patch(found: FileCoverage) -> PatchCoverage:
    return PatchCoverage({"a.c": TEXTS}, {"a.c": found})


def written(tmp_path: Path, *, suites: bool) -> Path:
    """Return a file as `pgduel coverage` writes it."""
    annotated = annotated_json(patch(CASES), patch(SUITES) if suites else None)
    nothing = annotated_json(PatchCoverage({}, {}), PatchCoverage({}, {}) if suites else None)
    patches = [{"patch": "0001-a.patch", **annotated}, {"patch": "0002-b.patch", **nothing}]
    file = tmp_path / "coverage.json"
    file.write_text(json.dumps({"arms": {"master": {}, "patched": {}}, "seed": 1, "cases": 24, "patches": patches}))
    return file


def test_added_lines_have_text_and_reach(tmp_path: Path) -> None:
    result = read_coverage(written(tmp_path, suites=False))
    assert (result.arm, result.seed, result.cases, result.with_suites) == ("patched", 1, 24, False)
    first, second = result.patches
    lines = first.files["a.c"].added
    assert {line.line: line.text for line in lines} == TEXTS
    assert [line.reach for line in lines] == [
        Reach.SOME_BRANCHES,
        Reach.NOT_REACHED,
        Reach.REACHED,
        Reach.NO_CODE,
        Reach.INTERNAL_ERROR,
        Reach.NOT_REACHED,
    ]
    assert first.whole.covered == patch(CASES).covered == Covered(4, 2, 4, 3)
    assert (first.whole.only_suites, first.whole.complete) == (0, False)
    assert (second.whole.covered, second.whole.complete) == (Covered(0, 0, 0, 0), True)


def test_lines_and_branches_that_only_suites_reach_are_known(tmp_path: Path) -> None:
    result = read_coverage(written(tmp_path, suites=True))
    whole = result.patches[0].whole
    assert result.with_suites
    assert [line.line for line in whole.added if line.only_suites] == [2]
    assert (whole.covered, whole.covered_with_suites) == (Covered(4, 2, 4, 3), Covered(4, 3, 4, 4))


def test_the_other_data_of_a_patch_is_unchanged() -> None:
    annotated = annotated_json(patch(CASES), None)
    del annotated["files"]["a.c"]["added"]
    assert annotated == patch_json(patch(CASES))


@pytest.mark.parametrize(
    ("cases", "suites"),
    [(None, LineCounts(1)), (LineCounts(1, (1, 0)), LineCounts(1))],
    ids=["code for suites only", "other branches"],
)
def test_measurements_of_different_builds_are_refused(cases: LineCounts | None, suites: LineCounts) -> None:
    with pytest.raises(ValueError, match=r"suites only|shorter"):
        AddedLine(1, "", cases, suites)


FILE = {"arms": {"patched": {}}, "seed": 1, "cases": 1}
OLD = {"patch": "a", "files": {"a.c": {"lines_reached": [1]}}}
ODD = {
    "patch": "a",
    "files": {"a.c": {"added": [{"line": 1, "text": "", "cases": {"executions": 1, "branches": [1]}}]}},
}


@pytest.mark.parametrize(
    "data",
    [[], {}, FILE, FILE | {"patches": []}, FILE | {"arms": {}, "patches": [{"patch": "a", "files": {}}]}]
    + [FILE | {"patches": [each]} for each in (OLD, ODD)],
)
def test_other_files_are_refused(tmp_path: Path, data: Any) -> None:
    file = tmp_path / "other.json"
    for text in (json.dumps(data), "no JSON"):
        file.write_text(text)
        with pytest.raises(CaseError, match="give --coverage a file of pgduel coverage --series --json"):
            read_coverage(file)
    with pytest.raises(CaseError, match="cannot be read"):
        read_coverage(tmp_path / "absent.json")

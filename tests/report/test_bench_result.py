"""Tests of results of benches: files of `pgduel bench --json` are read, others are refused in one line."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from fuzz.bench.run import Row
from fuzz.errors import CaseError
from fuzz.report.bench_result import print_headlines, read_bench, row_json
from fuzz.report.console import Console

ROWS = [
    Row("10 rows", "patched", "master", 4.03, 3.9, 4.2, 4.0, 403.0, 100.0, (403.0,), (100.0,), {"blocks read": 3.0}),
    Row("20 rows", "patched", "master", 1.0, 0.9, 1.1, None, 100.0, 100.0, (100.0,), (100.0,), {}),
    Row("10 rows", "other", "master", 1.0, 0.9, 1.1, None, 100.0, 100.0, (100.0,), (100.0,), {}),
]


def result(name: str) -> dict[str, Any]:
    mail = {"subject": "COPY", "message_id": "a@b"}
    facts = {"bench": name, "unit": "tps", "mail": mail, "rounds": 9, "seconds": 1, "processors": 2, "settings": {}}
    return facts | {"rows": [row_json(row) for row in ROWS]}


def test_one_or_several_results_are_read(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    file.write_text(json.dumps(result("copy")))
    (copy,) = read_bench(file)
    assert [(pair, len(rows)) for pair, rows in copy.pairs.items()] == [
        (("master", "patched"), 2),
        (("master", "other"), 1),
    ]
    assert (copy.rows[0].ratio, copy.rows[0].mail, copy.rows[1].mail) == (4.03, 4.0, None)
    assert copy.rows[0].medians == {"master": 100.0, "patched": 403.0}
    file.write_text(json.dumps([result("copy"), result("bloom")]))
    assert [each.bench for each in read_bench(file)] == ["copy", "bloom"]


def test_headlines_are_one_table_with_a_column_for_each_arm(tmp_path: Path) -> None:
    file, shown = tmp_path / "bench.json", StringIO()
    facts = result("fdw") | {"mail": {"subject": "FDW", "message_id": "a@b", "claim": "not slower"}}
    file.write_text(json.dumps([result("copy"), facts | {"rows": [row_json(ROWS[2])]}]))
    print_headlines(Console(file=shown, width=20), read_bench(file))
    assert shown.getvalue().splitlines() == [
        "| bench | row | patched | other | mail |",
        "| --- | --- | --- | --- | --- |",
        "| copy | 10 rows | 4.03 (3.90 to 4.20) | 1.00 (0.90 to 1.10) | 4.00 |",
        "| copy | 20 rows | 1.00 (0.90 to 1.10) |  |  |",
        "| fdw | 10 rows |  | 1.00 (0.90 to 1.10) |  |",
        "",
        "fdw, the mail: not slower",
    ]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"bench": 1}'])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "other.json"
    file.write_text(text)
    with pytest.raises(CaseError, match="give --bench a file of pgduel bench --json"):
        read_bench(file)
    with pytest.raises(CaseError, match="cannot be read"):
        read_bench(tmp_path / "absent.json")

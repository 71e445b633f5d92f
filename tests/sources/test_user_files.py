"""Tests of the files of a user's SQL, and of mutations of queries."""

import os
import random
from pathlib import Path

import pglast
import pytest

from fuzz.errors import CaseError
from fuzz.sources import user_sql as files
from fuzz.sources.user_sql import mutate, read_files
from oracles.sql.building import sql_of

ODD = "SELECT '\u2028\f'"  # characters at which text may break, but no record
LOG_LINE = '2024-01-01,"u","d",1,,s,1,"SELECT",2024-01-01,3/1,0,LOG,00000,"{}",,,,,,,,,"psql","client backend",,0\n'
VALUES = {"N": ("7", "2.5"), "S": ("x",), "D": ("2024-01-01",)}


def test_a_directory_is_read_in_the_order_of_names(tmp_path: Path) -> None:
    (tmp_path / "b.sql").write_text("SELECT 2;")
    (tmp_path / "a.sql").write_text("SELECT 1;")
    (tmp_path / "c.txt").write_text("no SQL")
    assert [[each.sql for each in script] for script in read_files(tmp_path).scripts] == [["SELECT 1"], ["SELECT 2"]]


def test_statements_that_a_server_recorded_are_read(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text('calls,query\n3,"SELECT ""a"" FROM t\nWHERE b = $1"\n1,BEGIN\n' + f"2,{ODD}\n")
    (tmp_path / "l.csv").write_text(
        LOG_LINE.format("duration: 0.1 ms  statement: SELECT 1; SELECT 2")
        + LOG_LINE.format("execute <unnamed>: SELECT 3")
        + LOG_LINE.format("checkpoint complete")
    )
    expected = ("SELECT 1", "SELECT 2", "SELECT 3", 'SELECT "a" FROM t\nWHERE b = $1', "BEGIN", ODD)
    assert read_files(tmp_path).recorded == expected


def test_recorded_statements_that_cannot_be_parsed_are_read(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("query\nSELECT a FROM t QUALIFY a > 1; SELECT 1\n")
    assert read_files(tmp_path).recorded == ("SELECT a FROM t QUALIFY a > 1", "SELECT 1")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", b"a,b\n1,2\n", "neither a log in CSV nor pg_stat_statements"),
        ("x.sql", b"SELECT '\xff';", "takes text in UTF-8"),
        ("x.sql", b"SELECT 1;\0", "has NUL characters"),
        ("x.sql", b"-- nothing\n", "has no statement; give scripts with SELECT"),
        ("x.csv", b"query\nSELEC\n", "has no statement; give scripts with SELECT"),
        ("x.csv", b"query\nSELECT 'cut off\n", "has no statement; give scripts with SELECT"),
        ("x.txt", b"", "has no files ending in .sql"),
    ],
)
def test_unusable_files_are_refused(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CaseError, match=message):
        read_files(tmp_path)


def test_pipes_in_a_directory_are_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.sql")
    (tmp_path / "x.sql").write_text("SELECT 1;")
    assert len(read_files(tmp_path).scripts) == 1


def test_files_that_scripts_include_are_noted(tmp_path: Path) -> None:
    (tmp_path / "x.sql").write_text("SELECT 1;\n\\i schema.sql\n\\if 0\n\\ir never.sql\n\\endif\nSELECT '\\i x';\n")
    (tmp_path / "y.sql").write_text("SELECT 2;\n\\include_relative more.sql\n")
    assert read_files(tmp_path).inclusions == (f"{tmp_path}/x.sql, line 2", f"{tmp_path}/y.sql, line 2")


def test_too_large_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 10)
    (tmp_path / "x.sql").write_text("SELECT 'too long';")
    with pytest.raises(CaseError, match="which each case would load"):
        read_files(tmp_path)


def test_mutations_change_constants_comparisons_and_joins() -> None:
    sql = "SELECT a, 1 FROM t JOIN u USING (k) WHERE t.d < '2024-01-01' AND u.n = 3 GROUP BY 1 ORDER BY 2 LIMIT 1"
    found = set()
    for seed in range(60):
        (statement,) = pglast.parse_sql(sql)
        mutate(statement, random.Random(seed), VALUES)
        found.add(changed := sql_of(statement))
        assert " GROUP BY 1 ORDER BY 2 " in changed
    assert len(found) > 40
    for part in ("LEFT JOIN", "FULL JOIN", "= 7", "2.5", "t.d > "):
        assert any(part in each for each in found), part

"""Tests of the choice of a series' own regression tests."""

from pathlib import Path

import pytest

from fuzz.mutation.own_tests import suites_of
from fuzz.servers import git


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDUEL_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize(
    ("paths", "suites"),
    [
        ((), ()),
        (("src/backend/a.c", "src/test/regress/parallel_schedule"), ()),
        (("src/test/regress/sql/join.sql",), ("regress",)),
        (("src/test/regress/expected/join_1.out",), ("regress",)),
        (("src/test/isolation/specs/eval-plan-qual.spec",), ("isolation",)),
        (("contrib/postgres_fdw/expected/postgres_fdw.out",), ("contrib/postgres_fdw",)),
        (("src/pl/plpgsql/src/sql/plpgsql_call.sql",), ("src/pl/plpgsql/src",)),
        (("src/test/modules/a/sql/a.sql", "src/test/modules/b/t/001_b.pl"), ("src/test/modules/a",)),
    ],
)
def test_suites_of_changed_files(tmp_path: Path, paths: tuple[str, ...], suites: tuple[str, ...]) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "README").write_text("unchanged\n")
    before = git.import_directory(source)
    for path in paths:
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).write_text("new\n")
    assert tuple(suites_of(before, git.import_directory(source))) == suites

"""Tests of `requested_samples` and `statements`: remote SQL of postgres_fdw in the forms of all arms."""

import pytest

from oracles.model.observation import CaseObservation, Remote
from oracles.statistics.analyze import STATEMENT, RequestedSample, requested_samples, statements


@pytest.mark.parametrize(
    ("sql", "sample"),
    [
        ("SELECT a, b FROM duel.r1", RequestedSample("duel.r1")),
        ("SELECT NULL FROM duel.r1", RequestedSample("duel.r1")),
        ("SELECT a FROM duel.r1 TABLESAMPLE BERNOULLI(12.5)", RequestedSample("duel.r1", "BERNOULLI", 0.125)),
        ("SELECT a FROM duel.r1 TABLESAMPLE SYSTEM (50.000000)", RequestedSample("duel.r1", "SYSTEM", 0.5)),
        (
            "SELECT a FROM ONLY duel.r1 WHERE pg_catalog.random() < 0.25",
            RequestedSample("duel.r1", random_fraction=0.25),
        ),
        (
            "SELECT a FROM duel.r1 TABLESAMPLE SYSTEM(1e-05) WHERE pg_catalog.random() < 0.5",
            RequestedSample("duel.r1", "SYSTEM", 1e-7, 0.5),
        ),
        (
            "SELECT a, pg_catalog.row_number() OVER (), pg_catalog.random() FROM duel.v ORDER BY 3 LIMIT 300",
            RequestedSample("duel.v", limit=300),
        ),
    ],
)
def test_a_sample_is_read(sql: str, sample: RequestedSample) -> None:
    (found,) = requested_samples([f"{STATEMENT}DECLARE c1 CURSOR FOR {sql}"])
    assert (found.relation, found.tablesample, found.limit) == (sample.relation, sample.tablesample, sample.limit)
    assert found.fraction == pytest.approx(sample.fraction)
    assert found.everything == (sample == RequestedSample(sample.relation))


@pytest.mark.parametrize(
    "line",
    [
        f"{STATEMENT}SELECT pg_catalog.count(*) FROM duel.r1 TABLESAMPLE SYSTEM(10)",
        f"{STATEMENT}FETCH 100 FROM c1",
        "ERROR:  DECLARE c1 CURSOR FOR SELECT a FROM duel.r1",
    ],
)
def test_other_statements_are_no_samples(line: str) -> None:
    assert list(requested_samples([line])) == []


def test_remote_sql_belongs_to_the_statement_before_it() -> None:
    own = ("LOG:  statement: ANALYZE a", "LOG:  execute <unnamed>: SELECT 1", "LOG:  statement: ANALYZE a")
    log = (own[0], "WARNING:  hm", *own[1:])
    remote = (Remote(1, 1, "one"), Remote(1, 2, "two"), Remote(2, 4, "three"))
    seen = CaseObservation("", (), log=log, remote=remote)
    assert list(statements(seen)) == [
        ("ANALYZE a", ("one", "two")),
        ("LOG:  execute <unnamed>: SELECT 1", ()),
        ("ANALYZE a", ("three",)),
    ]

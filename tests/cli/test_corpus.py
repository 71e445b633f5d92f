"""Tests of the corpus: fixed bugs do not occur on the shipped arms, and bugs of upstream occur on all."""

from pathlib import Path

import pytest

from fuzz.triage.reproducer.reproducer import load, parse, render
from oracles.model.finding import Finding
from tests.cli.bug import JOIN_AT_BOUNDS
from tests.cli.command import Command

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]


def test_the_shipped_corpus_is_as_expected(pgduel: Command) -> None:
    ended = pgduel("corpus", "run")
    assert ended.status == 0, ended.out + ended.err
    assert ", 0 not as expected" in ended.out


@pytest.fixture
def reproducer(tmp_path: Path) -> Path:
    case = parse(JOIN_AT_BOUNDS)
    finding = Finding("result", ("patched", "bugged"), "rows", len(case.all_steps) - 1, "1 row missing", "", "")
    path = tmp_path / "found.sql"
    path.write_text(render(case, finding, {}, "1/g/2", "./pgduel replay FILE"))
    return path


def test_a_fixed_bug_is_kept_and_detected_when_it_returns(
    pgduel: Command, bugged: tuple[str, ...], reproducer: Path, tmp_path: Path
) -> None:
    corpus = tmp_path / "corpus"
    refused = pgduel("corpus", "add", reproducer, "--corpus", corpus, *bugged)
    assert (refused.status, corpus.exists()) == (2, False)
    assert "bugged still shows" in refused.err
    sound = ("--arm", "a=upstream", "--arm", "b=upstream")
    assert pgduel("corpus", "add", reproducer, "--corpus", corpus, *sound).status == 0
    (kept,) = corpus.glob("fixed/*.sql")
    assert f"pgduel replay {kept} --arm a=upstream" in kept.read_text()
    again = pgduel("corpus", "run", "--corpus", corpus, *bugged)
    assert again.status == 1
    assert "1 reproducers, 1 not as expected" in again.out


def test_a_reproducer_of_which_its_oracle_judges_nothing_is_not_as_expected(
    pgduel: Command, reproducer: Path, tmp_path: Path
) -> None:
    fixed = tmp_path / "corpus" / "fixed"
    fixed.mkdir(parents=True)
    (fixed / "one.sql").write_text(reproducer.read_text().replace('"oracle": "result"', '"oracle": "buckets"'))
    sound = ("--arm", "a=upstream", "--arm", "b=upstream")
    ended = pgduel("corpus", "run", "--corpus", tmp_path / "corpus", *sound)
    assert ended.status == 1, ended.out + ended.err
    assert "buckets judges nothing of it" in ended.out


def test_the_smaller_of_two_reproducers_of_a_bug_stays_and_is_reduced(
    pgduel: Command, bugged: tuple[str, ...], reproducer: Path, tmp_path: Path
) -> None:
    fixed = tmp_path / "corpus" / "fixed"
    fixed.mkdir(parents=True)
    script = reproducer.read_text()
    (fixed / "one.sql").write_text(script)
    (fixed / "other.sql").write_text(script.replace("-- end", "-- step 99: command\nANALYZE duel.p;\n\n-- end"))
    ended = pgduel("corpus", "minimize", "--corpus", tmp_path / "corpus", *bugged)
    assert ended.status == 0, ended.out + ended.err
    (left,) = fixed.iterdir()
    assert len(load(str(left)).case.all_steps) < len(parse(script).all_steps)

"""Tests of cases of earlier versions: modes for samples and repetitions become fields or are dropped."""

from dataclasses import replace

from fuzz import documents, workdir
from fuzz.older_cases import current
from fuzz.triage.reproducer.reproducer import load
from oracles.model.case import Case, Kind, SameRows, Step
from oracles.model.mode import Mode, Protocol

EXTENDED = Mode("extended", protocol=Protocol.EXTENDED)
CASE = Case("any", (), (Step("SELECT 1", Kind.QUERY),), (EXTENDED,))
OLD = replace(CASE, modes=(Mode("explained"), EXTENDED, Mode("again 1"), Mode("sampled by name")))


def test_modes_become_samples() -> None:
    assert current(OLD) == replace(CASE, samples=("explained",))


def test_tags_become_reports() -> None:
    queries = (Step("SELECT 1"), Step("SELECT 2", tags=("as before", "of this scene")), Step("SELECT 3", tags=("a",)))
    assert current(replace(CASE, steps=queries)).steps == (
        queries[0],
        Step("SELECT 2", same_rows=SameRows.BY_CONTENT),
        queries[2],
    )
    (reported,) = current(replace(CASE, steps=(Step("SELECT 1", tags=("as before", "a")),))).steps
    assert reported == Step("SELECT 1", tags=("a",), same_rows=SameRows.BY_MEANING)


def test_a_stored_case_is_read() -> None:
    assert documents.loads(documents.dumps(OLD), Case) == replace(CASE, samples=("explained",))


def test_a_current_case_is_unchanged() -> None:
    case = replace(CASE, modes=(Mode("plain"), Mode("explained", (("work_mem", "1MB"),))), samples=("planned",))
    assert current(case) == case


def test_a_reproducer_is_read() -> None:
    case = load(str(workdir.PROJECT / "corpus" / "fixed" / "6b753b2a15f4.sql")).case
    assert case.samples == ("explained",)
    assert [mode.name for mode in case.modes] == ["hash_only", "small_memory", "partitionwise"]

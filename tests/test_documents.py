"""Tests of stored documents: they are read unchanged, also from other versions, and invalid ones are refused."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz import documents, workdir
from fuzz.campaign.counters import Counters
from fuzz.campaign.plan import Plan
from fuzz.documents import DocumentError, current
from fuzz.servers.arm_options import ArmOptions
from fuzz.sources.source import UserInput
from fuzz.triage.blame import Blame
from fuzz.triage.interestingness import ReducedCase
from fuzz.triage.reproducer.reproducer import load
from oracles.model.case import Case, Kind, SameRows, Step
from oracles.model.finding import Evidence, Finding, Vote
from oracles.model.mode import Mode, Protocol

_ANY_TEXT = st.text(st.characters())  # lone surrogates too: bytes of the user's SQL that are no UTF-8
STEPS = st.builds(
    Step,
    sql=_ANY_TEXT,
    kind=st.sampled_from(Kind),
    copy_data=st.none() | st.binary(),
    params=st.lists(st.none() | _ANY_TEXT, max_size=3).map(tuple),
    ordered=st.booleans(),
    may_fail=st.booleans(),
    tags=st.lists(_ANY_TEXT, max_size=3).map(tuple),
    same_rows=st.none() | st.sampled_from(SameRows),
)
MODES = (Mode("prepared_generic", (("plan_cache_mode", "force_generic_plan"),), Protocol.PREPARED),)
FINDING = Finding("tlp", ("a", "b"), "rows", 2, "", "4", "3", (Evidence("SELECT 1", (("a", "b"),)),), Vote("b", ("a",)))


@given(STEPS)
def test_a_case_is_read_unchanged(step: Step) -> None:
    case = Case("any", (step,), (step, step), MODES, "a part")
    assert documents.loads(documents.dumps(case), Case) == case


@pytest.mark.parametrize(
    "document",
    [
        FINDING,
        ReducedCase(Case("x", (), (Step("SELECT 1"),)), FINDING, 2, 7),
        Blame("patched", ("1.patch",), ((0, False), (1, True))),
        Plan(1, {"x": 1}, 2.5, None, stop_at_first=True, arms=ArmOptions(arms=("a=b",)), given=UserInput("x.sql")),
        Counters(Counter(a=3), seconds=1.5, verdicts=Counter({("result", "a", "agree"): 3})),
    ],
    ids=lambda document: type(document).__name__,
)
def test_a_document_is_read_unchanged(document: object) -> None:
    assert documents.loads(documents.dumps(document), type(document)) == document


def test_a_document_of_another_version_is_read() -> None:
    text = '{"sql": "SELECT 1", "of_a_newer_one": 1}'  # older ones lack fields
    assert documents.loads(text, Step) == Step("SELECT 1")


def test_changes_are_the_fields_with_other_values_than_their_defaults() -> None:
    assert documents.to_changes(Mode("x", protocol=Protocol.CURSOR)) == {"name": "x", "protocol": "cursor"}


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("{", Case, "not a Case: no JSON"),
        ("5", Case, "not a Case: "),
        ('{"generator": "x"}', Case, "not a Case: required field missing @ data.scene"),
        ('{"sql": 5}', Step, "not a Step: invalid value for type, expected str @ data.sql"),
        ('{"sql": "", "kind": "x"}', Step, "not a Step: invalid value for type, expected Kind @ data.kind"),
        ('{"sql": "", "copy_data": "?"}', Step, "not a Step: invalid value .* @ data.copy_data"),
        ('{"cases": [[]]}', Counters, "not a Counters: invalid value .* @ data.cases"),
        ('{"seconds": "5"}', Counters, "not a Counters: invalid value .* @ data.seconds"),
    ],
)
def test_invalid_documents_are_refused_in_one_line(text: str, kind: type, message: str) -> None:
    with pytest.raises(DocumentError, match=f"^{message}[^\n]*$"):
        documents.loads(text, kind)


EXTENDED = Mode("extended", protocol=Protocol.EXTENDED)
NEWER = Case("any", (), (Step("SELECT 1", Kind.QUERY),), (EXTENDED,))
OLDER = replace(NEWER, modes=(Mode("explained"), EXTENDED, Mode("again 1"), Mode("sampled by name")))


def test_modes_of_older_cases_become_samples() -> None:
    assert current(OLDER) == replace(NEWER, samples=("explained",))


def test_tags_of_older_cases_become_reports() -> None:
    queries = (Step("SELECT 1"), Step("SELECT 2", tags=("as before", "of this scene")), Step("SELECT 3", tags=("a",)))
    assert current(replace(NEWER, steps=queries)).steps == (
        queries[0],
        Step("SELECT 2", same_rows=SameRows.BY_CONTENT),
        queries[2],
    )
    (reported,) = current(replace(NEWER, steps=(Step("SELECT 1", tags=("as before", "a")),))).steps
    assert reported == Step("SELECT 1", tags=("a",), same_rows=SameRows.BY_MEANING)


def test_an_older_case_is_read() -> None:
    assert documents.loads(documents.dumps(OLDER), Case) == replace(NEWER, samples=("explained",))


def test_a_current_case_is_unchanged() -> None:
    case = replace(NEWER, modes=(Mode("plain"), Mode("explained", (("work_mem", "1MB"),))), samples=("planned",))
    assert current(case) == case


def test_an_older_reproducer_is_read() -> None:
    case = load(str(workdir.PROJECT / "corpus" / "fixed" / "6b753b2a15f4.sql")).case
    assert case.samples == ("explained",)
    assert [mode.name for mode in case.modes] == ["hash_only", "small_memory", "partitionwise"]

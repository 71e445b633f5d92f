"""Tests of the conversion of hand-made replies to observations."""

import json
import struct

import pytest

from fuzz.execution import messages
from fuzz.execution.observing import Reader
from fuzz.execution.session import frames_of
from fuzz.execution.wire import Reply
from oracles.internal_error import InternalError
from oracles.model.case import Case, Kind, Step
from oracles.model.finding import Finding
from oracles.model.observation import CaseObservation, Observation, Outcome, Residue, ResultColumn, Run
from oracles.model.oracle import duel
from tests.oracles.observed import ok, row, seen

QUERY = Step("SELECT 1", Kind.QUERY)


def observed(*replies: Reply, step: Step = QUERY, explain: bool = True) -> Observation:
    """Return the observation of a case of one step."""
    case, run = Case("by_hand", (), (step,)), Run("patched", (), explain=explain)
    (found,) = Reader(case, run, frames_of(case, run), {}).observations(replies)
    return found


def explained(*texts: str) -> Reply:
    return Reply([row(text) for text in texts], [(messages.COMMAND_COMPLETE, b"EXPLAIN\0")], "I")


def test_an_explained_step_has_its_plan() -> None:
    plan = [{"Plan": {"Node Type": "Result"}, "Planning Time": 0.1}]
    found = observed(explained(json.dumps(plan)))
    assert (found.plan, found.outcome, found.rows) == (plan[0], Outcome.OK, ())


def test_a_step_without_anything_to_plan_has_no_plan() -> None:
    found = observed(explained("[]"))
    assert (found.plan, found.outcome) == (None, Outcome.OK)


@pytest.mark.parametrize("text", [" ", '[{"Plan": {"Rows": 1,}}]', "[" * 100_000, '"Plan"', "[1]"])
def test_an_explanation_that_is_no_json_is_an_internal_error(text: str) -> None:
    step = observed(explained(text))
    assert (step.outcome, step.sqlstate, step.plan) == (Outcome.ERROR, "XX000", None)
    case, arms = Case("by_hand", (), (QUERY,)), ("master", "patched")
    runs = duel(case, arms)
    observations = {run: seen(ok("1")) for run in runs} | {
        Run(arm, (), explain=True): CaseObservation(arm, (each,), residue=Residue())
        for arm, each in zip(arms, (observed(explained("[]")), step), strict=True)
    }
    verdicts = InternalError().judge(case, arms, observations)
    assert isinstance(verdicts, tuple)
    (finding,) = (verdict for verdict in verdicts if isinstance(verdict, Finding))
    assert finding.arms == arms
    assert finding.origin == "XX000 the output of EXPLAIN (FORMAT JSON) cannot be read in an unnamed function"


def answered(*others: tuple[bytes, bytes], rows: tuple[bytes, ...] = ()) -> Reply:
    """Return a reply with messages of these types."""
    return Reply(list(rows), [(ord(kind), payload) for kind, payload in others], "I")


def described(name: bytes, oid: int) -> tuple[bytes, bytes]:
    return b"T", struct.pack(">H", 1) + name + b"\0" + struct.pack(">IhIhih", 0, 0, oid, -1, -1, 0)


def test_formats_of_copy_are_kept() -> None:
    copy = Step("COPY t TO STDOUT (FORMAT binary)", Kind.COPY_OUT)
    found = observed(answered((b"H", b"\1\0\2\0\1\0\1")), step=copy, explain=False)
    assert found.protocol == ("CopyOutResponse: format 1, of columns 1, 1",)
    found = observed(answered((b"G", b"\0\0\0")), step=copy, explain=False)
    assert found.protocol == ("CopyInResponse: format 0, of columns none",)


def test_notifications_lose_their_process_numbers() -> None:
    one, other = (
        observed(answered((b"A", pid + b"channel\0payload\0")), explain=False) for pid in (b"\0\0\0\7", b"\0\1\2\3")
    )
    assert one == other
    assert one.protocol == ("NotificationResponse: channel = payload",)


def test_reported_settings_are_kept_without_values_of_the_arm() -> None:
    """A case that resets the application name gets that of the session, which has the name of the arm."""
    statuses = (b"DateStyle\0SQL, DMY\0", b"application_name\0pgduel patched\0", b"application_name\0own\0")
    found = observed(answered(*((b"S", each) for each in statuses)), explain=False)
    assert found.protocol == (
        "ParameterStatus: DateStyle = SQL, DMY",
        "ParameterStatus: application_name = pgduel",
        "ParameterStatus: application_name = own",
    )


def test_all_descriptions_of_a_step_are_kept() -> None:
    found = observed(answered(described(b"a", 23), described(b"b", 25)), explain=False)
    assert found.columns == (ResultColumn("b", "25"),)
    assert found.earlier_columns == ((ResultColumn("a", "23"),),)


@pytest.mark.parametrize(("oid", "type_"), [(8_999, "8999"), (9_999, "9999"), (10_000, "pg_roles"), (16_400, "own")])
def test_types_without_a_fixed_oid_have_names(oid: int, type_: str) -> None:
    case, run = Case("by_hand", (), (QUERY,)), Run("patched", ())
    reader = Reader(case, run, frames_of(case, run), {})
    replies = [answered(described(b"a", oid))]
    assert reader.unknown_types(replies) == ([] if type_.isdigit() else [oid])
    reader.type_names = {oid: type_}
    (found,) = reader.observations(replies)
    assert found.columns == (ResultColumn("a", type_),)

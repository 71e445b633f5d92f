"""Tests of `as_executed`: the case that shows a crash by itself."""

from dataclasses import replace

from fuzz.execution.session import EXPLAIN, PLAN
from fuzz.triage.triage import as_executed
from oracles.crash import Crash
from oracles.internal_error import InternalError, origin_of
from oracles.leak import Leak
from oracles.model.case import Kind
from oracles.model.finding import Finding
from oracles.model.mode import Mode, Protocol
from oracles.model.observation import Run
from tests.oracles.observed import LOST, case, error, ok, query, seen, warning
from tests.oracles.test_crash import ASSERTION

CASE = case(query("SELECT 1"), query("SELECT 2"), modes=(Mode("own"),))
PLAIN = Run("patched", CASE.modes)
BRIEF = Mode("brief")
OTHER = Run("patched", (*CASE.modes, BRIEF), instead=((0, "SET a = 'b';SELECT;RESET a"), (1, "SELECT 2.0")))
WELL = seen(ok("1"), ok("2"))
CRASHED = replace(seen(ok("1"), LOST), crash=ASSERTION)
ORIGIN = "assertion owner->nhash == 0 in src/backend/utils/resowner/resowner.c"


def found(oracle: str = Crash.name, origin: str = ORIGIN) -> Finding:
    return Finding(oracle, ("master", "patched"), origin, 1, "", "", "")


def test_a_crash_of_a_run_with_other_queries_is_a_case_with_these() -> None:
    executed, finding = as_executed(CASE, found(), {PLAIN: WELL, OTHER: CRASHED})
    kinds = [(step.sql, step.kind) for step in executed.all_steps]
    assert kinds == [
        ("SET a = 'b'", Kind.COMMAND),
        ("SELECT", Kind.QUERY),
        ("RESET a", Kind.COMMAND),
        ("SELECT 2.0", Kind.QUERY),
    ]
    assert executed.modes == (*CASE.modes, BRIEF)
    assert finding == replace(found(), step=3)


def test_an_internal_error_of_a_shared_run_is_a_case_with_all_variants() -> None:
    shared = replace(OTHER, instead=((1, "SELECT 2.0 -- two\n;SELECT 3"),))
    internal = error("XX000", "cache lookup failed for type 1")
    origin = origin_of(internal.messages[0])
    seen_in = {PLAIN: WELL, OTHER: WELL, shared: seen(ok("1"), internal)}
    executed, _ = as_executed(CASE, found(InternalError.name, origin), seen_in)
    assert [step.sql for step in executed.all_steps] == ["SELECT 1", "SELECT 2.0 -- two", "SELECT 3"]


def test_replaced_queries_may_have_syntax_of_a_patch() -> None:
    run = replace(OTHER, instead=((0, "SET a = 'b';SELECT * FROM GRAPH_TABLE (g MATCH (v) COLUMNS (v.x));RESET a"),))
    executed, _ = as_executed(CASE, found(), {PLAIN: WELL, run: CRASHED})
    texts = ["SET a = 'b'", "SELECT * FROM GRAPH_TABLE (g MATCH (v) COLUMNS (v.x))", "RESET a", "SELECT 2"]
    assert [step.sql for step in executed.all_steps] == texts


def test_a_crash_of_explain_is_a_case_that_explains() -> None:
    explained = Run("patched", CASE.modes, explain=True)
    executed, finding = as_executed(CASE, found(), {PLAIN: WELL, explained: CRASHED})
    assert [(step.sql, step.kind) for step in executed.all_steps] == [
        (f"{EXPLAIN}SELECT 1", Kind.COMMAND),
        (f"{EXPLAIN}SELECT 2", Kind.COMMAND),
    ]
    assert (executed.modes, finding) == (CASE.modes, found())


def test_explain_keeps_the_kind_of_planning_and_parameters() -> None:
    generic, cursor = (Mode(each, protocol=each) for each in (Protocol.PREPARED, Protocol.CURSOR))
    given = case(replace(query("SELECT $1"), params=("it's",)), query("SELECT 2"))
    explained = (
        "PREPARE duel_statement AS SELECT $1",
        f"{PLAN}EXECUTE duel_statement (E'it''s')",
        "DEALLOCATE duel_statement",
    )
    for mode, second in ((generic, "EXECUTE duel_statement"), (cursor, "DECLARE duel_cursor CURSOR FOR SELECT 2")):
        planned = Run("patched", (mode,), plannings=2)
        executed, _ = as_executed(given, found(), {planned: CRASHED})
        texts = [step.sql for step in executed.all_steps]
        assert tuple(texts[:3]) == explained
        assert PLAN + second in texts[3:]
        assert not any(step.params for step in executed.all_steps)


def test_a_leak_in_a_run_with_other_queries_is_a_case_with_these() -> None:
    leak = ok("2", messages=(warning("resource was not closed: TupleDesc 0x1 (16384,-1)"),))
    origin = next(iter(Leak().origins(seen(leak))))
    executed, _ = as_executed(CASE, found(Leak.name, origin), {PLAIN: WELL, OTHER: seen(ok("1"), leak)})
    assert executed.all_steps[-1].sql == "SELECT 2.0"
    assert executed.modes == OTHER.modes


def test_a_crash_of_the_case_itself_is_the_case() -> None:
    assert as_executed(CASE, found(), {PLAIN: CRASHED, OTHER: CRASHED}) == (CASE, found())


def test_other_findings_keep_the_case() -> None:
    for finding in (found("result"), found(origin="assertion x in y.c")):
        assert as_executed(CASE, finding, {PLAIN: WELL, OTHER: CRASHED}) == (CASE, finding)

"""Tests of reduction: the result passes the interestingness test, and no pass makes it smaller."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.triage.reduction.passes.drop import drop_modes, drop_other_queries, drop_settings, drop_steps, drop_tags
from fuzz.triage.reduction.passes.shorten import (
    SIGNATURE,
    shorten_all_series,
    shorten_copy_data,
    shorten_loops,
    shorten_values,
)
from fuzz.triage.reduction.problem import Problem, sort_key
from fuzz.triage.reduction.reducer import PASSES, Pass, Uninteresting, reduce
from fuzz.triage.sequential_test import CERTAIN_TRIES, VAIN_TRIES, CaseTest
from oracles.model.case import Case, Kind, Step
from oracles.model.mode import Mode, Protocol
from tests.triage.reduction.cases import cases

CASE = Case(
    "g",
    (Step("CREATE TABLE t (a int)"), Step("CREATE TABLE u (a int)")),
    (Step("SELECT 1"), Step("SELECT 2"), Step("SELECT 3")),
)


def reduced(case: Case, is_interesting: CaseTest, *passes: Pass) -> Case:
    return reduce(case, is_interesting, seconds=60, replay="./pgduel replay 1/g/2", passes=passes or PASSES).case


def any_test(case: Case) -> bool:
    raise NotImplementedError


@given(cases, st.functions(like=any_test, returns=st.booleans(), pure=True))
def test_the_result_of_any_test_is_interesting_and_no_larger(case: Case, is_interesting: CaseTest) -> None:
    if not is_interesting(case):
        return
    better: list[Case] = []
    result = reduce(case, is_interesting, seconds=60, replay="", on_better=better.append).case
    assert is_interesting(result)
    assert all(sort_key(smaller) < sort_key(larger) for larger, smaller in pairwise([case, *better]))
    assert [case, *better][-1] == result


@given(
    cases,
    st.functions(like=any_test, returns=st.booleans(), pure=True),
    st.functions(like=any_test, returns=st.booleans(), pure=True),
)
def test_provisional_results_that_are_refuted_are_taken_back(
    case: Case, is_interesting: CaseTest, misleads: CaseTest
) -> None:
    if not is_interesting(case):
        return
    better: list[Case] = []
    result = reduce(
        case,
        is_interesting,
        seconds=60,
        replay="",
        fast_test=lambda tried: is_interesting(tried) or misleads(tried),
        on_better=better.append,
    ).case
    assert all(map(is_interesting, [result, *better]))
    assert [case, *better][-1] == result


def test_provisional_results_are_confirmed_at_intervals() -> None:
    steps = tuple(Step(f"SELECT {number}") for number in range(100))
    confirmed: list[Case] = []

    def shows(case: Case) -> bool:
        confirmed.append(case)
        return steps[70] in case.steps

    left = reduce(
        replace(CASE, steps=steps), shows, seconds=60, replay="", fast_test=lambda case: steps[70] in case.steps
    ).case
    assert (left.scene, len(left.steps)) == ((), 1)
    assert len(confirmed) < 12


def test_a_pass_with_refuted_results_is_repeated_with_the_full_test() -> None:
    steps = tuple(Step(f"SELECT {number}") for number in range(30))
    needed = {steps[3], steps[17]}
    left = reduce(
        replace(CASE, steps=steps),
        lambda case: needed <= set(case.steps),
        seconds=60,
        replay="",
        fast_test=lambda case: steps[3] in case.steps,
        passes=(drop_steps,),
    ).case
    assert left.all_steps == (steps[3], steps[17])


@given(cases, st.data())
def test_only_necessary_steps_stay(case: Case, data: st.DataObject) -> None:
    numbered = replace(
        case,
        scene=tuple(replace(step, tags=(f"scene {at}",)) for at, step in enumerate(case.scene)),
        steps=tuple(replace(step, tags=(f"step {at}",)) for at, step in enumerate(case.steps)),
    )
    needed = {step for step in numbered.all_steps if data.draw(st.booleans())}
    result = reduced(numbered, lambda tried: needed <= set(tried.all_steps), drop_steps)
    assert result.all_steps == tuple(step for step in numbered.all_steps if step in needed)
    assert {step.tags[0].split()[0] for step in result.scene} <= {"scene"}


def test_a_single_query_is_tried_first() -> None:
    queries = tuple(Step(f"SELECT {number}", Kind.QUERY) for number in range(64))
    tried: list[Case] = []

    def shows(case: Case) -> bool:
        tried.append(case)
        return queries[40] in case.steps

    problem = Problem(replace(CASE, steps=queries), lambda case, _: shows(case))
    drop_other_queries(problem)
    assert problem.best.all_steps == (*CASE.scene, queries[40])
    assert len(tried) <= 8


def test_all_series_are_shortened_to_the_necessary_rows_in_few_tests() -> None:
    def filled(rows: int) -> tuple[Step, ...]:
        return tuple(Step(f"INSERT INTO t{n} SELECT * FROM generate_series(3, {rows + 2})") for n in range(9))

    tried: list[Case] = []

    def shows(case: Case) -> bool:
        tried.append(case)
        return all(int(step.sql.rpartition(" ")[2][:-1]) >= 12 for step in case.scene)

    problem = Problem(replace(CASE, scene=filled(1000)), lambda case, _: shows(case))
    shorten_all_series(problem)
    assert problem.best.scene == filled(10)
    assert len(tried) <= 11


def test_loops_are_shortened_to_the_necessary_iterations() -> None:
    def made(*ends: int) -> tuple[Step, ...]:
        return tuple(
            Step(
                f"DO $$ BEGIN FOR i IN {first}..{last} LOOP EXECUTE format('CREATE TABLE t%s ()', i); END LOOP; END $$"
            )
            for first, last in zip((0, 128), ends, strict=True)
        )

    def last(step: Step) -> int:
        return int(step.sql.partition("..")[2].partition(" ")[0])

    problem = Problem(
        replace(CASE, scene=made(127, 149)), lambda case, _: last(case.scene[0]) >= 3 and last(case.scene[1]) >= 127
    )
    shorten_loops(problem)
    assert problem.best.scene == made(3, 127)


def test_a_case_without_the_finding_is_refused_with_the_replay_command() -> None:
    with pytest.raises(Uninteresting, match=r"replay it: \./pgduel replay 1/g/2"):
        reduced(CASE, lambda case: False)


def test_the_smallest_case_is_returned_at_the_time_limit() -> None:
    tried: list[Case] = []

    def slow(case: Case) -> bool:
        tried.append(case)
        return len(case.all_steps) > 1

    result = reduce(CASE, slow, seconds=0, replay="").case
    assert result == CASE
    assert set(tried) == {CASE}


def test_equal_cases_are_tested_once() -> None:
    tried: list[Case] = []

    def is_interesting(case: Case) -> bool:
        tried.append(case)
        return CASE.steps[1] in case.steps

    assert reduced(CASE, is_interesting).all_steps == (CASE.steps[1],)
    assert len(tried) == 2 * CERTAIN_TRIES + len(set(tried) - {CASE})  # with the measurement of the result


def test_an_occasional_finding_is_reduced() -> None:
    tried: Counter[Case] = Counter()

    def now_and_then(case: Case) -> bool:
        tried[case] += 1
        return CASE.steps[1] in case.steps and tried[case] % 3 == 0

    assert reduced(CASE, now_and_then).all_steps == (CASE.steps[1],)


def test_a_finding_that_never_occurs_is_refused_after_some_tries() -> None:
    tried: list[Case] = []

    def never(case: Case) -> bool:
        tried.append(case)
        return False

    with pytest.raises(Uninteresting):
        reduced(CASE, never)
    assert tried == [CASE] * VAIN_TRIES


def test_unnecessary_modes_protocols_and_settings_are_dropped() -> None:
    modes = (
        Mode("prepared", (("plan_cache_mode", "force_generic_plan"),), Protocol.PREPARED),
        Mode("spilling", (("work_mem", "64kB"), ("enable_mergejoin", "off"), ("enable_nestloop", "off"))),
    )

    def is_interesting(case: Case) -> bool:
        return any(("enable_mergejoin", "off") in mode.settings for mode in case.modes)

    result = reduced(replace(CASE, modes=modes), is_interesting, drop_modes, drop_settings)
    assert result.modes == (Mode("spilling (partly)", (("enable_mergejoin", "off"),)),)
    plain = reduced(replace(CASE, modes=modes), lambda case: True, drop_modes, drop_settings)
    assert plain.modes == ()


def test_tags_are_dropped() -> None:
    case = Case("g", (Step("SELECT 1", tags=("a",)),), (Step("SELECT 2", tags=("b", "c")),))
    left = reduced(case, lambda tried: len(tried.all_steps) == 2, drop_tags)
    assert left.all_steps == (Step("SELECT 1"), Step("SELECT 2"))


BINARY_ROW = b"\0\x02\0\0\0\x04\0\0\0\x07\xff\xff\xff\xff"


@pytest.mark.parametrize(
    ("data", "needed", "left"),
    [
        (b"1\n2\n3\n4\n", b"3\n", b"3\n"),
        (b"1\n2\n3\n4", b"4", b"4"),
        (b"a\r\nb\r\nc\r\n", b"b", b"b\r\n"),
        (b"a\rb\rc", b"b", b"b\r"),
        (
            SIGNATURE + bytes(8) + 5 * BINARY_ROW + b"\xff\xff",
            BINARY_ROW,
            SIGNATURE + bytes(8) + BINARY_ROW + b"\xff\xff",
        ),
        (SIGNATURE + bytes(8) + BINARY_ROW[:5], b"\0", SIGNATURE + bytes(8) + BINARY_ROW[:5]),
    ],
)
def test_unnecessary_rows_of_copy_data_are_dropped(data: bytes, needed: bytes, left: bytes) -> None:
    case = Case("g", (), (Step("COPY t FROM STDIN", Kind.COPY_IN, data), Step("SELECT 1")))
    result = reduced(case, lambda tried: needed in (tried.steps[0].copy_data or b""), shorten_copy_data)
    assert result.steps == (replace(case.steps[0], copy_data=left), case.steps[1])


@pytest.mark.parametrize(
    ("sql", "needed", "left"),
    [
        (
            "INSERT INTO t VALUES (1, 'a'), (2, ')'), (3, 'c') RETURNING a",
            "')'",
            "INSERT INTO t VALUES  (2, ')') RETURNING a",
        ),
        ("SELECT * FROM (VALUES (1),((2)),(3)) AS v", "(2)", "SELECT * FROM (VALUES ((2))) AS v"),
        ("INSERT INTO t VALUES (1)", "(1)", "INSERT INTO t VALUES (1)"),
        ("SELECT 'values (1), (2)'", "1", "SELECT 'values (1), (2)'"),
    ],
)
def test_unnecessary_rows_of_values_are_dropped(sql: str, needed: str, left: str) -> None:
    case = Case("g", (), (Step(sql),))
    assert reduced(case, lambda tried: needed in tried.steps[0].sql, shorten_values).steps == (Step(left),)


def test_a_necessary_number_of_rows_stays() -> None:
    data = b"".join(b"%d\n" % number for number in range(300))
    case = Case("g", (), (Step("COPY t FROM STDIN", Kind.COPY_IN, data),))
    tests = 0

    def is_interesting(tried: Case) -> bool:
        nonlocal tests
        tests += 1
        return (tried.steps[0].copy_data or b"").count(b"\n") > 63

    result = reduced(case, is_interesting, shorten_copy_data)
    assert (result.steps[0].copy_data or b"").count(b"\n") == 64
    assert tests < 200


def test_a_foreign_table_keeps_its_remote_table() -> None:
    """Otherwise it may be the remote table itself."""
    table = "CREATE FOREIGN TABLE f (a int, b int) SERVER s OPTIONS (schema_name 'x', table_name 'r', fetch_size '3')"
    result = reduced(Case("g", (Step(table),), (Step("SELECT 1"),)), lambda tried: len(tried.all_steps) == 2)
    (left,) = result.scene
    assert "schema_name 'x', table_name 'r')" in left.sql
    assert not {"fetch_size", "b int"} & set(left.sql.split())

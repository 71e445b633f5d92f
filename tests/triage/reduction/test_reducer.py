"""Reduction keeps what is interesting, whatever that is, and ends where nothing can be left out."""

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


def some_question(case: Case) -> bool:
    raise NotImplementedError


@given(cases, st.functions(like=some_question, returns=st.booleans(), pure=True))
def test_whatever_is_interesting_the_result_is_and_is_no_larger(case: Case, is_interesting: CaseTest) -> None:
    if not is_interesting(case):
        return
    better: list[Case] = []
    result = reduce(case, is_interesting, seconds=60, replay="", on_better=better.append).case
    assert is_interesting(result)
    assert all(sort_key(smaller) < sort_key(larger) for larger, smaller in pairwise([case, *better]))
    assert [case, *better][-1] == result


@given(
    cases,
    st.functions(like=some_question, returns=st.booleans(), pure=True),
    st.functions(like=some_question, returns=st.booleans(), pure=True),
)
def test_what_only_seems_to_be_interesting_is_taken_back(
    case: Case, is_interesting: CaseTest, deceives: CaseTest
) -> None:
    if not is_interesting(case):
        return
    better: list[Case] = []
    result = reduce(
        case,
        is_interesting,
        seconds=60,
        replay="",
        fast_test=lambda tried: is_interesting(tried) or deceives(tried),
        on_better=better.append,
    ).case
    assert all(map(is_interesting, [result, *better]))
    assert [case, *better][-1] == result


def test_what_seems_to_be_interesting_is_looked_at_closely_now_and_then() -> None:
    steps = tuple(Step(f"SELECT {number}") for number in range(100))
    closely: list[Case] = []

    def shows(case: Case) -> bool:
        closely.append(case)
        return steps[70] in case.steps

    left = reduce(
        replace(CASE, steps=steps), shows, seconds=60, replay="", fast_test=lambda case: steps[70] in case.steps
    ).case
    assert (left.scene, len(left.steps)) == ((), 1)
    assert len(closely) < 12


def test_a_pass_that_was_deceived_is_done_again_closely() -> None:
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
def test_steps_that_matter_are_all_that_stays(case: Case, data: st.DataObject) -> None:
    numbered = replace(
        case,
        scene=tuple(replace(step, tags=(f"scene {at}",)) for at, step in enumerate(case.scene)),
        steps=tuple(replace(step, tags=(f"step {at}",)) for at, step in enumerate(case.steps)),
    )
    needed = {step for step in numbered.all_steps if data.draw(st.booleans())}
    result = reduced(numbered, lambda tried: needed <= set(tried.all_steps), drop_steps)
    assert result.all_steps == tuple(step for step in numbered.all_steps if step in needed)
    assert {step.tags[0].split()[0] for step in result.scene} <= {"scene"}


def test_that_one_query_shows_it_without_the_others_is_guessed_at_once() -> None:
    queries = tuple(Step(f"SELECT {number}", Kind.QUERY) for number in range(64))
    asked: list[Case] = []

    def shows(case: Case) -> bool:
        asked.append(case)
        return queries[40] in case.steps

    problem = Problem(replace(CASE, steps=queries), lambda case, _: shows(case))
    drop_other_queries(problem)
    assert problem.best.all_steps == (*CASE.scene, queries[40])
    assert len(asked) <= 8


def test_all_series_are_cut_to_the_rows_that_matter_by_few_questions() -> None:
    def filled(rows: int) -> tuple[Step, ...]:
        return tuple(Step(f"INSERT INTO t{n} SELECT * FROM generate_series(3, {rows + 2})") for n in range(9))

    asked: list[Case] = []

    def shows(case: Case) -> bool:
        asked.append(case)
        return all(int(step.sql.rpartition(" ")[2][:-1]) >= 12 for step in case.scene)

    problem = Problem(replace(CASE, scene=filled(1000)), lambda case, _: shows(case))
    shorten_all_series(problem)
    assert problem.best.scene == filled(10)
    assert len(asked) <= 11


def test_loops_go_around_as_often_as_it_takes() -> None:
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


def test_a_case_that_shows_nothing_is_refused_with_the_command_to_look() -> None:
    with pytest.raises(Uninteresting, match=r"replay it: \./pgduel replay 1/g/2"):
        reduced(CASE, lambda case: False)


def test_the_best_so_far_stands_when_the_time_is_up() -> None:
    tried: list[Case] = []

    def slow(case: Case) -> bool:
        tried.append(case)
        return len(case.all_steps) > 1

    result = reduce(CASE, slow, seconds=0, replay="").case
    assert result == CASE
    assert set(tried) == {CASE}


def test_the_same_question_is_asked_once() -> None:
    tried: list[Case] = []

    def is_interesting(case: Case) -> bool:
        tried.append(case)
        return CASE.steps[1] in case.steps

    assert reduced(CASE, is_interesting).all_steps == (CASE.steps[1],)
    assert len(tried) == 2 * CERTAIN_TRIES + len(set(tried) - {CASE})  # the result is measured again


def test_what_shows_now_and_then_is_reduced_too() -> None:
    asked: Counter[Case] = Counter()

    def now_and_then(case: Case) -> bool:
        asked[case] += 1
        return CASE.steps[1] in case.steps and asked[case] % 3 == 0

    assert reduced(CASE, now_and_then).all_steps == (CASE.steps[1],)


def test_what_never_shows_again_is_refused_after_some_tries() -> None:
    asked: list[Case] = []

    def never(case: Case) -> bool:
        asked.append(case)
        return False

    with pytest.raises(Uninteresting):
        reduced(CASE, never)
    assert asked == [CASE] * VAIN_TRIES


def test_modes_protocol_and_settings_that_do_not_matter_go() -> None:
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


def test_tags_go() -> None:
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
def test_rows_of_copy_data_that_do_not_matter_go(data: bytes, needed: bytes, left: bytes) -> None:
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
def test_rows_of_values_that_do_not_matter_go(sql: str, needed: str, left: str) -> None:
    case = Case("g", (), (Step(sql),))
    assert reduced(case, lambda tried: needed in tried.steps[0].sql, shorten_values).steps == (Step(left),)


def test_a_row_count_that_matters_stays() -> None:
    data = b"".join(b"%d\n" % number for number in range(300))
    case = Case("g", (), (Step("COPY t FROM STDIN", Kind.COPY_IN, data),))
    asked = 0

    def is_interesting(tried: Case) -> bool:
        nonlocal asked
        asked += 1
        return (tried.steps[0].copy_data or b"").count(b"\n") > 63

    result = reduced(case, is_interesting, shorten_copy_data)
    assert (result.steps[0].copy_data or b"").count(b"\n") == 64
    assert asked < 200

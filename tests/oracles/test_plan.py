"""Tests of the oracle `plan` on hand-made plans: different and equivalent plans."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from oracles.framework.shared_runs import PLANNED
from oracles.model.case import Case
from oracles.model.feature import Feature
from oracles.model.observation import CaseObservation, Observation, Run
from oracles.model.oracle import Agree, Inconclusive, Unstable, Verdict
from oracles.plan import Plan
from tests.oracles.observed import ARMS, LOST, StubExecutor, case, error, finding, judged, ok, query, seen, variant

CASE = case(query(), samples=(PLANNED,))

Node = dict[str, Any]


def node(kind: str, *below: Node, cost: float = 10.0, **more: Any) -> Node:
    figures = {"Startup Cost": 0.0, "Total Cost": cost, "Plan Rows": 5, "Plan Width": 8}
    return {"Node Type": kind, **figures, **{key.replace("_", " "): value for key, value in more.items()}} | (
        {"Plans": list(below)} if below else {}
    )


def planned(plan: Node, **more: Any) -> Observation:
    return replace(ok(), plan={"Plan": plan, **{key.replace("_", " "): value for key, value in more.items()}})


def duel(master: Node, patched: Node, *otherwise: tuple[str, str, Node]) -> tuple[Verdict, ...]:
    """Judge the plans; `otherwise` lists arm and variant of runs with another plan."""
    others = {(arm, name): plan for arm, name, plan in otherwise}
    plain = {"master": master, "patched": patched}
    return judged(Plan(), CASE, lambda run: seen(planned(others.get((run.arm, variant(run)), plain[run.arm]))))


def join(kind: str = "Hash Join", cost: float = 50.0, scan: float = 10.0) -> Node:
    return node(kind, node("Seq Scan", Alias="a"), node("Seq Scan", cost=scan, Alias="b"), cost=cost)


def test_equal_plans_agree() -> None:
    assert duel(join(), join()) == (Agree(1),)


def test_figures_are_blamed_on_the_lowest_node() -> None:
    found = finding(duel(join(), join(cost=51.0, scan=11.0)))
    assert found.summary == "step 0: another plan: figures of Seq Scan"
    assert found.expected == "Hash Join > Seq Scan\nTotal Cost: 10.0"
    assert found.actual == "Hash Join > Seq Scan\nTotal Cost: 11.0"


def test_another_kind_of_node_is_blamed_on_the_highest() -> None:
    found = finding(duel(node("Limit", join()), node("Limit", join("Merge Join", scan=11.0))))
    assert found.summary == "step 0: another plan: Merge Join instead of Hash Join"
    assert found.expected.splitlines()[0] == "Limit > Hash Join"


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (node("Append", node("Seq Scan")), "nodes below of Append"),
        (node("Append", node("Seq Scan"), node("Seq Scan"), Filter="(a = 2)"), "Filter of Append"),
        (node("Append", node("Seq Scan"), node("Seq Scan"), Workers_Planned=2), "Workers Planned of Append"),
        (node("Append", node("Seq Scan"), node("Seq Scan", cost=10.01)), "figures of Seq Scan"),
    ],
)
def test_all_fields_of_a_node_are_compared(other: Node, what: str) -> None:
    assert finding(duel(node("Append", node("Seq Scan"), node("Seq Scan")), other)).summary.endswith(what)


def test_one_cause_has_one_fingerprint_over_literals() -> None:
    one, other = (finding(duel(join(), join(scan=cost))).fingerprint for cost in (11.0, 12.0))
    assert one == other


def test_time_memory_and_compilation_are_not_compared() -> None:
    figures: list[dict[str, Any]] = [
        {"Planning_Time": 0.1},
        {"Planning_Time": 9.9, "Planning": {"Memory Used": 12}, "JIT": {"Functions": 3}},
    ]
    plans = {arm: seen(planned(join(), **more)) for arm, more in zip(ARMS, figures, strict=True)}
    assert judged(Plan(), CASE, lambda run: plans[run.arm]) == (Agree(1),)


def test_temporary_tables_have_a_schema_of_their_session() -> None:
    ours, theirs = (
        node("Seq Scan", Schema=f"pg_temp_{number}", Output=[f"pg_temp_{number}.f(a)"]) for number in (3, 12)
    )
    assert duel(ours, theirs) == (Agree(1),)


@pytest.mark.parametrize(
    ("columns", "legal"),
    [(["a.k1"], True), ([], True), (["a.i1", "a.k1"], False), (["a.k1", "a.i1", "a.p"], False), (["a.x"], False)],
)
def test_a_node_may_return_fewer_columns(columns: list[str], *, legal: bool) -> None:
    ours, theirs = (node("Hash Join", node("Seq Scan", Output=each)) for each in (["a.k1", "a.i1"], columns))
    assert (duel(ours, theirs) == (Agree(1),)) == legal


def test_a_feature_may_show_in_explain() -> None:
    plain = node("Limit", join())
    shown = node("Limit", join() | {"Bloom Filter": {"Planned": True}})
    plans = {arm: seen(planned(plan)) for arm, plan in zip(ARMS, (plain, shown), strict=True)}
    assert finding(judged(Plan(), CASE, lambda run: plans[run.arm])).summary.endswith("Bloom Filter of Hash Join")
    bloom = Feature("bloom", "Bloom filter", group="Bloom Filter")
    assert judged(Plan().of((bloom,)), CASE, lambda run: plans[run.arm]) == (Agree(1),)


def test_a_plan_that_the_reference_does_not_repeat_is_no_finding() -> None:
    runs: list[Run] = []

    def respond(run: Run) -> CaseObservation:
        runs.append(run)
        varies = run.arm == "master" and variant(run) == "again 1"
        return seen(planned(join(cost=52.0 if varies else 51.0 if run.arm == "patched" else 50.0)))

    assert judged(Plan(), CASE, respond) == (Unstable("plans: not in all runs"),)
    assert {variant(run) for run in runs if run.plannings} == {"", "again 1"}  # one repetition suffices


def test_an_occasional_plan_of_the_suspect_is_no_finding() -> None:
    assert duel(join(), join(cost=51.0), ("patched", "again 4", join())) == (Unstable("plans: not in all runs"),)


@pytest.mark.parametrize("cut", [LOST, error("57014"), ok()])
def test_an_interrupted_repetition_is_unstable(cut: Observation) -> None:
    def respond(run: Run) -> CaseObservation:
        if variant(run) == "again 2":
            return seen(cut)
        return seen(planned(join(cost=51.0 if run.arm == "patched" else 50.0)))

    assert judged(Plan(), CASE, respond) == (Unstable("plans: not in all runs"),)


def test_a_lost_connection_is_inconclusive() -> None:
    lost: Callable[[Run], CaseObservation] = lambda run: replace(seen(LOST), residue=None)  # noqa: E731
    assert judged(Plan(), CASE, lost) == (Inconclusive("connection lost"),)


def test_steps_after_a_different_outcome_are_not_compared() -> None:
    steps = case(query(), query(), query(), samples=(PLANNED,))

    def respond(run: Run) -> CaseObservation:
        middle = error("40P01") if run.arm == "patched" else ok()
        return seen(planned(join()), middle, planned(join(cost=51.0 if run.arm == "patched" else 50.0)))

    assert judged(Plan(), steps, respond) == (Inconclusive("a step ended otherwise"), Agree(1))


def test_queries_are_planned_and_not_run_in_a_share_of_cases() -> None:
    def plannings(tested: Case) -> set[bool]:
        executor = StubExecutor(lambda run: seen(planned(join())))
        executor.observe(tested, Plan().runs(tested, ARMS))
        return {run.plannings > 0 for run in executor.requested}

    assert plannings(CASE) == {False, True}
    assert sum(True in plannings(case(query(f"SELECT {number}"))) for number in range(400)) in range(50, 110)

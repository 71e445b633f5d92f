"""Tests of the comparison of isolationtester's output, and of specs with settings."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fuzz.engines import isolation
from fuzz.engines.isolation import (
    DATABASE,
    PERTURBED,
    RARE,
    SETTINGS,
    STEADY,
    Judged,
    Spec,
    SpecResult,
    is_reproducible,
    judge,
    normalised,
    read_spec,
    reproducer,
)
from fuzz.errors import CaseError, ServerError
from fuzz.execution.exchanges import never
from fuzz.execution.modes import MODES
from fuzz.servers.arm import Arm
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster
from fuzz.servers.sessions import session
from oracles.model.observation import Message

OUTPUT = """\
Parsed test spec with 2 sessions

starting permutation: r1 w2
step r1: SELECT a, b FROM t;
a|b
-+--
{}
{}
(2 rows)

step w2: UPDATE t SET a = 1; <waiting ...>
"""
SPEC = Spec("two", "session s1\nstep r1 { SELECT 1; }\n", "hash_spilling+features_forced")


def test_rows_are_compared_in_any_order() -> None:
    one, other = (normalised(OUTPUT.format(*rows)) for rows in (("1|x", "2|y"), ("2|y", "1|x")))
    assert one == other
    assert one != normalised(OUTPUT.format("1|x", "2|z"))


def test_steps_are_compared_in_order() -> None:
    lines = OUTPUT.format("1|x", "2|y").splitlines()
    assert normalised("\n".join(lines)) != normalised("\n".join([*lines[-1:], *lines[:-1]]))


def test_only_reproducible_output_is_compared() -> None:
    assert is_reproducible(["a"] * 5, ["b"] * 5)
    assert not is_reproducible(["a"] * 5, ["b", "b", "a", "b", "b"])
    assert not is_reproducible(["a", "b", "a", "a", "a"], ["c"] * 5)
    assert not is_reproducible(["a"] * 5, ["a"] * 5)


CRASH = SpecResult("lost", crash='TRAP: failed Assert("i < 3"), File: "src/backend/x.c", Line: 4, PID: 7')
MESSAGE = Message("ERROR", "XX000", "cache lookup failed for type 7", "getBaseType")


class StubTester(isolation.Tester):
    """A tester without a server. `respond` returns the result of each run by its number."""

    def __init__(self, name: str, respond: Callable[[int], SpecResult | str]) -> None:
        self.arm: Any = SimpleNamespace(name=name)
        self.runs = 0
        self._respond = respond

    def execute(self, spec: Spec) -> SpecResult:
        self.runs += 1
        result = self._respond(self.runs)
        return SpecResult(result) if isinstance(result, str) else result


def steady(_: int) -> str:
    return "a"


def stubs(*responds: Callable[[int], SpecResult | str]) -> Iterator[StubTester]:
    names = ("master", "patched", "upstream")
    return (StubTester(name, respond) for name, respond in zip(names, responds, strict=False))


def judged(*given: StubTester, stop: Callable[[], bool] = never) -> Judged:
    with ThreadPoolExecutor(len(given)) as pool:
        return judge(SPEC, given, pool, stop)


def test_a_difference_in_each_run_is_a_finding() -> None:
    master, patched = stubs(steady, "b{}".format)
    (finding,) = judged(master, patched).findings
    assert finding.summary == "patched prints another result of two than master"
    assert (finding.expected, finding.actual) == ("a", "b1")
    assert (master.runs, patched.runs) == (5, 5)


def test_a_difference_in_some_runs_is_a_finding_if_the_reference_stays_steady() -> None:
    master, patched = stubs(steady, lambda run: "b" if run % 5 in (1, 2, 3) else "a")
    result = judged(master, patched)
    (finding,) = result.findings
    assert finding.summary == "patched prints another result of two than master (in 54 of 90 runs)"
    assert (finding.expected, finding.actual, result.doubts) == ("a", "b", ())
    assert (master.runs, patched.runs) == (STEADY, STEADY)


def test_an_output_that_the_reference_has_in_a_late_run_is_a_doubt_with_both_outputs() -> None:
    master, patched = stubs(lambda run: "a" if run < STEADY else "b", lambda run: "b" if run % 5 else "a")
    result = judged(master, patched)
    (doubt,) = result.doubts
    assert doubt.reason == "patched differs from master, which differs from itself"
    assert (doubt.sides, result.findings) == (("a", "b"), ())


def test_an_unsteady_reference_is_not_repeated_further() -> None:
    master, patched = stubs("a{}".format, steady)
    assert len(judged(master, patched).doubts) == 1
    assert master.runs == 2


def test_a_difference_that_does_not_occur_again_is_a_doubt() -> None:
    master, patched = stubs(steady, lambda run: "b" if run == 1 else "a")
    result = judged(master, patched)
    (doubt,) = result.doubts
    assert (master.runs, patched.runs) == (RARE, RARE)
    assert doubt.reason == "patched differed from master once and never again"
    assert (doubt.sides, result.findings) == (("a", "b"), ())


def test_a_crash_in_a_repetition_is_a_finding() -> None:
    """Repetitions end with it, so the difference before it remains a doubt."""
    master, patched = stubs(steady, lambda run: CRASH if run == 3 else "b")
    result = judged(master, patched)
    (finding,) = result.findings
    assert finding.summary == "patched crashes: assertion i < 3 in src/backend/x.c"
    assert [doubt.reason for doubt in result.doubts] == [
        "patched differed from master until repetitions were cut short"
    ]
    assert patched.runs == 3


def test_a_crash_of_the_reference_in_a_repetition_leaves_the_difference_of_another_arm() -> None:
    result = judged(*stubs(lambda run: CRASH if run == 2 else "a", steady, lambda _: "b"))
    (finding,) = result.findings
    assert finding.summary == "master crashes: assertion i < 3 in src/backend/x.c"
    (doubt,) = result.doubts
    assert doubt.reason == "upstream differed from master until repetitions were cut short"


def test_a_crash_in_the_first_run_hides_neither_internal_errors_nor_differences_of_other_arms() -> None:
    failed = SpecResult("b", errors={"XX000 cache lookup": MESSAGE})
    result = judged(*stubs(steady, lambda _: CRASH, lambda _: failed))
    assert [finding.arms for finding in result.findings] == [("master", "patched"), ("master", "upstream")]
    assert [finding.origin for finding in result.findings][1] == "XX000 cache lookup"
    assert [doubt.sides for doubt in result.doubts] == [("a", "b")]


def test_an_internal_error_in_a_repetition_is_a_finding() -> None:
    failed = SpecResult("b", errors={"XX000 cache lookup": MESSAGE})
    errors, difference = judged(*stubs(steady, lambda run: failed if run == 4 else "b")).findings
    assert errors.summary == "patched raises an internal error: XX000 cache lookup"
    assert difference.summary == "patched prints another result of two than master"


def test_an_interrupt_ends_repetitions_and_keeps_the_difference() -> None:
    master, patched = stubs(steady, "b{}".format)
    result = judged(master, patched, stop=lambda: True)
    assert [doubt.sides for doubt in result.doubts] == [("a", "b1")]
    assert master.runs == 1


def test_a_server_that_is_lost_in_a_repetition_leaves_the_difference() -> None:
    def lost_in(number: int) -> Callable[[int], str]:
        def respond(run: int) -> str:
            if run == number:
                raise ServerError("the server of arm patched is down")
            return "b"

        return respond

    assert [doubt.sides for doubt in judged(*stubs(steady, lost_in(2))).doubts] == [("a", "b")]
    with pytest.raises(ServerError):
        judged(*stubs(steady, lost_in(1)))


def test_an_arm_alone_is_not_repeated() -> None:
    (master,) = stubs(steady)
    assert judged(master) == Judged()
    assert master.runs == 1


@pytest.mark.servers
@pytest.mark.timeout(120)
def test_a_session_that_holds_a_replication_slot_does_not_end_the_run(build: Build) -> None:
    with Cluster(build, "isolation", settings=SETTINGS) as cluster:
        tester = isolation.Tester(Arm("only", build, cluster, ()))
        expected = tester.execute(SPEC)
        with session(cluster.connect_kwargs | {"dbname": DATABASE}, autocommit=True) as other:
            other.execute("SELECT pg_create_logical_replication_slot('held', 'pgoutput', true)")
            assert tester.execute(SPEC) == expected


def test_a_reproducer_is_a_spec_that_names_its_settings(tmp_path: Path) -> None:
    file = tmp_path / "two.spec"
    file.write_text(reproducer(SPEC, ["it differs", "-1", "+2"]))
    again = read_spec(file)
    assert (again.name, again.modes) == (SPEC.name, SPEC.modes)
    assert [mode.name for mode in again.settings] == ["hash_spilling", "features_forced"]
    code = [line for line in again.text.splitlines() if line and not line.startswith("#")]
    assert code == SPEC.text.splitlines()
    assert reproducer(again, ["it differs"]).count("# pgduel: modes") == 1


def test_a_spec_without_settings_has_the_mode_plain(tmp_path: Path) -> None:
    (tmp_path / "two.spec").write_text(SPEC.text)
    assert read_spec(tmp_path / "two.spec").modes == "plain"
    (tmp_path / "two.spec").write_text("# pgduel: modes nonsense\n")
    with pytest.raises(CaseError, match="no mode is called 'nonsense'"):
        read_spec(tmp_path / "two.spec")


def test_perturbed_settings_are_modes() -> None:
    assert {name for entry in PERTURBED for name in entry.split("+")} <= set(MODES)

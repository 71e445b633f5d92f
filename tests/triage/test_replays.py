"""Tests of replays on real servers: bugs of all arms, of no arm, and without a decision."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fuzz import workdir
from fuzz.servers.arm import Arm, ArmSpec, build_arms
from fuzz.servers.base import Base
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster
from fuzz.servers.flavor import FLAVORS
from fuzz.servers.series import series_from_files
from fuzz.triage.findings import StoredFinding
from fuzz.triage.interestingness import ReducedCase, oracle_of
from fuzz.triage.replays import FailedReplay, KnownFinding, ReplayResult, can_replay, replays
from fuzz.triage.reproducer.reproducer import load
from oracles.model.case import Case, Kind, Step
from oracles.model.finding import Finding
from oracles.model.oracle import Inconclusive
from tests.cli.bug import BUG, JOIN_AT_BOUNDS
from tests.injected_bugs.injected_bug import bug_of, sound_patches
from tests.servers.crash import CRASH_OF_B

FAULT = workdir.PROJECT / "corpus" / "upstream" / "db701fd66d22.sql"  # which each arm has
EQUAL = Case("user_sql", (), (Step("SELECT 1", Kind.QUERY),))


@pytest.fixture(scope="module")
def two(build: Build) -> Iterator[tuple[Arm, ...]]:
    """Yield two arms of the same build."""
    with Cluster(build, "a") as a, Cluster(build, "b") as b:
        yield Arm("a", build, a, ()), Arm("b", build, b, ())


@pytest.fixture(scope="module")
def sound_and_bugged(base: Base) -> tuple[Build, Build]:
    """Return a build without and one with an injected bug, which `join` shows."""
    patches = sound_patches(bug_of(BUG))
    series = {"sound": series_from_files(patches), "bugged": series_from_files([*patches, BUG])}
    specs = [ArmSpec(name, base, each, FLAVORS["assert"]) for name, each in series.items()]
    (sound, _), (bugged, _) = build_arms(specs, print)
    return sound, bugged


@pytest.fixture
def join(tmp_path: Path) -> Case:
    script = tmp_path / "join.sql"
    script.write_text(JOIN_AT_BOUNDS)
    return load(str(script)).case


def finding(oracle: str, origin: str = "rows") -> Finding:
    return Finding(oracle, ("a", "b"), origin, 0, "they differ", "", "")


def known(found: Finding, case: Case) -> KnownFinding:
    reduced = ReducedCase(case, found, 3, 3)
    stored = StoredFinding(found, "1/x/1", case, 1, None, reduced=True, smallest=reduced)
    return KnownFinding(stored, {"a": "former", "b": "former"})


def unreduced(found: Finding, case: Case) -> KnownFinding:
    return KnownFinding(StoredFinding(found, "1/x/1", case, 1, None, reduced=False), {"a": "former", "b": "former"})


def outcomes(arms: tuple[Arm, ...], *of: KnownFinding) -> list[ReplayResult | FailedReplay]:
    return list(replays(of, arms))


@pytest.mark.servers
def test_the_oracle_decides_what_the_arms_show(two: tuple[Arm, ...]) -> None:
    fault, equal = finding("binary_format"), finding("result")
    without_queries = finding("result", "other")
    found = outcomes(
        two, known(fault, load(str(FAULT)).case), known(equal, EQUAL), known(without_queries, Case("user_sql", (), ()))
    )
    assert found == [
        ReplayResult(fault.fingerprint, shown=True, of_base=True),
        ReplayResult(equal.fingerprint, shown=False),
    ]


@pytest.mark.servers
def test_a_bug_is_not_fixed_if_most_tries_are_without_a_decision(
    two: tuple[Arm, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    equal = finding("result")
    oracle = type(oracle_of(equal))
    judge, slow = oracle.judge, iter([False, *[True] * 5, False])

    def judge_unless_slow(*arguments: Any) -> Any:
        judged = judge(*arguments)
        return (Inconclusive("a time limit"),) if isinstance(judged, tuple) and next(slow, False) else judged

    monkeypatch.setattr(oracle, "judge", judge_unless_slow)
    assert outcomes(two, known(equal, EQUAL)) == []
    assert outcomes(two, known(equal, EQUAL)) == [ReplayResult(equal.fingerprint, shown=False)]


@pytest.mark.servers
def test_a_single_arm_has_no_base(two: tuple[Arm, ...]) -> None:
    alone = replace(finding("binary_format"), arms=("a", "a"))
    assert outcomes(two[:1], known(alone, load(str(FAULT)).case)) == [ReplayResult(alone.fingerprint, shown=True)]


@pytest.mark.servers
def test_a_bug_that_moved_to_the_base_differs_from_its_former_build(
    sound_and_bugged: tuple[Build, Build], join: Case
) -> None:
    sound, bugged = sound_and_bugged
    shown = known(finding("result", "rows"), join)
    with Cluster(bugged, "a") as a, Cluster(bugged, "b") as b:
        arms = (Arm("a", bugged, a, ()), Arm("b", bugged, b, ()))
        with_former = replace(shown, builds={"a": sound.key, "b": bugged.key})
        deleted = replace(shown, builds={"a": "deleted", "b": bugged.key})
        moved, unknown = outcomes(arms, with_former, deleted)
    fingerprint = shown.found.finding.fingerprint
    assert moved == ReplayResult(fingerprint, shown=True, of_base=True)
    assert unknown == ReplayResult(fingerprint, shown=False)


@pytest.mark.servers
def test_a_whole_case_is_replayed_if_it_is_not_reduced(two: tuple[Arm, ...]) -> None:
    fault = finding("binary_format")
    assert outcomes(two, unreduced(fault, load(str(FAULT)).case)) == [
        ReplayResult(fault.fingerprint, shown=True, of_base=True)
    ]


@pytest.mark.servers
def test_a_finding_that_was_seen_once_is_fixed_only_if_its_own_builds_show_it_again(
    sound_and_bugged: tuple[Build, Build], join: Case
) -> None:
    sound, bugged = sound_and_bugged
    once = unreduced(finding("result", "rows"), join)
    with Cluster(sound, "a") as a, Cluster(sound, "b") as b:
        arms = (Arm("a", sound, a, ()), Arm("b", sound, b, ()))
        fixed = replace(once, builds={"a": sound.key, "b": bugged.key})
        never_again = replace(once, builds={"a": sound.key, "b": sound.key})
        deleted = replace(once, builds={"a": sound.key, "b": "deleted"})
        assert outcomes(arms, fixed) == [ReplayResult(once.found.finding.fingerprint, shown=False)]
        assert outcomes(arms, never_again, deleted) == []


@pytest.mark.servers
def test_a_replay_on_which_the_oracle_fails_does_not_end_the_others(
    two: tuple[Arm, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault, equal = finding("binary_format"), finding("result")

    def fail(*_: object) -> None:
        raise KeyError("Plan Rows")

    monkeypatch.setattr(type(oracle_of(fault)), "judge", fail)
    failed, other = outcomes(two, known(fault, load(str(FAULT)).case), known(equal, EQUAL))
    assert isinstance(failed, FailedReplay)
    assert (failed.fingerprint, failed.error) == (fault.fingerprint, "KeyError('Plan Rows')")
    assert 'raise KeyError("Plan Rows")' in failed.traceback
    assert other == ReplayResult(equal.fingerprint, shown=False)


@pytest.mark.servers
def test_a_replay_after_which_a_server_does_not_start_again_does_not_end_the_others(two: tuple[Arm, ...]) -> None:
    crash, equal = finding("result", "crash"), finding("result")
    failed, other = outcomes(two, known(crash, CRASH_OF_B), known(equal, EQUAL))
    assert isinstance(failed, FailedReplay)
    assert failed.fingerprint == crash.fingerprint
    assert failed.error.startswith("server b did not start: ")
    assert not failed.traceback
    assert other == ReplayResult(equal.fingerprint, shown=False)


def test_findings_that_their_reduction_lost_are_not_replayed() -> None:
    found = known(finding("result"), EQUAL).found
    assert can_replay(found, ["a", "b", "c"])
    assert not can_replay(found, ["a", "c"])
    assert can_replay(replace(found, reduced=False, smallest=None), ["a", "b"])
    assert not can_replay(replace(found, smallest=ReducedCase(EQUAL, found.finding, 0, 3)), ["a", "b"])
    assert not can_replay(replace(found, finding=finding("no_such_oracle")), ["a", "b"])

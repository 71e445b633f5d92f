"""Tests of the oracle `leak` on hand-made observations: leaks, and legal remains."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count

import pytest

from oracles.framework.shared_runs import REPEATED as SAMPLE
from oracles.framework.shared_runs import REPEATS
from oracles.leak import CONFIRMING_REPEATS, Leak
from oracles.model.case import Case
from oracles.model.finding import Finding
from oracles.model.observation import CaseObservation, Remote, Residue, Resources, Run
from oracles.model.oracle import Agree, Inconclusive, More, Unstable, Verdict
from tests.oracles.observed import ARMS, LOST, case, error, finding, judged, ok, query, seen, timeout, warning

NOT_CLOSED = "resource was not closed: TupleDesc 0x7fd41a577b68 (16393,-1)"
ONCE = next(made for made in (case(query(f"SELECT {n}")) for n in count()) if made not in SAMPLE)
REPEATED = next(made for made in (case(query(f"SELECT {n}")) for n in count()) if made in SAMPLE)


def duel(master: CaseObservation, patched: CaseObservation, tested: Case = ONCE) -> tuple[Verdict, ...]:
    return judged(Leak(), tested, lambda run: master if run.arm == "master" else patched)


CLEAN = seen(ok("1"))


def test_nothing_left_is_agreement() -> None:
    assert duel(CLEAN, CLEAN) == (Agree(1),)


def test_the_servers_own_leak_warning_is_a_finding() -> None:
    found = finding(duel(CLEAN, seen(ok("1", messages=[warning(NOT_CLOSED)]))))
    assert found.origin == "warning: resource was not closed: TupleDesc N (N,-N)"
    assert found.actual == NOT_CLOSED


def test_a_leak_warning_that_only_the_log_has_is_a_finding() -> None:
    logged = ("LOG:  connection authorized", f"WARNING:  {NOT_CLOSED}\n\tCONTEXT:  parallel worker")
    assert finding(duel(CLEAN, replace(CLEAN, log=logged))).actual == NOT_CLOSED


def test_one_leak_reported_through_both_channels_is_one_finding() -> None:
    leaking = seen(ok("1", messages=[warning(NOT_CLOSED), warning(NOT_CLOSED)]))
    assert finding(duel(CLEAN, replace(leaking, log=(f"WARNING:  {NOT_CLOSED}",))))


@pytest.mark.parametrize(
    "text",
    [
        'resource was not closed: relation "duel.t"',
        "resource was not closed: [036] (rel=base/5/16384, blockNum=0, flags=0x83800000, refcount=1 1)",
        "buffer refcount leak: [036] (rel=base/5/16384, blockNum=0, flags=0x83800000, refcount=1 1)",
        "2 temporary files and directories not closed at end-of-transaction",
        "leaked parallel context",
        'cannot remove relcache entry for "t" because it has nonzero refcount',
    ],
)
def test_the_origin_of_a_leak_names_no_object(text: str) -> None:
    origin = finding(duel(CLEAN, seen(ok("1", messages=[warning(text)])))).origin
    assert not any(digit in origin for digit in "0123456789")
    assert '"' not in origin


@pytest.mark.parametrize(
    "message",
    [
        warning("resource was not closed: says a function", sqlstate="01004"),
        warning("a planted warning"),
        replace(warning(NOT_CLOSED), severity="NOTICE"),  # RAISE NOTICE with the same text
    ],
)
def test_other_messages_are_no_leaks(message: object) -> None:
    assert duel(CLEAN, seen(ok("1", messages=[message]))) == (Agree(1),)  # type: ignore[list-item]


def test_a_leak_of_all_arms_is_about_the_base() -> None:
    leaking = seen(ok("1", messages=[warning(NOT_CLOSED)]))
    verdicts = duel(leaking, leaking)
    assert finding(verdicts).arms == ("master", "master")
    assert verdicts[1:] == (Agree(1),)


def test_a_leak_of_the_first_arm_alone_is_its_own() -> None:
    leaking = seen(ok("1", messages=[warning(NOT_CLOSED)]))
    assert finding(duel(leaking, CLEAN)).arms == ("patched", "master")


@pytest.mark.parametrize(
    ("left", "origin"),
    [
        (Residue(temp_files=("0.0",)), "left: temp files"),
        (Residue(pins=1), "left: pins"),
        (Residue(locks=("relation AccessShareLock",)), "left: locks"),
        (Residue(locks=("advisory ExclusiveLock 0/1/1",)), "left: locks"),
        (Residue(cursors=("c",)), "left: cursors"),
        (Residue(prepared=("p",)), "left: prepared"),
        (Residue(remote=("idle in transaction session",)), "left: remote"),
    ],
)
def test_remains_are_a_finding(left: Residue, origin: str) -> None:
    assert finding(duel(CLEAN, replace(CLEAN, residue=left))).origin == origin


def behind(*statements: str) -> CaseObservation:
    """Return a case with these log lines of the session behind its foreign server."""
    return replace(CLEAN, remote=tuple(Remote(1, 1, f"LOG:  {statement}") for statement in statements))


BEGIN, COMMIT = "statement: START TRANSACTION ISOLATION LEVEL REPEATABLE READ", "statement: COMMIT TRANSACTION"
DECLARE = "statement: DECLARE c1 CURSOR FOR\nSELECT a FROM duel.t"
EXECUTE = "execute pgsql_fdw_prep_3: INSERT INTO duel.t(a) VALUES ($1)"


@pytest.mark.parametrize(
    ("statements", "origin"),
    [
        ((BEGIN, DECLARE, COMMIT), "left: remote cursor"),
        ((BEGIN, DECLARE, "statement: CLOSE c2", COMMIT), "left: remote cursor"),
        ((BEGIN, EXECUTE, EXECUTE, COMMIT), "left: remote prepared statement"),
    ],
)
def test_open_objects_behind_a_foreign_server_are_a_finding(statements: Sequence[str], origin: str) -> None:
    assert finding(duel(CLEAN, behind(*statements))).origin == origin


@pytest.mark.parametrize(
    "statements",
    [
        (BEGIN, DECLARE, "statement: FETCH 100 FROM c1", "statement: CLOSE c1", COMMIT),
        (BEGIN, DECLARE, "statement: ABORT TRANSACTION"),
        (BEGIN, DECLARE, "statement: ROLLBACK TO SAVEPOINT s2; RELEASE SAVEPOINT s2", COMMIT),
        (BEGIN, EXECUTE, "statement: DEALLOCATE pgsql_fdw_prep_3", COMMIT),
        (BEGIN, EXECUTE, "statement: ABORT TRANSACTION", "statement: DEALLOCATE ALL", BEGIN, COMMIT),
        (BEGIN, DECLARE),  # the local transaction is still open
    ],
)
def test_closed_objects_behind_a_foreign_server_are_no_leak(statements: Sequence[str]) -> None:
    assert duel(CLEAN, behind(*statements)) == (Agree(1),)


def test_a_leak_warning_of_a_session_behind_a_foreign_server_is_a_finding() -> None:
    leaking = replace(CLEAN, remote=(Remote(1, 0, f"WARNING:  {NOT_CLOSED}"),))
    assert finding(duel(CLEAN, leaking)).actual == NOT_CLOSED


def test_an_advisory_lock_that_all_arms_keep_is_the_cases_own() -> None:
    kept = replace(CLEAN, residue=Residue(locks=("advisory ExclusiveLock 0/1/1",)))
    assert duel(kept, kept) == (Agree(1),)


def test_another_lock_that_all_arms_keep_is_a_finding() -> None:
    kept = replace(CLEAN, residue=Residue(locks=("relation AccessShareLock",)))
    assert finding(duel(kept, kept)).arms == ("master", "master")


@pytest.mark.parametrize("patched", [seen(timeout()), seen(error("40P01")), replace(seen(LOST), residue=None)])
def test_an_advisory_lock_that_the_other_arm_could_not_take_is_no_leak(patched: CaseObservation) -> None:
    kept = replace(CLEAN, residue=Residue(locks=("advisory ExclusiveLock 0/1/1",)))
    assert not any(isinstance(verdict, Finding) for verdict in duel(kept, patched))


def test_a_lost_connection_is_inconclusive() -> None:
    assert duel(CLEAN, replace(seen(LOST), residue=None)) == (Inconclusive("connection lost"),)


def test_a_leak_warning_before_the_connection_was_lost_counts() -> None:
    leaking = replace(seen(ok("1", messages=[warning(NOT_CLOSED)])), residue=None)
    assert finding(duel(CLEAN, leaking))


def growing(master: Callable[[int], int], patched: Callable[[int], int]) -> tuple[Verdict, ...]:
    """Judge a repeated case; each function returns a session's bytes after repetition n, from 0."""

    def respond(run: Run) -> CaseObservation:
        held = master if run.arm == "master" else patched
        return replace(CLEAN, resources=tuple(holding(held(n)) for n in range(run.repeats)) if run.repeats > 1 else ())

    return judged(Leak(), REPEATED, respond)


def holding(context_bytes: int, open_files: int = 30) -> Resources:
    return Resources(open_files, 3, {"ExecutorState": (1, context_bytes)})


def test_growth_of_one_arm_is_a_finding() -> None:
    found = finding(growing(lambda n: 8192, lambda n: 8192 + 100 * n))
    assert (found.origin, found.arms) == ("growth: memory context ExecutorState", ("master", "patched"))
    assert found.actual.count(",") == CONFIRMING_REPEATS - 1


def test_growth_of_the_first_arm_is_its_own() -> None:
    assert finding(growing(lambda n: 100 * n, lambda n: 0)).arms == ("patched", "master")


def test_faster_growth_than_the_other_arms_is_a_finding() -> None:
    assert finding(growing(lambda n: 100 * n, lambda n: 150 * n)).arms == ("master", "patched")


@pytest.mark.parametrize(
    ("master", "patched"),
    [
        ([8] * 18, [8] * 18),
        ([n * 100 for n in range(18)], [n * 120 for n in range(18)]),  # caches grow on both
        ([8] * 18, [8, 16, 24] + [32] * 15),  # caches fill
        ([8] * 18, [8, 8, 16, 16, 32, 32] * 3),  # occasional doubling
        ([8] * 18, [8, 16, 8, 16, 8, 16] * 3),
    ],
)
def test_normal_growth_of_sessions_is_no_finding(master: Sequence[int], patched: Sequence[int]) -> None:
    assert growing(lambda n: master[n], lambda n: patched[n]) == (Agree(1),)


def test_growth_is_a_doubt_if_only_one_arm_calls_a_function() -> None:
    def respond(run: Run) -> CaseObservation:
        calls = run.arm == "patched"
        held = (replace(holding(8 + 100 * n * calls), called=frozenset({"few()"} if calls else ())) for n in range(18))
        return replace(CLEAN, resources=tuple(held)[: run.repeats])

    reason = "growth: only one arm calls a function, whose plans the session keeps"
    assert judged(Leak(), REPEATED, respond) == (Inconclusive(reason), Agree(1))


def test_growth_that_stops_is_no_finding() -> None:
    assert growing(lambda n: 8, lambda n: min(n, REPEATS) * 100) == (Agree(1),)


def test_growth_that_pauses_in_the_longer_run_is_a_doubt() -> None:
    verdicts = growing(lambda n: 8, lambda n: 100 * (n - (n > 12)))
    assert verdicts == (Unstable("growth: not steady in the longer run"), Agree(1))


def test_growth_is_a_doubt_if_the_longer_run_ends_early() -> None:
    def respond(run: Run) -> CaseObservation:
        repeats = run.repeats - (run.repeats > REPEATS)
        return replace(CLEAN, resources=tuple(holding(100 * n * (run.arm == "patched")) for n in range(repeats)))

    verdicts = judged(Leak(), REPEATED, respond)
    assert verdicts == (Inconclusive("growth: the longer run was not executed to its end"), Agree(1))


def test_a_leak_warning_of_any_run_is_a_finding() -> None:
    rescanned = Run("patched", (), instead=((0, "SELECT 1"),))
    there = replace(rescanned, arm="master")
    leaking = seen(ok("1", messages=[warning(NOT_CLOSED)]))
    observed = {Run("master", ()): CLEAN, Run("patched", ()): CLEAN, rescanned: leaking}
    wanted = Leak().judge(ONCE, ARMS, observed)
    assert isinstance(wanted, More)
    assert wanted.runs == (there,)
    verdicts = Leak().judge(ONCE, ARMS, observed | {there: CLEAN})
    assert not isinstance(verdicts, More)
    assert finding(verdicts).arms == ("master", "patched")


def test_open_files_that_grow_are_a_finding() -> None:
    def respond(run: Run) -> CaseObservation:
        leak = run.arm == "patched"
        return replace(CLEAN, resources=tuple(holding(8, 30 + n * leak) for n in range(run.repeats)))

    assert finding(judged(Leak(), REPEATED, respond)).origin == "growth: open files"


def test_repetitions_that_were_cut_short_show_no_growth() -> None:
    def respond(run: Run) -> CaseObservation:
        short = run.arm == "patched" and run.repeats > 1
        resources = tuple(holding(100 * n) for n in range(run.repeats - short)) if run.arm == "patched" else ()
        return replace(CLEAN, resources=resources, residue=None if short else Residue())

    assert judged(Leak(), REPEATED, respond) == (Inconclusive("connection lost"),)


def test_the_share_of_repeated_cases_is_as_declared() -> None:
    repeated = sum(case(query(f"SELECT {n} AS x")) in SAMPLE for n in range(3200))
    assert 0.7 < repeated * SAMPLE.share / 3200 < 1.3

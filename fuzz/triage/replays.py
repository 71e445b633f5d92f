"""Replays: findings of earlier runs, tried on the arms of a later one, with their reduced or else their whole cases.

A replay with too few decisions, for example because of timeouts, is none: a rare bug needs all its tries. So is one
that does not show a finding which also does not occur again on its own builds.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from traceback import format_exception

from fuzz.errors import PgduelError
from fuzz.execution.executor import Executor
from fuzz.execution.judging import JudgedCase, assignments, judge_case
from fuzz.servers.arm import Arm, fresh_servers
from fuzz.servers.arm_settings import configuration, known_settings
from fuzz.servers.build import Build, build_by_key
from fuzz.servers.cluster import Cluster
from fuzz.triage.blame import tries_for
from fuzz.triage.findings import StoredFinding
from fuzz.triage.interestingness import FindingCheck, ReducedCase, oracle_of
from oracles.model.finding import Finding
from oracles.model.oracle import Agree, Inconclusive, Unstable, oracle_named


@dataclass(frozen=True, slots=True)
class KnownFinding:
    """A finding of an earlier run, and the builds (arm → key) of that run."""

    found: StoredFinding
    builds: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The outcome of the tries of a finding's smallest case."""

    fingerprint: str
    shown: bool
    of_base: bool = False  # whether the reference has the bug, too


@dataclass(frozen=True, slots=True)
class FailedReplay:
    """A replay that ended with an error of a server, or of pgduel itself."""

    fingerprint: str
    error: str
    traceback: str = ""  # of an error of pgduel itself


def can_replay(found: StoredFinding, arms: Sequence[str]) -> bool:
    """Return whether a finding can be tried: its reduction did not lose it, and it has its arms and its oracle."""
    named = set(found.least.finding.arms) <= set(arms)
    lost = found.reduced and not found.least.shown
    return not lost and named and oracle_named(found.finding.oracle) is not None


def replays(known: Sequence[KnownFinding], arms: Sequence[Arm]) -> Iterator[ReplayResult | FailedReplay]:
    """Try findings on new servers of the arms. Yield the outcome of each that the oracle decides, and of each failure.

    After a failure, the others have further new servers, since a server may not start again. Raises ServerError.
    """
    left = deque(known)
    while left:
        with fresh_servers(arms) as own, Executor(own, "replays") as executor:
            outcome: ReplayResult | FailedReplay | None = None
            while left and not isinstance(outcome, FailedReplay):
                outcome = _outcome(left.popleft(), executor, own)
                if outcome is not None:
                    yield outcome


def _outcome(known: KnownFinding, executor: Executor, arms: Sequence[Arm]) -> ReplayResult | FailedReplay | None:
    """Return the outcome of a finding; None if the oracle does not decide it."""
    try:
        outcome = _replay(known.found, executor, arms)
        if outcome is not None and not outcome.shown:
            if _moved_to_base(known, arms):
                return replace(outcome, shown=True, of_base=True)
            if not (known.found.least.shown or _occurs_on_former_builds(known, arms)):
                return None
    except Exception as error:  # an oracle may fail, too, for example because EXPLAIN has changed
        fingerprint = known.found.finding.fingerprint
        if isinstance(error, PgduelError):
            return FailedReplay(fingerprint, str(error))
        return FailedReplay(fingerprint, repr(error), "".join(format_exception(error)))
    return outcome


def _replay(found: StoredFinding, executor: Executor, arms: Sequence[Arm]) -> ReplayResult | None:
    fingerprint, wanted, tries = found.finding.fingerprint, found.least.finding, tries_for(found.least)
    judging = assignments([oracle_of(wanted)], arms)
    undecided = decided = 0
    while max(undecided, decided) < tries:
        judged = judge_case(executor, judging, found.least.case)
        shown = [each for each in judged.findings if _is_like(each, wanted)]
        if shown:
            by_all = len(arms) > 1 and any(each.shown_by_all for each in shown)
            return ReplayResult(fingerprint, shown=True, of_base=by_all)
        if _is_decided(judged):
            decided += 1
        else:
            undecided += 1
    return ReplayResult(fingerprint, shown=False) if decided == tries else None


def _moved_to_base(known: KnownFinding, arms: Sequence[Arm]) -> bool:
    """Return whether the reference differs from its former build as the suspect did.

    So the arms agree, because both have the bug. Oracles that judge single arms show such a bug on all arms.
    """
    least = known.found.least
    named = {arm.name: arm for arm in arms}
    reference, suspect = (named[name] for name in least.finding.arms)
    former = build_by_key(known.builds[reference.name])
    if not oracle_of(least.finding).needs_another_arm or former is None or former.key == reference.build.key:
        return False
    with _of_build(reference, former) as before:
        return _shows((before, replace(reference, name=suspect.name)), least)


def _occurs_on_former_builds(known: KnownFinding, arms: Sequence[Arm]) -> bool:
    """Return whether a finding that was seen only once occurs again on its own builds, if the cache still has them."""
    least = known.found.least
    named = [(arm, build_by_key(known.builds[arm.name])) for arm in arms if arm.name in least.finding.arms]
    with ExitStack() as stack:
        former = [stack.enter_context(_of_build(arm, build)) for arm, build in named if build is not None]
        return len(former) == len(named) and _shows(former, least)


@contextmanager
def _of_build(arm: Arm, build: Build) -> Iterator[Arm]:
    """Start a server of another build in the place of an arm's. Raises ServerError."""
    settings = known_settings(build, arm.settings)
    with Cluster(build, arm.name, settings=configuration(settings)) as cluster:
        yield replace(arm, build=build, cluster=cluster, settings=settings)


def _shows(arms: Sequence[Arm], least: ReducedCase) -> bool:
    """Return whether a case shows its finding on these arms, in as many tries as its rate needs."""
    with Executor(arms, "former") as executor:
        check = FindingCheck(executor, arms, least.finding)
        return any(check.shown(least.case) for _ in range(tries_for(least)))


def _is_decided(judged: JudgedCase) -> bool:
    """Return whether the oracle has judged the case without a doubt."""
    verdicts = [verdict for _, verdict in judged.verdicts]
    doubtful = any(isinstance(verdict, Inconclusive | Unstable) for verdict in verdicts)
    return judged.complete and not doubtful and any(isinstance(verdict, Agree) for verdict in verdicts)


def _is_like(shown: Finding, wanted: Finding) -> bool:
    """Return whether a finding has the wanted suspect. The symptom may differ, as code around the bug has changed."""
    return shown.arms[1] == wanted.arms[1] or shown.shown_by_all or wanted.shown_by_all

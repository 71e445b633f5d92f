"""Counters of a campaign, which are the sums of those of its ranges, and its health, which they show.

A campaign is healthy if it compared enough statements for its result to be trusted. A sample is its progress after a
number of cases; samples are the data of plots over time.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from fuzz.campaign.usage import UNKNOWN, Usage
from fuzz.execution.judging import JudgedCase
from oracles.model.case import Case
from oracles.model.finding import Finding
from oracles.model.observation import CaseObservation, Outcome
from oracles.model.oracle import Agree, Inconclusive, NotApplicable, Unstable, Verdict
from oracles.result import Result

NOT_EXECUTED = "pgduel"  # instead of an oracle's name: the case could not be executed

KINDS: dict[type[Verdict], str] = {
    Agree: "agree",
    NotApplicable: "not_applicable",
    Finding: "finding",
    Inconclusive: "inconclusive",
    Unstable: "unstable",
}
SAMPLED_EVERY = 5  # cases between two samples


@dataclass(frozen=True, slots=True)
class Plans:
    """Diversity of plans as in query plan guidance (Ba and Rigger, ICSE 2023)."""

    explained: int  # statements
    shapes: int  # distinct plan shapes
    once: int  # shapes of a single statement; divided by `explained`, the probability of a new one (Good and Turing)


NO_PLANS = Plans(0, 0, 0)


@dataclass(slots=True)
class Counters:
    """Counters by name. `seconds` is elapsed time; the other times are CPU seconds."""

    cases: Counter[str] = field(default_factory=Counter)  # generator
    judged: Counter[str] = field(default_factory=Counter)  # generator → statements compared
    judged_by: Counter[tuple[str, str]] = field(default_factory=Counter)  # oracle, generator → statements judged
    judged_cases: Counter[tuple[str, str]] = field(default_factory=Counter)  # the same → cases with any verdict
    undecided: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # oracle, generator, kind → statements
    compared: Counter[str] = field(default_factory=Counter)  # oracle → compared results of its own queries
    steps: Counter[str] = field(default_factory=Counter)  # generator → statements meant to succeed
    valid: Counter[str] = field(default_factory=Counter)  # generator → those that succeeded on the reference
    verdicts: Counter[tuple[str, str, str]] = field(default_factory=Counter)  # oracle, generator, kind
    reasons: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)  # oracle, generator, kind, reason
    tags: Counter[tuple[str, str]] = field(default_factory=Counter)  # generator, workload path
    reach: Counter[str] = field(default_factory=Counter)  # counter read from plans and servers
    shapes: Counter[tuple[str, str]] = field(default_factory=Counter)  # generator, digest of a plan's shape
    parts: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)  # generator, modes, part, quantity
    seconds: float = 0.0
    client_cpu: float = 0.0
    server_cpu: float = 0.0

    def add(self, other: "Counters") -> None:
        """Add other counters to this one."""
        for each in fields(self):
            mine = getattr(self, each.name)
            if isinstance(mine, Counter):
                mine.update(getattr(other, each.name))
            else:
                setattr(self, each.name, mine + getattr(other, each.name))

    def count_steps(self, generator: str, case: Case, reference: CaseObservation) -> None:
        """Count a case, and its statements and workload paths as the reference executed them."""
        self.cases[generator] += 1
        for step, seen in zip(case.all_steps, reference.steps, strict=True):
            if seen.outcome is Outcome.SKIPPED:
                continue
            self.tags.update((generator, tag) for tag in step.tags)
            if not step.may_fail:
                self.steps[generator] += 1
                self.valid[generator] += seen.outcome is Outcome.OK

    def count_verdicts(self, generator: str, judged: JudgedCase) -> None:
        """Count the verdicts on a case. A statement that several oracles compared counts as judged once."""
        for oracle, verdict in judged.verdicts:
            kind = KINDS[type(verdict)]
            self.verdicts[oracle, generator, kind] += 1
            self.judged_by[oracle, generator] += _statements_judged(verdict)
            if isinstance(verdict, Agree):
                self.compared[oracle] += verdict.answers
            if isinstance(verdict, Inconclusive | Unstable):
                self.reasons[oracle, generator, kind, verdict.reason] += 1
                self.undecided[oracle, generator, kind] += _statements_undecided(verdict, judged)
        self.judged[generator] += judged.statements
        concerned = {oracle for oracle, verdict in judged.verdicts if not isinstance(verdict, NotApplicable)}
        self.judged_cases.update((oracle, generator) for oracle in concerned)

    def count_part(self, case: Case, judged: JudgedCase) -> None:
        """Count a case that is one part of its source's scripts: statements, compared ones, and verdicts.

        Compared statements are those with compared results, counted for each arm but the first.
        """
        results = (verdict for oracle, verdict in judged.verdicts if oracle == Result.name)
        compared = sum(verdict.statements for verdict in results if isinstance(verdict, Agree))
        what = Counter({"cases": 1, "statements": len(case.all_steps), "compared": compared})
        what.update(_words(verdict) for _, verdict in judged.verdicts if not isinstance(verdict, Agree | NotApplicable))
        modes = "+".join(mode.name for mode in case.modes)
        self.parts.update({(case.generator, modes, case.part, name): count for name, count in what.items()})

    def count_plan(self, generator: str, shape: str) -> None:
        """Count an explained statement by its plan shape."""
        self.shapes[generator, hashlib.sha256(shape.encode()).hexdigest()[:12]] += 1

    def all_plans(self) -> dict[str, Plans]:
        """Return the diversity of plans by generator, without those that have no explained statement."""
        found = defaultdict[str, list[int]](list)
        for (generator, _), count in self.shapes.items():
            found[generator].append(count)
        return {name: Plans(sum(counts), len(counts), counts.count(1)) for name, counts in found.items()}

    def failed(self, generator: str, reason: str) -> None:
        """Count a case on which pgduel itself failed."""
        self.cases[generator] += 1
        self.failed_in_part(generator, reason)

    def failed_in_part(self, generator: str, reason: str) -> None:
        """Count a failure of pgduel itself on a case that is counted."""
        self.verdicts[NOT_EXECUTED, generator, "inconclusive"] += 1
        self.reasons[NOT_EXECUTED, generator, "inconclusive", reason] += 1

    @property
    def statements_judged(self) -> int:
        """Return the number of compared statements."""
        return self.judged.total()

    @property
    def cpu_seconds(self) -> float:
        """Return the CPU time of pgduel and the servers."""
        return self.client_cpu + self.server_cpu

    @property
    def statements_per_second(self) -> float:
        """Return the number of compared statements per second; 0 if no time has passed."""
        return self.statements_judged / self.seconds if self.seconds else 0.0

    @property
    def valid_share(self) -> float:
        """Return the share of statements meant to succeed that did; 1 if there were none."""
        return self.valid.total() / self.steps.total() if self.steps.total() else 1.0

    def of_kind(self, kind: str) -> int:
        """Return the number of verdicts of a kind."""
        return sum(count for (_, _, each), count in self.verdicts.items() if each == kind)


def nested(counter: Counter[Any]) -> dict[str, Any]:
    """Return {(a, b, c): n} as {a: {b: {c: n}}}."""
    found: dict[str, Any] = {}
    for key, count in sorted(counter.items()):
        place = found
        for part in key[:-1]:
            place = place.setdefault(part, {})
        place[key[-1]] = count
    return found


def _statements_judged(verdict: Verdict) -> int:
    """Return the number of statements that a verdict judges. A sum of 0 reveals an oracle without effect."""
    return verdict.statements if isinstance(verdict, Agree) else int(isinstance(verdict, Finding))


def _statements_undecided(verdict: Inconclusive | Unstable, judged: JudgedCase) -> int:
    """Return the number of statements that a verdict leaves undecided: all of the case if it names no step."""
    return 1 if verdict.step is not None else max(1, judged.statements)


def _words(verdict: Verdict) -> str:
    """Return the kind of a verdict, and its reason if it has one."""
    kind = KINDS[type(verdict)]
    return f"{kind}: {verdict.reason}" if isinstance(verdict, Inconclusive | Unstable) else kind


VALID_SHARE = 0.97  # minimal share of the statements meant to succeed
# maximal shares of the statements that one oracle has to judge on one generator
LIMITS = {"inconclusive": 0.20, "unstable": 0.50}
RETRIED_SHARE = 0.10  # maximal share of canaries that were found only in a later try
ENOUGH = 20  # minimal number of cases or canaries, for a share


def failed_checks(counters: Counters, canaries: Mapping[str, int]) -> tuple[str, ...]:
    """Return the failed health checks of a campaign, one line each; empty if its result can be trusted.

    `canaries` has the form of `canaries.counts`.
    """
    if not counters.statements_judged:
        return ("no statement was compared",)
    return (*_retried(canaries), *_failed(counters), *_invalid(counters), *_undecided(counters))


def _retried(canaries: Mapping[str, int]) -> list[str]:
    planted, retried = canaries["planted"], canaries["retried"]
    if planted < ENOUGH or retried <= RETRIED_SHARE * planted:
        return []
    return [f"{retried} of {planted} planted bugs were found only when planted again, at most {RETRIED_SHARE:.0%} may"]


def _failed(counters: Counters) -> list[str]:
    counts = {generator: count for (oracle, generator, _), count in counters.verdicts.items() if oracle == NOT_EXECUTED}
    return [f"pgduel itself failed on {count} cases of {name}" for name, count in sorted(counts.items())]


def _invalid(counters: Counters) -> list[str]:
    shares = {
        name: counters.valid[name] / steps for name, steps in counters.steps.items() if counters.cases[name] >= ENOUGH
    }
    return [
        f"{name}: only {share:.1%} of the statements succeeded, at least {VALID_SHARE:.0%} should"
        for name, share in sorted(shares.items())
        if share < VALID_SHARE
    ]


def _undecided(counters: Counters) -> list[str]:
    """Return the pairs of an oracle and a generator with too many undecided statements.

    Statements of one case often share the reason, so a few cases prove nothing.
    """
    statements = Counter(counters.judged_by)
    for (oracle, generator, _), count in counters.undecided.items():
        statements[oracle, generator] += count
    return [
        f"{oracle} on {generator}: {share:.0%} of the statements were {kind}"
        for (oracle, generator, kind), count in sorted(counters.undecided.items())
        if counters.judged_cases[oracle, generator] >= ENOUGH
        and (share := count / statements[oracle, generator]) > LIMITS[kind]
    ]


@dataclass(frozen=True, slots=True)
class ProgressPoint:
    """The state of a campaign after its first `cases` cases."""

    cases: int
    at: float  # seconds since the epoch; displayed only
    seconds: float  # elapsed in all parts of a resumed campaign
    statements: int  # compared
    shapes: int  # distinct plan shapes
    findings: int  # distinct fingerprints
    unstable: int  # verdicts
    inconclusive: int  # verdicts
    memory: int = 0  # bytes of all processes on this machine
    disk: int = 0  # bytes of the campaign's directory, and of its servers'
    files: int = 0  # open in all these processes
    edges: int = 0  # reached; 0 if the builds count none

    @property
    def usage(self) -> Usage:
        """Return the usage of the machine."""
        return Usage(self.memory, self.disk, self.files)


def sample_of(counters: Counters, findings: int, at: float, usage: Usage = UNKNOWN, *, edges: int = 0) -> ProgressPoint:
    """Return the sample of a campaign's counters, its number of findings, its usage of the machine, and its edges."""
    return ProgressPoint(
        cases=counters.cases.total(),
        at=at,
        seconds=counters.seconds,
        statements=counters.statements_judged,
        shapes=len(counters.shapes),
        findings=findings,
        unstable=counters.of_kind("unstable"),
        inconclusive=counters.of_kind("inconclusive"),
        memory=usage.memory,
        disk=usage.disk,
        files=usage.files,
        edges=edges,
    )


def is_sample_due(before: int, now: int) -> bool:
    """Return whether a sample is due at `now` cases, if the last one was at `before`."""
    return now // SAMPLED_EVERY > before // SAMPLED_EVERY

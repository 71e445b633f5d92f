"""Hunting: another program looks for bugs on the last arm, and what it comes across is judged here, on all arms.

What it comes across are cases. Only what our own oracles find in them is a finding, stored at once, written as a script
and reduced, in a campaign of its own; so `list` and `replay` know it.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import typer

from fuzz.campaign.campaign import REDUCTIONS
from fuzz.campaign.catalog import new_campaign, opened
from fuzz.campaign.findings import StoredFinding, unsettled
from fuzz.campaign.plan import Plan
from fuzz.campaign.stop import Interrupt, interruptible
from fuzz.campaign.store import Store
from fuzz.campaign.tally import Tally, nested
from fuzz.campaign.work import look_into, write_script
from fuzz.cli.app import console, say
from fuzz.cli.conduct import plant_canaries
from fuzz.cli.options import ArmOptions, arms_json
from fuzz.cli.reducing import Reducing
from fuzz.execution.executor import Executor
from fuzz.execution.judging import assignments, judge_case
from fuzz.execution.source_database import SourceDatabase
from fuzz.report.terminal import Display, display
from fuzz.servers.arm import Arm, fresh_servers, open_arms
from fuzz.servers.recovery import await_connections
from oracles.model.case import Case
from oracles.model.oracle import all_oracles


@dataclass(slots=True)
class Hunt:
    """A hunt that is going on."""

    arms: Sequence[Arm]
    target: SourceDatabase
    shown: Display
    program: str
    _store: Store
    _stage: Executor
    _reducing: Reducing
    _until: float
    _interrupt: Interrupt
    judged: int = 0
    confirmed: int = 0
    tally: Tally = field(default_factory=Tally)
    counts: dict[str, Any] = field(default_factory=dict)  # what else the hunt tells

    @property
    def seconds(self) -> float:
        """How long it may still take; nothing once the user asked to end."""
        return 0.0 if self._interrupt else max(0.0, self._until - time.monotonic())

    def await_servers(self) -> None:
        """Wait until servers that crashed take connections again. Raises ServerError."""
        for arm in self.arms:
            await_connections(arm.cluster)

    def judge(self, case: Case, origin: str) -> bool:
        """Have all oracles judge a case, and keep what they find; `origin` says how the program came across it."""
        trial = judge_case(self._stage, assignments(all_oracles(), self.arms), case)
        self.judged += 1
        self.confirmed += bool(trial.findings)
        for finding in trial.findings:
            if self._store.add_finding(finding, origin, case):
                self.shown.say(f"finding {finding.fingerprint}, {finding.oracle}: {finding.summary}")
                write_script(finding.fingerprint, self._store, self._reducing)
        self.tally.count_verdicts(self.program, trial)
        self._store.progress(self.tally, {})
        return bool(trial.findings)

    @property
    def findings(self) -> tuple[StoredFinding, ...]:
        """What was found."""
        return self._store.findings()

    def reduce(self) -> None:
        """Reduce what was found, as much of it as a campaign would, on servers of its own."""
        for found in self.findings[:REDUCTIONS]:
            self.shown.progress(f"reducing finding {found.finding.fingerprint}")
            with fresh_servers(self.arms) as arms:
                look_into(found, arms, self._store, self._reducing)

    def to_json(self) -> dict[str, Any]:
        """Return what --json writes."""
        named = ("fingerprint", "oracle", "summary")
        findings = [
            {name: getattr(each.finding, name) for name in named}
            | {"origin": each.case_id, "cases": each.count, "reproducer": str(each.reproducer)}
            for each in self.findings
        ]
        campaign = self._store.directory.name
        return {
            "campaign": campaign,
            **self.counts,
            "judged": self.judged,
            "confirmed": self.confirmed,
            "canaries": self._store.canaries,
            "judged_by_oracle": nested(self.tally.judged_by),
            "findings": findings,
        }


@contextmanager
def hunting(plan: Plan) -> Iterator[Hunt]:
    """Open the arms of a plan for a hunt, and reduce what it found in the end. Raises PgduelError."""
    options = ArmOptions.from_json(plan.arms)
    with display(console, plan.limits.seconds) as shown:
        specs = options.specs(shown.progress)
        with open_arms(specs, shown.progress, allow_same_build=options.same_build_wanted) as arms:
            facts = arms_json(specs, [arm.build.key for arm in arms])
            with opened(new_campaign()) as store, interruptible() as interrupt, Executor(arms, "hunt") as stage:
                store.begin(plan.to_json(), facts)
                plant_canaries(store, stage, arms, shown)
                with closing(SourceDatabase(arms[-1], "hunt", plan.given)) as target:
                    until = time.monotonic() + (plan.limits.seconds or 0.0)
                    (program,) = plan.generators
                    hunt = Hunt(arms, target, shown, program, store, stage, Reducing(options, facts), until, interrupt)
                    yield hunt
                    hunt.reduce()


def told(hunt: Hunt, headline: str) -> typer.Exit:
    """Say what came of it, and return how the command ends."""
    say(headline)
    for found in hunt.findings:
        say(f"finding {found.finding.fingerprint}, {found.finding.oracle}: {found.finding.summary}")
        say(f"  {found.case_id}, in {found.count} cases")
        say(f"  replay: ./pgduel replay {found.reproducer}")
    if unreduced := len(unsettled(hunt.findings)):
        say(f"not reduced: {unreduced}; one run reduces {REDUCTIONS} at most")
    if not hunt.findings:
        say("No finding.")
    return typer.Exit(1 if hunt.findings else 0)

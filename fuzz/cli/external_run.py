"""Runs of an external fuzzer (SQLancer, SQLsmith) on the last arm.

Its statements become cases, which pgduel's oracles judge on all arms. Only their reports are findings. Each finding is
stored at once, written as a script and reduced, in a campaign of its own. So `list` and `replay` can use it.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import typer

from fuzz.campaign.catalog import opened_new, require_store
from fuzz.campaign.counters import Counters, nested
from fuzz.campaign.plan import Plan
from fuzz.campaign.stop import REDUCTIONS, Interrupt, interruptible
from fuzz.campaign.store import Store, doubt_of
from fuzz.cli.app import console, say
from fuzz.cli.options import facts_of
from fuzz.cli.run_campaign import plant_canaries
from fuzz.execution.executor import Executor
from fuzz.execution.judging import assignments, judge_despite_errors
from fuzz.execution.source_database import SourceDatabase
from fuzz.report.terminal import Display, display
from fuzz.servers.arm import Arm, fresh_servers, open_arms, remarks
from fuzz.servers.cluster import await_connections
from fuzz.triage.findings import StoredFinding, untriaged
from fuzz.triage.triage import Triage, replay_command
from oracles.model.case import Case
from oracles.model.oracle import Inconclusive, Unstable, all_oracles


@dataclass(slots=True)
class ExternalRun:
    """A run in progress."""

    arms: Sequence[Arm]
    target: SourceDatabase
    shown: Display
    program: str
    _store: Store
    _executor: Executor
    _triage: Triage
    _until: float
    _interrupt: Interrupt
    judged: int = 0
    confirmed: int = 0
    failed: int = 0  # cases that pgduel itself, or one of its oracles, failed on
    counters: Counters = field(default_factory=Counters)
    counts: dict[str, Any] = field(default_factory=dict)  # further keys of --json

    @property
    def seconds(self) -> float:
        """Return the remaining seconds; 0 after a request to stop."""
        return 0.0 if self._interrupt else max(0.0, self._until - time.monotonic())

    def await_servers(self) -> None:
        """Wait until crashed servers accept connections again. Raises ServerError."""
        for arm in self.arms:
            await_connections(arm.cluster)

    def judge(self, case: Case, origin: str) -> bool:
        """Judge a case by all oracles, and store findings and doubts. `origin` describes the source of the case.

        Raises ServerError.
        """
        judged = judge_despite_errors(self._executor, assignments(all_oracles(), self.arms), case)
        self.judged += 1
        self.confirmed += bool(judged.findings)
        for finding in judged.findings:
            if self._store.add_finding(finding, origin, case):
                self.shown.say(f"finding {finding.fingerprint}, {finding.oracle}: {finding.summary}")
                self._triage.write(self._store.finding(finding.fingerprint))
        for oracle, verdict in judged.verdicts:
            if isinstance(verdict, Inconclusive | Unstable):
                self.add_doubt(oracle, verdict, origin, case)
        self.counters.count_verdicts(self.program, judged)
        self._store.progress(self.counters, {})
        self.failed += bool(judged.errors)
        for error in judged.errors:
            self.shown.say(f"pgduel failed on a case of {origin}: {error!r}")
        if judged.outage is not None and not judged.findings:
            raise judged.outage
        return bool(judged.findings)

    def add_doubt(self, oracle: str, doubt: Inconclusive | Unstable, origin: str, case: Case) -> None:
        """Store a doubt about a case, unless there are enough of its kind."""
        self._store.add_doubt(doubt_of(oracle, doubt, origin, case))

    @property
    def findings(self) -> tuple[StoredFinding, ...]:
        """Return the findings."""
        return self._store.findings()

    def reduce(self) -> None:
        """Reduce as many findings as a campaign would, on separate servers."""
        for found in self.findings[:REDUCTIONS]:
            self.shown.progress(f"reducing finding {found.finding.fingerprint}")
            with fresh_servers(self.arms) as arms:
                self._triage.investigate(found, arms)

    def replay_command(self, found: StoredFinding) -> str:
        """Return the command that judges a finding's script again."""
        return replay_command(self._triage.path(found), self._triage.options)

    def to_json(self) -> dict[str, Any]:
        """Return the data of --json."""
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
            "failed": self.failed,
            "canaries": self._store.canaries,
            "judged_by_oracle": nested(self.counters.judged_by),
            "findings": findings,
        }


@contextmanager
def external_run(plan: Plan) -> Iterator[ExternalRun]:
    """Open the arms of a plan for an external fuzzer, and reduce its findings at the end. Raises PgduelError."""
    require_store()
    options = plan.arms
    with display(console, plan.limits.seconds) as shown:
        specs = options.specs(shown.progress)
        for line in remarks(specs):
            shown.say(line)
        with open_arms(specs, shown.progress, allow_same_build=options.same_build_wanted) as arms:
            facts = facts_of(specs, arms)
            with (
                opened_new(shown.say) as store,
                interruptible() as interrupt,
                Executor(arms, "external") as executor,
            ):
                store.begin(plan, facts)
                plant_canaries(store, executor, arms, shown)
                with closing(SourceDatabase(arms[-1], "external", plan.given)) as target:
                    until = time.monotonic() + (plan.limits.seconds or 0.0)
                    (program,) = plan.generators
                    triage = Triage(options.command_line(), facts, store)
                    external = ExternalRun(arms, target, shown, program, store, executor, triage, until, interrupt)
                    yield external
                    external.reduce()


def print_results(external: ExternalRun, headline: str) -> typer.Exit:
    """Print the results, and return the command's exit."""
    say(headline)
    for found in external.findings:
        say(f"finding {found.finding.fingerprint}, {found.finding.oracle}: {found.finding.summary}")
        say(f"  {found.case_id}, in {found.count} cases")
        say(f"  replay: {external.replay_command(found)}")
    if unreduced := len(untriaged(external.findings)):
        say(f"not reduced: {unreduced}; a run reduces at most {REDUCTIONS}")
    if not external.findings:
        say("No finding.")
    if external.failed:
        say(f"pgduel failed on {external.failed} cases, which are not judged, or not by all oracles.")
    return typer.Exit(1 if external.findings else 2 if external.failed else 0)

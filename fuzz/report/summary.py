"""The summary of a campaign: for people on the terminal, for programs as JSON."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import scipy  # scipy.special is imported when it is first used: that takes as long as all else of a command
from rich.table import Table

from fuzz import documents, workdir
from fuzz.campaign.counters import NO_PLANS, Counters, Plans, failed_checks, nested
from fuzz.campaign.harnesses import NAME as HARNESS
from fuzz.campaign.known import KnownFault, fault_of
from fuzz.campaign.stop import INTERRUPTED, REDUCTIONS
from fuzz.campaign.store import Store
from fuzz.report.console import Console, plain
from fuzz.report.terminal import clock, plan_lines
from fuzz.sources.scripts.trial import LACKING
from fuzz.sources.source import UNPARSED
from fuzz.triage.blame import Blame
from fuzz.triage.findings import Bug, StoredFinding, bug_key, bugs, untriaged
from fuzz.triage.triage import replay_command

KINDS = ("agree", "finding", "unstable", "inconclusive", "not_applicable")
LISTED_REASONS = 12
CONFIDENCE = 0.95  # of the bounds of rates


@dataclass(frozen=True, slots=True)
class Summary:
    """All facts that a campaign's summary reports."""

    campaign: str
    why: str  # reason for its end
    seed: int
    arms: Mapping[str, Any]
    canaries: Mapping[str, int]
    missed: str  # the missed canaries, if any
    counters: Counters
    findings: Sequence[StoredFinding]
    unreached: Sequence[str]  # branches of a feature that an arm has
    not_compared: Sequence[str]  # a line for each arm that an oracle does not compare
    failed_checks: Sequence[str]  # of its health, one line each
    parts: Mapping[str, int]  # source → number of parts that it replays whole, if any
    newer_bases: Sequence[str] = ()  # a line for each newer base and each moved patch
    known: Sequence[KnownFault] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)  # source that did not run → reason
    replay_options: str = ""  # of `pgduel replay` for the same arms and oracles, after a space

    @property
    def new_findings(self) -> list[StoredFinding]:
        """Return the findings that are no known faults."""
        return [found for found in self.findings if fault_of(found, self.known) is None]

    @property
    def stale(self) -> list[KnownFault]:
        """Return the user's known faults that did not occur. Those of the corpus occur in few campaigns."""
        own = (fault for fault in self.known if not (fault.reproducer or fault.correction))
        return [fault for fault in own if not self.cases_of(fault)]

    @property
    def conclusion(self) -> str:
        """Return the result in one sentence."""
        findings = self.new_findings
        if not findings:
            trust = "but this run proves little" if self.failed_checks else "and all health checks passed"
            return f"No {'new ' if self.findings else ''}finding, {trust}."
        shared = sum(found.finding.shown_by_all for found in findings)
        distinct = len(bugs(findings))
        of_bugs = f" of {numbered(distinct, 'distinct bug')}" if distinct < len(findings) else ""
        alike = f", {shared} of them shown by all arms alike" if shared else ""
        return f"{numbered(len(findings), 'finding')}{of_bugs}{alike}."

    @property
    def exit_code(self) -> int:
        """Return 1 if there are new findings, 2 if the result cannot be trusted, else 0."""
        if self.new_findings:
            return 1
        return 2 if self.failed_checks else 0

    @property
    def unparsed(self) -> int:
        """Return the number of executed statements that pglast cannot parse."""
        return self._tagged(UNPARSED)

    @property
    def not_applicable(self) -> int:
        """Return the number of statements of patches' own tests that ran nowhere: some arm lacks their feature."""
        return self._tagged(LACKING)

    def _tagged(self, tag: str) -> int:
        return sum(count for (_, other), count in self.counters.tags.items() if other == tag)

    def to_json(self) -> dict[str, Any]:
        """Return the data for `--json`."""
        counters = self.counters
        return {
            "campaign": self.campaign,
            "ended": self.why,
            "seed": self.seed,
            "arms": self.arms,
            "canaries": self.canaries,
            "seconds": round(counters.seconds, 1),
            "cases": counters.cases.total(),
            "statements_judged": counters.statements_judged,
            "statements_unparsed": self.unparsed,
            "statements_not_applicable": self.not_applicable,
            "statements_per_second": round(counters.statements_per_second, 1),
            "valid_share": round(counters.valid_share, 5),
            "findings": [self.finding_json(each) for each in self.findings],
            "bugs": [_bug_json(each) for each in bugs(self.findings)],
            "known": [{"fault": str(fault), "cases": self.cases_of(fault)} for fault in self.known],
            "unstable": counters.of_kind("unstable"),
            "inconclusive": counters.of_kind("inconclusive"),
            "reach": dict(sorted(counters.reach.items())),
            "unreached": list(self.unreached),
            "cpu_seconds": {"client": round(counters.client_cpu, 1), "server": round(counters.server_cpu, 1)},
            "generators": _generators_json(counters),
            "parts": nested(counters.parts),
            "verdicts": nested(counters.verdicts),
            "judged_by_oracle": nested(counters.judged_by),
            "false_findings_at_most": self.false_findings_at_most(),
            "reasons": nested(counters.reasons),
            "not_compared": list(self.not_compared),
            "left_out": dict(self.left_out),
            "complaints": list(self.failed_checks),
            "newer_bases": list(self.newer_bases),
        }

    def finding_json(self, found: StoredFinding) -> dict[str, Any]:
        """Return the data of one finding for `--json`."""
        fault = fault_of(found, self.known)
        return {
            "fingerprint": found.finding.fingerprint,
            "oracle": found.finding.oracle,
            "arms": list(found.finding.arms),
            "suspect": None if found.finding.vote is None else found.finding.vote.suspect,
            "origin": found.finding.symptom,
            "summary": found.finding.summary,
            "cases": found.count,
            "bug": bug_key(found),
            "known": None if fault is None else str(fault),
            "case": found.case_id,
            "shown": [found.least.shown, found.least.runs] if found.reduced and found.smallest else None,
            "reduced_in": None if found.seconds is None else round(found.seconds, 1),
            "blame": None if found.blame is None else blame_json(found.blame),
            "reproducer": None if found.reproducer is None else str(found.reproducer),
            "replay": self.replay_command(found),
        }

    def false_findings_at_most(self) -> dict[str, float]:
        """Return upper bounds of the rate of false findings per judged statement, by oracle, if all arms are alike.

        Then each finding that only some arms have is false. The bounds are Clopper and Pearson's, with CONFIDENCE.
        """
        first, *others = self.arms.values()
        if not others or any(other != first for other in others):
            return {}
        false: Counter[str] = Counter()
        for found in self.findings:
            false[found.finding.oracle] += 0 if found.finding.shown_by_all else found.count
        return {
            oracle: float(scipy.special.betaincinv(false[oracle] + 1, max(judged - false[oracle], 1), CONFIDENCE))
            for oracle, judged in sorted(_judged(self.counters).items())
            if judged
        }

    def cases_of(self, fault: KnownFault) -> int:
        """Return the number of cases that showed a known fault."""
        return sum(found.count for found in self.findings if fault_of(found, self.known) is fault)

    def replay_command(self, found: StoredFinding) -> str:
        """Return the command that replays the finding."""
        if found.reproducer is None:  # a finding of a campaign has the arms of that campaign
            return f"{workdir.COMMAND} replay {self.campaign}/{found.finding.fingerprint}"
        return replay_command(found.reproducer, self.replay_options)


def summary_of(store: Store, missed: str = "", parts: Mapping[str, int] | None = None) -> Summary:
    """Return the summary of a campaign's store. `missed` and `parts` are known only while the arms run."""
    plan, counters, canaries = store.plan, store.counters, store.canaries
    return Summary(
        campaign=store.directory.name,
        why=store.ended,
        seed=plan.seed,
        arms=store.arms,
        canaries=canaries,
        missed=missed,
        counters=counters,
        findings=store.findings(),
        unreached=[branch for feature in store.features for branch in feature.expected if not counters.reach[branch]],
        not_compared=store.not_compared,
        failed_checks=() if HARNESS in plan.generators else failed_checks(counters, canaries),  # it plants no bugs
        parts=parts or {},
        known=plan.known,
        left_out=plan.left_out,
        replay_options=plan.replay_options(),
    )


def blame_json(blame: Blame) -> dict[str, Any]:
    """Return the data of a blame for `--json`: its document, the patches, and both in words."""
    return {**documents.to_data(blame), "patches": list(blame.patches), "says": str(blame)}


def _bug_json(bug: Bug) -> dict[str, Any]:
    return {
        "bug": bug.key,
        "oracle": bug.findings[0].finding.oracle,
        "findings": [found.finding.fingerprint for found in bug.findings],
        "cases": bug.cases,
    }


def _generators_json(counters: Counters) -> dict[str, Any]:
    plans = counters.all_plans()
    return {name: _generator_json(counters, name, plans.get(name, NO_PLANS)) for name in sorted(counters.cases)}


def _generator_json(counters: Counters, name: str, plans: Plans) -> dict[str, Any]:
    return {
        "cases": counters.cases[name],
        "statements_judged": counters.judged[name],
        "valid_share": round(counters.valid[name] / counters.steps[name], 5) if counters.steps[name] else 1.0,
        "plans": asdict(plans),
        "tags": {tag: count for (generator, tag), count in sorted(counters.tags.items()) if generator == name},
    }


def print_summary(console: Console, summary: Summary, *, verbose: bool = False) -> None:
    """Print the verdict, the findings, and a line for each oracle; all counts with `verbose`."""
    console.rule(f"campaign {summary.campaign}: {summary.why}", align="left", style="dim")
    _print_verdict(console, summary)
    for bug in bugs(summary.new_findings):
        _print_bug(console, summary, bug)
    for fault in summary.known:
        if cases := summary.cases_of(fault):
            console.say(f"known fault {fault} in {numbered(cases, 'case')}")
    for fault in summary.stale:
        console.say(f"stale: known fault {fault} did not occur")
    console.print(_oracles(summary))
    if verbose:
        _print_counts_of_all(console, summary)
    for line in _hints(summary, verbose=verbose):
        console.say(line)


def _print_verdict(console: Console, summary: Summary) -> None:
    """Print the conclusion, the failed health checks, and the numbers of cases, statements and planted bugs."""
    style = "bold red" if summary.new_findings else "bold yellow" if summary.failed_checks else "bold green"
    console.say(summary.conclusion, style)
    for line in summary.failed_checks:
        console.say(f"health check failed: {line}", "bold yellow")
    for line in summary.newer_bases:
        console.say(line)
    counters, planted = summary.counters, summary.canaries
    console.say(
        f"{counters.cases.total()} cases, {counters.statements_judged} statements compared "
        f"in {clock(counters.seconds)} ({counters.statements_per_second:.0f}/s), "
        f"{counters.valid_share:.1%} valid, seed {summary.seed}",
    )
    if summary.unparsed:
        unparsed = numbered(summary.unparsed, "statement")
        console.say(f"{unparsed} that pglast cannot parse: arms are compared, and no oracle derives queries from them")
    if summary.not_applicable:
        left_out = numbered(summary.not_applicable, "statement")
        console.say(f"{left_out} of patches' own tests not applicable, because an arm lacks their feature")
    retried = f", {planted['retried']} only when planted again" if planted.get("retried") else ""
    console.say(f"planted bugs: {planted['caught']} of {planted['planted']} found{retried}")


def _judged(counters: Counters) -> Counter[str]:
    """Return the number of judged statements by oracle."""
    judged: Counter[str] = Counter()
    for (oracle, _), count in counters.judged_by.items():
        judged[oracle] += count
    return judged


def _oracles(summary: Summary) -> Table:
    """Return a line for each oracle: statements judged, each other verdict, and a bound of false findings if known."""
    judged = _judged(summary.counters)
    kinds: Counter[tuple[str, str]] = Counter()
    for (oracle, _, kind), count in summary.counters.verdicts.items():
        kinds[oracle, kind] += count
    at_most = summary.false_findings_at_most()
    table = Table(box=None, pad_edge=False, show_header=False)
    for oracle in sorted({oracle for oracle, _ in kinds}):
        others = (f"{kinds[oracle, kind]} {kind}" for kind in KINDS[1:-1] if kinds[oracle, kind])
        bound = f"{CONFIDENCE:.0%} sure: at most 1 false in {1 / at_most[oracle]:.0f}" if oracle in at_most else ""
        table.add_row(oracle, f"{judged[oracle]} statements judged", bound, ", ".join(others))
    return table


def _hints(summary: Summary, *, verbose: bool) -> Iterator[str]:
    """Yield useful next commands, one per line."""
    if unreduced := len(untriaged(summary.new_findings)):
        resume = f"{workdir.COMMAND} fuzz --resume {summary.campaign}"
        yield f"{numbered(unreduced, 'finding')} not reduced; {resume} reduces up to {REDUCTIONS} of them"
    if summary.why == INTERRUPTED:
        yield f"Everything is kept; continue with: {workdir.COMMAND} fuzz --resume {summary.campaign}"
    if not verbose:
        yield "For all counts, add --verbose, or --json FILE for programs"


def _print_counts_of_all(console: Console, summary: Summary) -> None:
    counters = summary.counters
    console.say(_cpu(counters))
    console.print(_verdicts(counters))
    for line in summary.not_compared:
        console.say(line)
    for (oracle, generator, kind, reason), count in counters.reasons.most_common(LISTED_REASONS):
        console.say(f"  {kind} x{count}: {reason} ({oracle} on {generator})")
    _print_counts(console, "reached in the servers", counters.reach)
    if summary.unreached:
        console.say(f"never reached: {', '.join(summary.unreached)}")
    for line in plan_lines(counters):
        console.say(line)
    for name, number in summary.parts.items():
        _print_counts(console, f"parts of {name} replayed, of {number}", _parts_replayed(counters, name))
    for name in sorted(counters.cases):
        tags = Counter({tag: count for (generator, tag), count in counters.tags.items() if generator == name})
        _print_counts(console, f"workload paths of {name}", tags)


def _cpu(counters: Counters) -> str:
    total = counters.cpu_seconds
    share = counters.client_cpu / total if total else 0.0
    return (
        f"CPU: {counters.server_cpu:.0f} s in the servers, {counters.client_cpu:.0f} s in pgduel ({share:.0%}), "
        f"{total / max(1, counters.cases.total()):.2f} s per case"
    )


def _verdicts(counters: Counters) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("verdicts of")
    table.add_column("on")
    table.add_column("statements judged", justify="right")
    for kind in KINDS:
        table.add_column(kind, justify="right")
    for oracle, generator in sorted({(oracle, generator) for oracle, generator, _ in counters.verdicts}):
        judged = str(counters.judged_by[oracle, generator])
        table.add_row(oracle, generator, judged, *(str(counters.verdicts[oracle, generator, kind]) for kind in KINDS))
    return table


def _print_counts(console: Console, title: str, counts: Counter[str]) -> None:
    if not counts:
        return
    console.say(f"{title}:")
    width = max(len(name) for name in counts) + 8
    cells = [f"{name} {count:>{width - len(name) - 3}}" for name, count in sorted(counts.items())]
    across = max(1, console.width // width)
    down = -(-len(cells) // across)
    for row in range(down):
        console.say("  " + "   ".join(cells[row::down]))


def _print_bug(console: Console, summary: Summary, bug: Bug) -> None:
    """Print the first finding of a bug, and list the others."""
    found, *others = bug.findings
    finding = found.finding
    console.print(plain(f"finding {finding.fingerprint}", "bold red"), f"in {numbered(found.count, 'case')}")
    console.say(f"  {finding.oracle}: {finding.summary}")
    if finding.vote:
        console.say(f"  suspect:    {finding.vote}")
    if others:
        named = ", ".join(f"{other.finding.fingerprint} in {other.count}" for other in others)
        console.say(f"  the same bug, in {numbered(bug.cases, 'case')}: {named}")
    if found.smallest is not None and not found.smallest.always:
        console.say(f"  {found.smallest.how_often}")
    if found.blame is not None:
        console.say(f"  to blame:   {found.blame}")
    if found.reproducer is not None:
        console.say(f"  reproducer: {found.reproducer}")
    console.say(f"  replay:     {summary.replay_command(found)}")


def _parts_replayed(counters: Counters, name: str) -> Counter[str]:
    """Return modes -> number of parts replayed under them."""
    return Counter(modes for generator, modes, _, what in counters.parts if (generator, what) == (name, "cases"))


def numbered(count: int, noun: str) -> str:
    """Return a number and its noun: 1 finding, 2 findings."""
    return f"{count} {noun}{'' if count == 1 else 's'}"

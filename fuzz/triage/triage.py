"""Triage of a finding: reduce it, find the patch to blame, write its reproducer.

Each step is recorded before the next one begins, so an interrupted triage continues where it stopped.

Triage begins with the case in the form in which one of its runs executed it. Crashes and internal errors may occur only
in a run that another oracle requested, with other queries or modes, or with EXPLAIN before each query.
"""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from shlex import quote
from typing import Any, Final, Protocol

import pglast

from fuzz import workdir
from fuzz.errors import PgduelError
from fuzz.execution.executor import Executor
from fuzz.execution.session import explaining_steps
from fuzz.servers.arm import Arm
from fuzz.servers.series import Patch
from fuzz.triage.blame import Blame, blame_search
from fuzz.triage.correction import with_correction
from fuzz.triage.findings import StoredFinding
from fuzz.triage.interestingness import FindingCheck, InterestingnessTest, QuestionTimeout, ReducedCase, same_arms
from fuzz.triage.reduction.problem import SECONDS
from fuzz.triage.reduction.reducer import Uninteresting, reduce
from fuzz.triage.reproducer.reproducer import noted, render
from oracles.model.case import Case, Step
from oracles.model.finding import Finding
from oracles.model.observation import Run
from oracles.model.oracle import Observations, oracle_named

DIRECTORY = "reproducers"


class Log(Protocol):
    """Interface that records the results of triage: the store of a campaign. All methods raise StorageError."""

    directory: Path  # of the campaign; reproducers go to a directory below

    def record_reproducer(self, fingerprint: str, reproducer: Path) -> None:
        """Record the path of a reproducer."""

    def record_progress(self, fingerprint: str, smallest: ReducedCase) -> None:
        """Record the smallest case so far."""

    def record_reduction(self, fingerprint: str, smallest: ReducedCase, seconds: float) -> None:
        """Record the end of a reduction."""

    def record_blame(self, fingerprint: str, blame: Blame) -> None:
        """Record the patch to blame."""


@dataclass(frozen=True, slots=True)
class Triage:
    """Triage of the findings of one campaign."""

    options: str  # command-line options with which `pgduel replay` opens the same arms
    records: Mapping[str, Any]  # arm → its build, base and series
    log: Log
    corrections: Sequence[Patch] = ()  # of known faults

    def write(self, found: StoredFinding) -> StoredFinding:
        """Write the script of the smallest known case, and return the finding with its path. Raises StorageError."""
        path = self._write(found)
        self.log.record_reproducer(found.finding.fingerprint, path)
        return replace(found, reproducer=path)

    def write_with_notes(self, found: StoredFinding) -> StoredFinding:
        """Write the script of a finding with the notes of its triage, and return the finding with its path.

        Raises StorageError.
        """
        written = self.write(found)
        if written.reproducer is not None and found.blame is not None:
            note(written.reproducer, _notes(found.least, found.blame))
        return written

    def path(self, found: StoredFinding) -> Path:
        """Return the path of a finding's reproducer."""
        return self.log.directory / DIRECTORY / f"{found.finding.fingerprint}.sql"

    def investigate(self, found: StoredFinding, arms: Sequence[Arm]) -> ReducedCase:
        """Reduce a finding and find the patch to blame, unless both are recorded; return the reduced case.

        Raises BuildError, ServerError, StorageError.
        """
        smallest = found.least
        if not found.reduced:
            began = time.monotonic()
            smallest = self.reduce(found, arms)
            self.log.record_reduction(found.finding.fingerprint, smallest, time.monotonic() - began)
        if smallest.shown:
            self.log.record_blame(found.finding.fingerprint, self.blame(found, smallest, arms))
        return smallest

    def reduce(self, found: StoredFinding, arms: Sequence[Arm]) -> ReducedCase:
        """Reduce a case, recording each smaller one; return the smallest. Raises ServerError, StorageError.

        It starts from the smallest case of an interrupted reduction. If only findings with another symptom occur (a
        crash at another site), any finding of the same oracle and arms counts. A finding that does not occur again
        keeps its case.
        """
        smallest = self._smallest(found, arms)
        self._write(replace(found, smallest=smallest))
        return smallest

    def _smallest(self, found: StoredFinding, arms: Sequence[Arm]) -> ReducedCase:
        runs = 0
        limit = QuestionTimeout()
        with Executor(arms, "reduction", stop=limit.passed) as executor:
            for similar, case in product((Finding.resembles, same_arms), dict.fromkeys((found.least.case, found.case))):
                test = InterestingnessTest(executor, limit, arms, case, found.finding)
                try:
                    least = reduce(
                        test.whole,
                        partial(test.shows, similar=similar),
                        seconds=SECONDS,
                        replay=replay_command(found.case_id, self.options),
                        fast_test=test.shows_symptom if similar == Finding.resembles else None,
                        on_better=partial(self._keep, found, test),
                    )
                except Uninteresting as never:
                    runs += never.runs
                    continue
                shown = FindingCheck(executor, arms, found.finding).voted(least.case, test.shown[least.case])
                return ReducedCase(least.case, shown, least.occurrence.shown, least.occurrence.runs)
        return ReducedCase(found.case, found.finding, 0, runs)

    def _keep(self, found: StoredFinding, test: InterestingnessTest, better: Case) -> None:
        """Record a smaller case, which has shown the finding once."""
        smaller = ReducedCase(better, test.shown[better], 1, 1)
        self.log.record_progress(found.finding.fingerprint, smaller)
        self._write(replace(found, smallest=smaller))

    def _write(self, found: StoredFinding) -> Path:
        path = self.path(found)
        with workdir.writing(path.parent):
            path.parent.mkdir(exist_ok=True)
        least = found.least
        command = replay_command(path, self.options)
        workdir.write(path, render(least.case, least.finding, self.records, found.case_id, command))
        return path

    def blame(self, found: StoredFinding, smallest: ReducedCase, arms: Sequence[Arm]) -> Blame:
        """Return the patch to blame without builds of other prefixes, and note it in the script.

        The whole case is tried if the smallest one does not show the finding again, which may depend on the contents
        of shared buffers. Raises BuildError, ServerError, StorageError.
        """
        whole = replace(smallest, case=found.case, finding=found.finding)
        cases = tuple(dict.fromkeys((smallest, whole)))
        for known in cases:
            blame = blame_search(known, arms, lambda line: None, built_only=True).blame(self.records)
            if blame.first is not None or not blame.tried:
                break
        blame = with_correction(blame, cases, arms, self.corrections)
        if found.reproducer is not None:
            note(found.reproducer, _notes(smallest, blame))
        return blame


def _notes(smallest: ReducedCase, blame: Blame) -> Mapping[str, str]:
    return {"shows": smallest.how_often, "blame": str(blame)}


def note(path: Path, notes: Mapping[str, str]) -> None:
    """Add notes to the header of a reproducer. Raises PgduelError."""
    try:
        script = path.read_text(encoding="utf-8")
    except OSError as error:
        raise PgduelError(f"cannot read {path} ({error.strerror})") from error
    workdir.write(path, noted(script, notes))


def with_replay_command(script: str, path: Path, options: str) -> str:
    """Return a script whose header has the command that replays it from a path."""
    path = path.resolve()
    near = path.relative_to(workdir.PROJECT) if path.is_relative_to(workdir.PROJECT) else path
    line = f"--   Judge it: {replay_command(near, options)}"
    return re.sub(r"^--   Judge it: .*$", lambda _: line, script, count=1, flags=re.MULTILINE)


def replay_command(what: Path | str, options: str) -> str:
    """Return the command that replays a case or a reproducer."""
    return f"{workdir.COMMAND} replay {quote(str(what))}{options}"


_AROUND: Final = ("SET ", "RESET ", "BEGIN", "ROLLBACK")  # statements around a query


def as_executed(case: Case, finding: Finding, observations: Observations) -> tuple[Case, Finding]:
    """Return a case that shows the finding by itself, and the finding with its step in that case.

    It is this case, unless the finding occurred only with replaced or explained queries, or other modes.
    """
    oracle = oracle_named(finding.oracle)
    suspects = {run: seen for run, seen in observations.items() if run.arm == finding.arms[1]}
    runs = [run for run, seen in suspects.items() if oracle and finding.origin in oracle.origins(seen)]
    if not runs or any(run.modes == case.modes and not (run.instead or _explains(run)) for run in runs):
        return case, finding
    chosen = min(runs, key=lambda run: (_explains(run), len(run.modes), run.repetition, repr(run)))
    replacements = dict(chosen.instead)
    begin = len(case.scene)
    steps: list[Step] = []
    shown = finding.step
    for position, step in enumerate(case.steps, start=begin):
        if position == finding.step:
            shown = begin + len(steps)
        made = _statements(step, replacements[position]) if position in replacements else (step,)
        steps += (each for statement in made for each in explaining_steps(statement, chosen))
    return replace(case, steps=tuple(steps), modes=chosen.modes), replace(finding, step=shown)


def _explains(run: Run) -> bool:
    return run.explain or run.plannings > 0


def _statements(step: Step, sql: str) -> Iterator[Step]:
    """Yield the steps that replace one: a query, and statements around it, which reduction may drop."""
    for statement in pglast.split(sql, with_parser=False):  # a user's oracle may use the syntax of a patch
        yield Step(statement) if statement.startswith(_AROUND) else step.with_statement(statement)

"""Runs of native harnesses: each fuzzes for its share of the time, and each failure is a finding of the campaign.

The input of a failure is on disk before anything else: libFuzzer writes it to the harness's artifacts. From there it
goes to the campaign's directory and to the store, and is deleted only then. Those that a killed run left behind are
tried first.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fuzz import workdir
from fuzz.campaign.store import Store, add_harness_finding, record_input
from fuzz.engines.libfuzzer.build import Harness, build_harness
from fuzz.engines.libfuzzer.kept import Failure, Kept, delete_input, failure_of, merge, minimized, read_input, replay
from fuzz.engines.libfuzzer.run import HarnessRun, input_name, run_harness
from fuzz.errors import BuildError, CaseError
from fuzz.servers import Report, git
from fuzz.servers.build import Build, ensure_build, find_build
from fuzz.servers.flavor import FLAVORS
from oracles.model.finding import Finding

NAME: Final = "harness"  # of the detector in findings, like an oracle's
_FLAVOR: Final = FLAVORS["assert"]
_NO_HEADERS: Final = (".c", ".out", ".sgml", ".spec", ".sql", ".xml")  # files that other C files do not depend on


@dataclass(frozen=True, slots=True)
class HarnessResult:
    """The result of one harness."""

    name: str
    run: HarnessRun
    seconds: float
    kept: int  # inputs
    functions: tuple[int, int]  # of the tested files: called ones, and all; (0, 0) without them, or after a failure
    remark: str = ""  # reason why the kept inputs were not merged


@dataclass(frozen=True, slots=True)
class HarnessCampaign:
    """The arm whose code is tested, the store of findings, and functions that report them and stop the run."""

    arm: str
    store: Store
    report: Report
    found: Callable[[Finding, Path], None]  # a new finding, and the file of its input
    stop: Callable[[], bool]

    def fuzz(
        self, harness: Harness, program: Path, kept: Kept, seeds: Path, seconds: float, seed: int
    ) -> HarnessResult:
        """Fuzz until the time is over or a failure is found, and keep the inputs that reach new code.

        Raises CaseError, StorageError.
        """
        began = time.monotonic()
        self._record_left(harness.name, program, kept)
        self.report(f"{harness.name}: fuzzing")
        run = run_harness(
            program, seconds, seeds, seed=seed, kept=kept.inputs, artifacts=kept.artifacts, stop=self.stop
        )
        covered, remark = run.functions, ""
        if run.crash is not None:
            self._record(harness.name, program, failure_of(run.output, read_input(run.crash)), run.crash)
        # If a kept input failed, none was added, and a merge would delete those that fail on this arm only.
        if run.crash is None or run.has_read_corpus:
            self.report(f"{harness.name}: merging the kept inputs")
            remark = _merged(program, kept, seeds)
            self._record_left(harness.name, program, kept)
        if run.crash is None and not (covered or harness.flavor):  # the run was stopped
            covered = run_harness(program, 0, seeds, kept=kept.inputs, artifacts=kept.artifacts).functions
        calls = [each.calls for each in covered.values() if each.file in harness.files]
        called = (sum(map(bool, calls)), len(calls))
        return HarnessResult(harness.name, run, time.monotonic() - began, len(kept.names()), called, remark)

    def _record_left(self, harness: str, program: Path, kept: Kept) -> None:
        """Record failures whose inputs a killed run or a merge left. Those that pass stay for other arms."""
        for path in kept.failed():
            self.report(f"{harness}: running an earlier input")
            if failure := replay(program, read_input(path)):
                self._record(harness, program, failure, path)

    def _record(self, harness: str, program: Path, failure: Failure, artifact: Path) -> None:
        """Store a failure, delete libFuzzer's file of its input, then look for a smaller input."""
        origin = f"{harness}: {failure.origin}"
        finding = Finding(
            NAME, (self.arm, self.arm), origin, None, f"{harness}: {failure.message}", "no complaint", failure.report
        )
        path = self.store.directory / f"{finding.fingerprint}.input"
        shown_by = f"{harness}/{input_name(failure.data)}"
        if not path.exists():
            workdir.write(path, failure.data)
        new = add_harness_finding(self.store, finding, shown_by, harness, path, failure.data)
        delete_input(artifact)
        if new:
            self.found(finding, path)
            self.report(f"{harness}: minimizing the input of {finding.fingerprint}")
            smallest = minimized(program, failure).data
            record_input(self.store, finding.fingerprint, smallest)
            workdir.write(path, smallest)


def _merged(program: Path, kept: Kept, seeds: Path) -> str:
    """Merge the kept inputs; return the reason if that fails. Then the next run has more inputs than it needs."""
    try:
        merge(program, kept, seeds)
    except CaseError as error:
        return str(error)
    return ""


def build_for(harness: Harness, trees: Sequence[str], report: Report) -> Build:
    """Return the build that a harness runs in, or one with the headers of the last tree but those that it compiles.

    Where no build of an earlier tree is fit, the last one is compiled, which takes minutes. Raises BuildError.
    """
    if harness.flavor:
        return ensure_build(trees[-1], FLAVORS[harness.flavor], report)
    for tree in reversed(trees):
        changed = git.changed_files(tree, trees[-1])
        fit = all(path in harness.files or path.endswith(_NO_HEADERS) for path in changed)
        if fit and (build := find_build(tree, _FLAVOR)):
            return build
    return ensure_build(trees[-1], _FLAVOR, report)


def compiled(harnesses: Sequence[Harness], trees: Sequence[str], report: Report, say: Report) -> dict[Harness, Path]:
    """Return the programs of the harnesses that can test the last tree; say of each other one why not.

    Raises CaseError if there is none, and SourceError.
    """
    programs = {}
    for harness in harnesses:
        reason = harness.lacks(trees[-1])
        if not reason:
            report(f"compiling the harness {harness.name}")
            try:
                build = build_for(harness, trees, report)
                programs[harness] = build_harness(build, harness.name, trees[-1])
            except BuildError as error:
                reason = str(error)
        if reason:
            say(f"harness {harness.name} left out: {reason}")
    if not programs:
        raise CaseError("no harness can test this series; give another one with --series or --arm")
    return programs

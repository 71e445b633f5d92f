"""The run over mutants: the series against itself first, then one mutant after another, until there are enough."""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Final

from fuzz.campaign.canaries import plant_all, require_caught
from fuzz.campaign.direction.direction import directed_workloads
from fuzz.campaign.stop import INTERRUPTED
from fuzz.errors import CompileError, ServerError
from fuzz.execution.exchanges import Abandoned
from fuzz.execution.executor import Executor
from fuzz.execution.judging import assignments
from fuzz.execution.source_database import SourceDatabase
from fuzz.mutation.duel import case_ids, duel, false_alarms
from fuzz.mutation.mutants import MutableLine, Mutant, drawn, mutable_lines, text_of
from fuzz.mutation.own_tests import failed_tests, run_sound, suites_of
from fuzz.mutation.result import SERVER, DuelResult, Kill, MutantResult, seconds_allowed
from fuzz.mutation.store import Control, MutantStore
from fuzz.servers import Report
from fuzz.servers.arm import ArmSpec, build_arms, open_arms
from fuzz.servers.arm_settings import texts
from fuzz.servers.build import Build, discard_build, ensure_build, have_equal_programs, trial_compiler
from fuzz.servers.cluster import Cluster
from fuzz.servers.limits import time_limit
from fuzz.servers.series import Patch, Series, apply_series
from fuzz.servers.trial_compiler import TrialCompiler
from fuzz.sources.source import UserInput
from oracles.model.oracle import all_oracles

MUTANT: Final = "mutant"  # name of an arm
_SHARE: Final = 3  # at most one of so many judged mutants is of the same patch


@dataclass(frozen=True, slots=True)
class Wanted:
    """The user's options."""

    seed: int  # of the draw, and of the cases
    mutants: int  # judged ones
    cases: int  # maximal number of cases for one mutant
    duel_seconds: float  # after which the duel of a mutant begins no further case
    seconds: float  # after which no further mutant is judged
    generators: Sequence[str]  # empty: all generators and sources of a campaign


@dataclass(frozen=True)
class Subject:
    """The arm whose lines are mutated, and the part of its series that the reference arm lacks."""

    spec: ArmSpec
    trees: tuple[str, ...]  # after each prefix of that part, first the one without it
    patches: tuple[Patch, ...]

    @property
    def identity(self) -> tuple[str, ...]:
        """Return all of the subject that results depend on, as text."""
        neutral = ",".join(patch.name for patch in self.patches if patch.plan_neutral)
        series = (neutral, repr(self.spec.series.features))
        return (*self.trees, self.spec.flavor.name, *series, *texts(self.spec.settings))

    @cached_property
    def lines(self) -> tuple[MutableLine, ...]:
        """Return the lines of all patches that have mutants. Raises SourceError."""
        return mutable_lines(self.trees, [patch.name for patch in self.patches])

    def with_mutant(self, mutant: Mutant) -> ArmSpec:
        """Return the arm with a mutant. It keeps plans if the mutated patch does."""
        neutral = next(patch.plan_neutral for patch in self.patches if patch.name == mutant.patch)
        patch = Patch(f"{mutant.key}.patch", mutant.diff.encode(), keeps_plans=neutral)
        series = self.spec.series + Series(self.spec.series.name, (patch,), self.spec.series.made_for)
        return replace(self.spec, name=MUTANT, series=series)


def subject_of(specs: Sequence[ArmSpec]) -> Subject:
    """Return the last arm, with the patches that the first one lacks, if there are two or more. Raises SourceError."""
    spec = specs[-1]
    trees = apply_series(spec.base.tree, spec.series)
    reference = apply_series(specs[0].base.tree, specs[0].series) if len(specs) > 1 else trees[:1]
    common = next((n for n, pair in enumerate(zip(reference, trees, strict=False)) if len(set(pair)) > 1), None)
    start = min(len(reference), len(trees)) if common is None else common
    own = max(0, start - 1)
    return Subject(spec, trees[own:], spec.series.patches[own:])


def limited(mutants: Iterable[Mutant], patches: int, wanted: int, results: Sequence[MutantResult]) -> Iterator[Mutant]:
    """Yield mutants until `wanted` are judged in `results`, which grow meanwhile; at most a third of one patch.

    With one or two `patches`, it is all, or half.
    """
    most = math.ceil(wanted / min(_SHARE, patches))
    for mutant in mutants:
        judged = Counter(result.mutant.patch for result in results if result.judged)
        if judged.total() >= wanted:
            return
        if judged[mutant.patch] < most:
            yield mutant


class MutationRun:
    """A run over the mutants of a subject."""

    def __init__(
        self,
        subject: Subject,
        wanted: Wanted,
        store: MutantStore,
        report: Report,
        say: Callable[[str], None],
        stop: Callable[[], bool],
    ) -> None:
        """Soon after `stop` returns true, the run ends, without the mutant at work."""
        self._subject = subject
        self._wanted = wanted
        self._store = store
        self._report = report
        self._say = say
        self._stop = stop
        ((self._sound, _),) = build_arms([subject.spec], report)
        self._suites = suites_of(subject.trees[0], subject.trees[-1])
        self.results: list[MutantResult] = []  # of the mutants of this draw, in its order

    def run(self) -> str:
        """Judge mutants, and return the reason for the end in a few words. Raises PgduelError, CanaryMissed."""
        until = time.monotonic() + self._wanted.seconds
        compiler = None
        try:
            control = self._store.control or self._control()
            lines = self._subject.lines
            mutants = drawn(lines, self._subject.trees[-1], self._wanted.seed)
            with ExitStack() as compiling:
                for mutant in limited(mutants, len({line.patch for line in lines}), self._wanted.mutants, self.results):
                    result = self._store.results.get(mutant.key)
                    if result is None or not result.holds(self._wanted.duel_seconds):
                        if time.monotonic() > until:
                            return "time is up"
                        compiler = compiler or compiling.enter_context(trial_compiler(self._sound, self._report))
                        result = self._judged(mutant, control, compiler)
                        if self._stop():
                            return INTERRUPTED
                        self._store.add(result)
                        self._say(f"{mutant.file}:{mutant.line}: {result.outcome}{_time_of(result)}")
                    self.results.append(result)
        except Abandoned:
            return INTERRUPTED
        return "all mutants done"

    def _control(self) -> Control:
        """Plant canaries, and hold the series against itself and its own tests. Raises CanaryMissed."""
        spec = self._subject.spec
        with open_arms([spec, replace(spec, name=MUTANT)], self._report, allow_same_build=True) as arms:
            self._report("planting bugs to prove the oracles")
            with Executor(arms, "canaries") as executor:
                require_caught(list(plant_all(assignments(all_oracles(), arms), executor, arms)))
            workloads = dict.fromkeys(self._wanted.generators, 1)
            if not workloads:
                with closing(SourceDatabase(arms[0], "default", UserInput())) as target:
                    direction, _ = directed_workloads(target, list(pairwise(self._subject.trees)))
                workloads = dict(direction.cases)
            self._report(f"{spec.name} against itself")
            began = time.monotonic()
            alarms = false_alarms(arms, case_ids(self._wanted.seed, workloads, self._wanted.cases), self._stop)
            seconds = time.monotonic() - began
        self._report(f"the series' own tests: {', '.join(self._suites) or 'none'}")
        sound = run_sound(self._sound, self._suites)
        control = Control(workloads, alarms, seconds, sound)
        self._store.set_control(control)
        return control

    def _judged(self, mutant: Mutant, control: Control, compiler: TrialCompiler) -> MutantResult:
        """Return the result of a mutant. Raises Abandoned, BuildError, ServerError."""
        judged = sum(each.judged for each in self.results)
        self._report(f"{judged} of {self._wanted.mutants} mutants judged, next {mutant.file}:{mutant.line}")
        trial = compiler.trial(mutant.file, text_of(mutant, self._subject.trees[-1]))
        if trial.error or trial.equal:
            return MutantResult(mutant, invalid=trial.error)
        return self._built(mutant, control)

    def _built(self, mutant: Mutant, control: Control) -> MutantResult:
        """Return the result of a mutant whose file compiles. Raises Abandoned, BuildError, ServerError."""
        spec = self._subject.with_mutant(mutant)
        tree = apply_series(spec.base.tree, spec.series)[-1]
        try:
            build = ensure_build(tree, spec.flavor, self._report, label=MUTANT)
            if have_equal_programs(build, self._sound):
                return MutantResult(mutant)
            with time_limit(build, seconds_allowed(control.seconds)):
                duel = self._duel(spec, control)
            return MutantResult(mutant, duel=duel, failed_tests=self._failed_tests(build, control))
        except CompileError as error:
            return MutantResult(mutant, invalid=str(error).partition("; see ")[0])
        finally:
            discard_build(tree, spec.flavor)

    def _duel(self, spec: ArmSpec, control: Control) -> DuelResult:
        """Return the result of the duel. A server that stays down in a second try, too, is a finding."""
        began = time.monotonic()
        limit = self._wanted.duel_seconds
        for left in (1, 0):
            cases = case_ids(self._wanted.seed, control.workloads, self._wanted.cases)
            try:
                with open_arms([self._subject.spec, spec], self._report) as arms:
                    return duel(arms, cases, frozenset(control.false_alarms), limit, self._stop)
            except ServerError as error:
                self._require_sound_server()
                if not left:
                    seconds = time.monotonic() - began
                    return DuelResult(0, 0, Kill(SERVER, str(error), "", again=True), seconds, limit)
        raise AssertionError

    def _failed_tests(self, build: Build, control: Control) -> tuple[str, ...]:
        failed = tuple(failed_tests(build, self._suites, control.tests))
        if failed:
            self._require_sound_server()
        return failed

    def _require_sound_server(self) -> None:
        """Start a server without a mutation. Raises ServerError if the machine is the reason for a failure."""
        with Cluster(self._sound, self._subject.spec.name):
            return


def _time_of(result: MutantResult) -> str:
    """Return the seconds of a result's duel, for a message."""
    return "" if result.duel is None or result.duel.seconds is None else f", duel of {result.duel.seconds:.0f} s"

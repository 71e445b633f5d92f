"""`pgduel isolation`: a comparison of arms on PostgreSQL's isolation specs."""

import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from difflib import unified_diff
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Final

import typer

from fuzz import workdir
from fuzz.campaign.canaries import TRIES, PlantedBug, counts, require_caught
from fuzz.campaign.catalog import opened_new, require_store
from fuzz.campaign.counters import KINDS, Counters
from fuzz.campaign.plan import Plan
from fuzz.campaign.stop import interruptible
from fuzz.campaign.store import SpecFinding, Store, add_spec_finding, doubt_of, spec_file, spec_findings
from fuzz.cli import options
from fuzz.cli.app import app, console, say, write_json
from fuzz.engines.isolation import (
    CANARY,
    FAULTS,
    NAME,
    PERTURBED,
    SETTINGS,
    Spec,
    Tester,
    judge,
    read_spec,
    reproducer,
    specs_of,
)
from fuzz.errors import CaseError
from fuzz.report.terminal import Display, display
from fuzz.servers.arm import features_of, open_arms
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.flavor import DEFAULT_FLAVOR
from oracles.model.case import Case, Step
from oracles.model.finding import Finding
from oracles.model.oracle import Unstable

_UNSTABLE: Final = KINDS[Unstable]
_SHOWN: Final = 40  # lines of a reproducer's header


@app.command()
def isolation(
    *,
    specs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SPEC]...", help="Names of specs, or files. Default: all specs of the base.", show_default=False
        ),
    ] = None,
    minutes: Annotated[float, options.minutes_option("Minutes to run.", least=0.1)] = 5.0,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the order.")] = 1,
    base: options.Base = None,
    series: options.SeriesOption = None,
    repo: options.Repo = None,
    commits: options.Range = None,
    arm: options.ArmOption = None,
    flavor: options.FlavorOption = DEFAULT_FLAVOR,
    manifest: options.Manifest = None,
    setting: options.SetOption = None,
    json_file: options.JsonFile = None,
) -> None:
    """Run PostgreSQL's isolation specs on all arms, under their own and under perturbed settings, and compare.

    First, planted bugs in the last arm must be found. isolationtester runs all permutations of a spec. A spec with
    different output runs again, several times. Each difference becomes a spec file that names its settings: `pgduel
    isolation FILE` runs it again with these. A difference that is not reproducible is a doubt.
    """
    require_store()
    arms = ArmOptions.given(base, series, repo, commits, arm, flavor, manifest, setting)
    plan = Plan(seed, {NAME: 1}, minutes, None, stop_at_first=False, arms=arms)
    files = [read_spec(Path(name)) for name in specs or () if Path(name).is_file()]
    names = [name for name in specs or () if not Path(name).is_file()]
    with display(console, minutes * 60) as shown:
        wanted = arms.specs(shown.progress)
        same = arms.same_build_wanted
        with open_arms(wanted, shown.progress, allow_same_build=same, settings=SETTINGS) as running:
            testers = [Tester(each) for each in running]
            named = _named(names, running[0].trees[0], by_default=not files)
            specs_drawn = [*files, *_drawn(_built(named, testers, shown), seed)]
            drawn = [replace(spec, features=features_of(running)) for spec in specs_drawn]
            with opened_new(shown.say) as store:
                store.begin(plan, options.facts_of(wanted, running))
                run = _Run(testers, shown, arms.command_line(), store)
                with ThreadPoolExecutor(len(testers)) as pool:
                    planted = run.plant(pool)
                    if all(each.caught_in for each in planted):
                        run.execute(drawn, minutes * 60, pool)
                findings = spec_findings(store)
    executed, unstable = run.counters.cases[NAME], run.counters.of_kind(_UNSTABLE)
    counted = {"seed": seed, "executed": executed, "unstable": unstable, "canaries": counts(planted)}
    write_json(json_file, counted | {"findings": _json(findings)})
    require_caught(planted)
    say(f"{executed} of {len(drawn)} specs and settings run, {unstable} unstable, {len(findings)} findings")
    raise typer.Exit(1 if findings else 0)


def _json(findings: Sequence[SpecFinding]) -> list[dict[str, Any]]:
    return [
        {
            "fingerprint": found.finding.fingerprint,
            "summary": found.finding.summary,
            "specs": found.count,
            "reproducer": str(found.spec),
        }
        for found in findings
    ]


def _named(names: Sequence[str], tree: str, *, by_default: bool) -> tuple[Spec, ...]:
    """Return the named specs of the tree, or all if `by_default`. Raises CaseError."""
    known = {spec.name: spec for spec in specs_of(tree)}
    if unknown := [name for name in names if name not in known]:
        raise CaseError(f"no isolation spec is called {unknown[0]!r}; give one of {', '.join(known)}")
    return tuple(known[name] for name in names) if names or not by_default else tuple(known.values())


def _built(specs: Sequence[Spec], testers: Sequence[Tester], shown: Display) -> list[Spec]:
    """Return the specs whose modules all arms have, and print the number of others."""
    built = [spec for spec in specs if not any(tester.lacks(spec) for tester in testers)]
    if lacking := len(specs) - len(built):
        shown.say(f"{lacking} specs are left out: their modules are not built")
    return built


def _drawn(specs: Sequence[Spec], seed: int) -> Iterator[Spec]:
    """Yield each spec under each setting: first all specs unchanged, then the others in an order set by the seed."""
    rng = random.Random(f"{seed}/isolation")
    first, *others = PERTURBED
    yield from (replace(spec, modes=first) for spec in rng.sample(specs, len(specs)))
    rest = [replace(spec, modes=modes) for spec in specs for modes in others]
    yield from rng.sample(rest, len(rest))


@dataclass(slots=True)
class _Run:
    """The executed specs and their results."""

    testers: Sequence[Tester]
    shown: Display
    options: str  # command-line options that name the arms
    store: Store
    counters: Counters = field(default_factory=Counters)

    def plant(self, pool: Executor) -> tuple[PlantedBug, ...]:
        """Plant bugs in the last arm, again if they are missed at once; return the outcomes."""
        *others, suspect = self.testers
        names = self.testers[0].arm.name, suspect.arm.name
        planted = []
        for fault, needs_another_arm in FAULTS.items():
            if needs_another_arm and not others:
                continue
            self.shown.progress(f"planting bugs to prove the comparison: {fault}")
            testers = [*others, Tester(suspect.arm, fault)]
            tries = (judge(CANARY, testers, pool).findings for _ in range(TRIES))
            caught = (number for number, found in enumerate(tries, 1) if any(each.arms == names for each in found))
            planted.append(PlantedBug(NAME, fault, next(caught, None)))
        self.store.record_canaries(counts(planted))
        return tuple(planted)

    def execute(self, specs: Sequence[Spec], seconds: float, pool: Executor) -> None:
        began = time.monotonic()
        with interruptible() as interrupt:
            for spec in specs:
                if interrupt or time.monotonic() > began + seconds:
                    break
                self.shown.progress(f"{spec.name}, {spec.modes}; {self.counters.cases[NAME]} run")
                judged = judge(spec, self.testers, pool, lambda: bool(interrupt))
                for finding in judged.findings:
                    self._found(spec, finding)
                for doubt in judged.doubts:
                    self._doubted(spec, doubt)
                self.counters.cases[NAME] += 1
                self.counters.seconds = time.monotonic() - began
                self.store.progress(self.counters, {})

    def _found(self, spec: Spec, finding: Finding) -> None:
        path = self.store.directory / f"{finding.fingerprint}.spec"
        content = self._reproducer(spec, path, finding.summary, finding.arms, (finding.expected, finding.actual))
        if add_spec_finding(self.store, finding, _origin(spec), path, content.encode()):
            workdir.write(path, content.encode())
            self.shown.say(f"finding {finding.fingerprint} in {spec.name} ({spec.modes}): {finding.summary}\n  {path}")

    def _doubted(self, spec: Spec, verdict: Unstable) -> None:
        """Count a doubt, and store it with its spec, unless there are enough of its kind."""
        self.counters.verdicts[NAME, "", _UNSTABLE] += 1
        self.counters.reasons[NAME, "", _UNSTABLE, verdict.reason] += 1
        doubt = doubt_of(NAME, verdict, _origin(spec), Case(NAME, (), ()))
        path = self.store.directory / spec_file(doubt)
        content = self._reproducer(spec, path, verdict.reason, ("expected", "seen"), verdict.sides)
        if self.store.add_doubt(replace(doubt, case=Case(NAME, (), (Step(content),)))):
            workdir.write(path, content.encode())
            self.shown.say(f"doubt {doubt.name} in {spec.name} ({spec.modes}): {verdict.reason}\n  {path}")

    def _reproducer(self, spec: Spec, path: Path, summary: str, titles: tuple[str, str], sides: tuple[str, str]) -> str:
        """Return the spec with the difference of both sides in its header."""
        before, after = (side.splitlines() for side in sides)
        lines = unified_diff(before, after, *titles, lineterm="", n=3)
        comment = [summary, f"Judge it: {workdir.COMMAND} isolation {quote(str(path))}{self.options}", *lines]
        return reproducer(spec, comment[:_SHOWN])


def _origin(spec: Spec) -> str:
    return f"{spec.name} under {spec.modes}"

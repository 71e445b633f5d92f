"""`pgduel isolation`: a comparison of arms on PostgreSQL's isolation specs."""

import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Final

import typer

from fuzz import workdir
from fuzz.campaign.canaries import TRIES, PlantedBug, counts, require_caught
from fuzz.campaign.catalog import opened_new, require_store
from fuzz.campaign.counters import Counters
from fuzz.campaign.plan import Plan
from fuzz.campaign.stop import interruptible
from fuzz.campaign.store import SpecFinding, Store, add_spec_finding, spec_findings
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
from oracles.model.finding import Finding

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
    isolation FILE` runs it again with these.
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
    counted = {"seed": seed, "played": run.executed, "unstable": run.unstable, "canaries": counts(planted)}
    write_json(json_file, counted | {"findings": _json(findings)})
    require_caught(planted)
    say(f"{run.executed} of {len(drawn)} specs and settings run, {run.unstable} unstable, {len(findings)} findings")
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
    executed: int = 0
    unstable: int = 0

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
                self.shown.progress(f"{spec.name}, {spec.modes}; {self.executed} run")
                judged = judge(spec, self.testers, pool)
                for finding in judged.findings:
                    self._found(spec, finding)
                self.unstable += judged.unstable
                self.executed += 1
                spent = time.monotonic() - began
                self.store.progress(Counters(cases=Counter({NAME: self.executed}), seconds=spent), {})

    def _found(self, spec: Spec, finding: Finding) -> None:
        path = self.store.directory / f"{finding.fingerprint}.spec"
        lines = unified_diff(
            finding.expected.splitlines(), finding.actual.splitlines(), *finding.arms, lineterm="", n=3
        )
        comment = [finding.summary, f"Judge it: {workdir.COMMAND} isolation {quote(str(path))}{self.options}", *lines]
        content = reproducer(spec, comment[:_SHOWN]).encode()
        if add_spec_finding(self.store, finding, f"{spec.name} under {spec.modes}", path, content):
            workdir.write(path, content)
            self.shown.say(f"finding {finding.fingerprint} in {spec.name} ({spec.modes}): {finding.summary}\n  {path}")

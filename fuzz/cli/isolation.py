"""`pgduel isolation`: PostgreSQL's isolation specs on all arms, held against one another."""

import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from difflib import unified_diff
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from fuzz import workdir
from fuzz.campaign.catalog import new_campaign, opened
from fuzz.campaign.plan import Plan
from fuzz.campaign.spec_findings import SpecFinding, add_spec_finding, spec_findings
from fuzz.campaign.stop import interruptible
from fuzz.campaign.store import Store
from fuzz.campaign.tally import Tally
from fuzz.cli import options
from fuzz.cli.app import app, console, say, write_json
from fuzz.engines.isolation import (
    PERTURBED,
    REPEATED,
    SETTINGS,
    Played,
    Spec,
    Tester,
    read_spec,
    reproducer,
    settled,
    specs_of,
)
from fuzz.errors import CaseError
from fuzz.report.terminal import Display, display
from fuzz.servers.arm import open_arms
from oracles.crash import crash_origin
from oracles.finding import Finding, pairs_of

NAME: Final = "isolation"
_SHOWN: Final = 40  # lines that a reproducer says of itself


@app.command()
def isolation(
    *,
    specs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SPEC]...", help="Specs by name, or files. Default: all of the base.", show_default=False
        ),
    ] = None,
    minutes: Annotated[float, typer.Option(min=0.1, metavar="N", help="How long to play.")] = 5.0,
    seed: Annotated[int, typer.Option(metavar="N", help="Decides the order.")] = 1,
    base: options.Base = None,
    series: options.SeriesOption = None,
    repo: options.Repo = None,
    commits: options.Range = None,
    arm: options.ArmOption = None,
    flavor: options.FlavorOption = options.DEFAULT_FLAVOR,
    json_file: options.JsonFile = None,
) -> None:
    """Play PostgreSQL's isolation specs on all arms, under its own and under perturbed settings, and compare.

    All permutations of a spec are played by isolationtester. What differs is played again several times over. A
    difference becomes a spec file that names its settings: `pgduel isolation FILE` plays it again, with those.
    """
    arms = options.ArmOptions.given(base, series, repo, commits, arm, flavor)
    plan = Plan(seed, (NAME,), minutes, None, stop_at_first=False, arms=arms.to_json())
    files = [read_spec(Path(name)) for name in specs or () if Path(name).is_file()]
    names = [name for name in specs or () if not Path(name).is_file()]
    with display(console, minutes * 60) as shown:
        wanted = arms.specs(shown.progress)
        same = arms.same_build_wanted
        with open_arms(wanted, shown.progress, allow_same_build=same, settings=SETTINGS) as running:
            testers = [Tester(each) for each in running]
            named = _named(names, running[0].trees[0], by_default=not files)
            drawn = [*files, *_drawn(_built(named, testers, shown), seed)]
            with opened(new_campaign()) as store:
                store.begin(plan.to_json(), options.arms_json(wanted, [each.build.key for each in running]))
                run = _Run(testers, shown, arms.command_line(), store)
                run.play(drawn, minutes * 60)
                findings = spec_findings(store)
    write_json(json_file, {"seed": seed, "played": run.played, "unstable": run.unstable, "findings": _json(findings)})
    say(f"{run.played} of {len(drawn)} specs and settings played, {run.unstable} unstable, {len(findings)} findings")
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
    """Return the specs of the tree that are named; where none is, all by default. Raises CaseError."""
    known = {spec.name: spec for spec in specs_of(tree)}
    if unknown := [name for name in names if name not in known]:
        raise CaseError(f"no isolation spec is called {unknown[0]!r}; there are: {', '.join(known)}")
    return tuple(known[name] for name in names) if names or not by_default else tuple(known.values())


def _built(specs: Sequence[Spec], testers: Sequence[Tester], shown: Display) -> list[Spec]:
    """Return the specs of what all arms have built; say how many others there are."""
    built = [spec for spec in specs if not any(tester.lacks(spec) for tester in testers)]
    if lacking := len(specs) - len(built):
        shown.say(f"{lacking} specs are of modules that are not built")
    return built


def _drawn(specs: Sequence[Spec], seed: int) -> Iterator[Spec]:
    """Yield each spec under each of the settings: first all as they are, then the others as the seed has it."""
    rng = random.Random(f"{seed}/isolation")
    first, *others = PERTURBED
    yield from (replace(spec, modes=first) for spec in rng.sample(specs, len(specs)))
    rest = [replace(spec, modes=modes) for spec in specs for modes in others]
    yield from rng.sample(rest, len(rest))


@dataclass(slots=True)
class _Run:
    """The specs that were played, and what came of it."""

    testers: Sequence[Tester]
    shown: Display
    options: str  # of the command line, that name the arms
    store: Store
    played: int = 0
    unstable: int = 0

    def play(self, specs: Sequence[Spec], seconds: float) -> None:
        began = time.monotonic()
        with interruptible() as interrupt, ThreadPoolExecutor(len(self.testers)) as pool:
            for spec in specs:
                if interrupt or time.monotonic() > began + seconds:
                    break
                self.shown.progress(f"{spec.name}, {spec.modes}; {self.played} played")
                self._judge(spec, pool)
                self.played += 1
                spent = time.monotonic() - began
                self.store.progress(Tally(cases=Counter({NAME: self.played}), seconds=spent), {})

    def _judge(self, spec: Spec, pool: ThreadPoolExecutor) -> None:
        seen = [list(pool.map(lambda tester: tester.play(spec), self.testers))]
        reference, *others = seen[0]
        names = [tester.arm.name for tester in self.testers]
        crashes = {name: played.crash for name, played in zip(names, seen[0], strict=True) if played.crash}
        for pair in pairs_of(names, crashes):
            crash = crashes[pair[1]]
            origin = crash_origin(crash)
            self._found(spec, Finding(NAME, pair, origin, None, f"{pair[1]} crashes: {origin}", "no crash", crash))
        if crashes or all(played.output == reference.output for played in others):
            return
        for _ in range(REPEATED):
            seen.append(list(pool.map(lambda tester: tester.play(spec), self.testers)))
        for number, name in enumerate(names[1:], start=1):
            self._compare(spec, (names[0], name), [each[0] for each in seen], [each[number] for each in seen])

    def _compare(
        self, spec: Spec, arms: tuple[str, str], reference: Sequence[Played], suspect: Sequence[Played]
    ) -> None:
        ours, theirs = ([played.output for played in side] for side in (reference, suspect))
        if settled(ours, theirs):
            summary = f"{arms[1]} prints another result of {spec.name} than {arms[0]}"
            self._found(spec, Finding(NAME, arms, spec.name, None, summary, ours[0], theirs[0]))
        elif ours != theirs:
            self.unstable += 1

    def _found(self, spec: Spec, finding: Finding) -> None:
        path = self.store.directory / f"{finding.fingerprint}.spec"
        if add_spec_finding(self.store, finding, f"{spec.name} under {spec.modes}", path):
            lines = unified_diff(
                finding.expected.splitlines(), finding.actual.splitlines(), *finding.arms, lineterm="", n=3
            )
            said = [finding.summary, f"Judge it: ./pgduel isolation {path}{self.options}", *lines]
            workdir.write(path, reproducer(spec, said[:_SHOWN]))
            self.shown.say(f"finding {finding.fingerprint} in {spec.name} ({spec.modes}): {finding.summary}\n  {path}")

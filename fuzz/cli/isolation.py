"""`pgduel isolation`: PostgreSQL's isolation specs on all arms, held against one another."""

import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from difflib import unified_diff
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from fuzz.campaign.catalog import new_campaign
from fuzz.campaign.stop import interruptible
from fuzz.cli import options
from fuzz.cli.app import app, console, say, write_json
from fuzz.engines.isolation import PERTURBED, REPEATED, Played, Spec, Tester, read_spec, reproducer, settled, specs_of
from fuzz.errors import CaseError
from fuzz.report.terminal import Display, display
from fuzz.servers.arm import open_arms
from oracles.crash import crash_origin

_SHOWN: Final = 40  # lines of a difference


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
    files = [read_spec(Path(name)) for name in specs or () if Path(name).is_file()]
    with display(console, minutes * 60) as shown:
        wanted = arms.specs(shown.progress)
        with open_arms(wanted, shown.progress, allow_same_build=arms.same_build_wanted) as opened:
            named = _named(
                [name for name in specs or () if not Path(name).is_file()], opened[0].trees[0], by_default=not files
            )
            drawn = [*files, *_drawn(named, seed)]
            run = _Run([Tester(each) for each in opened], shown, arms.command_line())
            run.play(drawn, minutes * 60)
    write_json(json_file, {"seed": seed, "played": run.played, "unstable": run.unstable, "findings": run.findings})
    say(
        f"{run.played} of {len(drawn)} specs and settings played, {run.unstable} unstable, {len(run.findings)} findings"
    )
    raise typer.Exit(1 if run.findings else 0)


def _named(names: Sequence[str], tree: str, *, by_default: bool) -> tuple[Spec, ...]:
    """Return the specs of the tree that are named; where none is, all by default. Raises CaseError."""
    known = {spec.name: spec for spec in specs_of(tree)}
    if unknown := [name for name in names if name not in known]:
        raise CaseError(f"no isolation spec is called {unknown[0]!r}; there are: {', '.join(known)}")
    return tuple(known[name] for name in names) if names or not by_default else tuple(known.values())


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
    played: int = 0
    unstable: int = 0
    findings: list[dict[str, Any]] = field(default_factory=list)
    directory: Path | None = None

    def play(self, specs: Sequence[Spec], seconds: float) -> None:
        until = time.monotonic() + seconds
        with interruptible() as interrupt, ThreadPoolExecutor(len(self.testers)) as pool:
            for spec in specs:
                if interrupt or time.monotonic() > until:
                    break
                self.shown.progress(f"{spec.name}, {spec.modes}; {self.played} played, {len(self.findings)} findings")
                self._judge(spec, pool)
                self.played += 1

    def _judge(self, spec: Spec, pool: ThreadPoolExecutor) -> None:
        seen = [list(pool.map(lambda tester: tester.play(spec), self.testers))]
        reference, *others = seen[0]
        for tester, played in zip(self.testers, seen[0], strict=True):
            if played.crash:
                self._found(spec, tester, f"{tester.arm.name} crashes: {crash_origin(played.crash)}", played.crash)
        if any(played.crash for played in seen[0]) or all(played.output == reference.output for played in others):
            return
        for _ in range(REPEATED):
            seen.append(list(pool.map(lambda tester: tester.play(spec), self.testers)))
        for number, tester in enumerate(self.testers[1:], start=1):
            self._compare(spec, tester, [each[0] for each in seen], [each[number] for each in seen])

    def _compare(self, spec: Spec, tester: Tester, reference: Sequence[Played], suspect: Sequence[Played]) -> None:
        ours, theirs = ([played.output for played in side] for side in (reference, suspect))
        if settled(ours, theirs):
            names = (self.testers[0].arm.name, tester.arm.name)
            lines = unified_diff(ours[0].splitlines(), theirs[0].splitlines(), *names, lineterm="", n=3)
            self._found(spec, tester, f"{names[1]} prints another result than {names[0]}", "\n".join(lines))
        elif ours != theirs:
            self.unstable += 1

    def _found(self, spec: Spec, tester: Tester, summary: str, details: str) -> None:
        self.directory = self.directory or new_campaign()
        path = self.directory / f"{spec.name}-{spec.modes}-{tester.arm.name}.spec"
        said = [summary, f"Judge it: ./pgduel isolation {path}{self.options}", *details.splitlines()[:_SHOWN]]
        path.write_text(reproducer(spec, said))
        self.findings.append({"spec": spec.name, "modes": spec.modes, "summary": summary, "reproducer": str(path)})
        self.shown.say(f"finding in {spec.name} ({spec.modes}): {summary}\n  {path}")

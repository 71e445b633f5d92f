"""Seconds until the default run finds injected bugs, directed or with --even.

python -m tests.injected_bugs.search_times FILE [--even] [--guided ENGINE] [--seed N] [BUG ...]

Each bug is searched for by `pgduel fuzz` with all workloads, on the server with the bug and the one without it. With
`--guided`, an engine searches with all generators, in flavor guided, without a corpus. Time is directed as for the
author of the code in which the bug is: by the patches of the series below the bug if they change the file of the bug,
otherwise by all functions in the directory of that file. The difference that is the bug directs nothing. Findings of
other causes end a campaign, too; the next one has another seed, and its time is added. A search ends after 1200
seconds of CPU time, which two processors have in ten minutes. No canaries are planted, and findings are not reduced.
FILE gets a line of JSON for each search. A search that it has is repeated only if it ended earlier without a finding.
At the end, the median time of all searches in FILE is printed. A bug that was not found counts as later than all
others. `search_times.jsonl` beside this file has the searches so far, on busy processors. Those with --even ended
after about 130 s or 75 s, and are from before ranges of cases doubled (fuzz/campaign/schedule.py). Directed ones
ended after about 150 s or 290 s. `search_times_undirected.jsonl` has searches by the last version without a direction
(b6774cc2), for bugs that were injected then or added to partitions/ and rescans/ soon afterwards. They ended after
about 105 to 130 s.
"""

import json
import math
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final
from unittest import mock

import typer

from fuzz.campaign.direction.direction import Direction, directed_workloads
from fuzz.campaign.plan import Plan
from fuzz.cli.fuzz import new_plan
from fuzz.cli.run_campaign import run_campaign
from fuzz.engines.engine import EngineName
from fuzz.generators.generator import all_generators
from fuzz.report.console import Console
from fuzz.report.summary import Summary
from fuzz.servers import git
from fuzz.servers.arm import Arm
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.flavor import DEFAULT_FLAVOR, GUIDED
from fuzz.sources.source import SourceContext, UserInput
from tests.injected_bugs.injected_bug import Bug, all_bugs, sound_patches

_LEAST: Final = 30.0  # seconds of a campaign


@dataclass(frozen=True, slots=True)
class Search:
    """The result of a search: the oracle that found the bug, or none, with the time and the cases until then."""

    bug: str
    even: bool
    oracle: str | None
    generator: str | None
    seconds: float
    cpu_seconds: float  # of the servers and of pgduel, all workers together
    cases: int
    statements: int
    others: tuple[str, ...]  # summaries of findings that are not the bug
    guided: EngineName | None = None  # the engine of a search in flavor guided, with generators only
    seed: int = 1  # of the first campaign; later ones have the next seeds


def directing(bug: Bug, arms: Sequence[Arm]) -> list[tuple[str, str]]:
    """Return the trees before and after each patch that directs the time. Raises SourceError."""
    sound, bugged = arms
    (file, *_) = git.changed_files(*bugged.trees[-2:])
    patches = sound_patches(bug)
    series = list(pairwise(sound.trees))[-sum(patch.parent == patches[-1].parent for patch in patches) :]
    if any(file in git.changed_files(*pair) for pair in series):
        return series
    base = sound.trees[0]
    return [(base, without(base, str(Path(file).parent)))]


def without(tree: str, directory: str) -> str:
    """Return the tree without a directory. Raises SourceError."""
    with git.temporary_index(tree) as index:
        removing = ("rm", "-r", "--cached", "--quiet", "--", directory)
        git.output("--git-dir", git.repository(), *removing, index=index, failing=f"cannot remove {directory}")
        return git.write_tree(index)


def search_for(
    bug: Bug, *, even: bool, guided: EngineName | None, first_seed: int, cpu_seconds: float, workers: int
) -> Search:
    """Return the result of campaigns until one finds the bug, or until about so many seconds of CPU time are spent."""
    sound = ",".join(map(str, sound_patches(bug)))
    flavor = GUIDED if guided else DEFAULT_FLAVOR
    options = ArmOptions(arms=(f"patched={sound}", f"bugged={sound},{bug.patch}"), flavor=flavor)
    engine = guided or EngineName.SEEDED
    seconds, cpu, cases, statements, others = 0.0, 0.0, 0, 0, list[str]()
    for seed in count(first_seed):
        plan = new_plan(options, UserInput(), seed=seed, stop_at_first=True, even=even, engine=engine)
        summary = _campaign(replace(plan, reductions=0), cpu_seconds - cpu, workers)
        counters = summary.counters
        seconds += counters.seconds
        cpu += counters.cpu_seconds
        cases += counters.cases.total()
        statements += counters.statements_judged
        found = next((each for each in summary.findings if not each.finding.shown_by_all), None)
        others += [each.finding.summary for each in summary.findings if each.finding.shown_by_all]
        if found or cpu > cpu_seconds - _LEAST:
            break
    oracle, case = (found.finding.oracle, found.case_id) if found else (None, None)
    spent = (round(seconds, 1), round(cpu, 1))
    return Search(bug.name, even, oracle, case, *spent, cases, statements, tuple(others), guided, first_seed)


def _campaign(plan: Plan, cpu_seconds: float, workers: int) -> Summary:
    """Run a campaign until it has a finding, or until so many seconds of CPU time are spent."""
    limited = replace(plan, minutes=None, cpu_minutes=max(_LEAST, cpu_seconds) / 60)
    return run_campaign(None, limited, workers, Console(stderr=True))


def main(
    file: Path,
    names: Annotated[list[str] | None, typer.Argument(metavar="BUG")] = None,
    *,
    even: bool = False,
    guided: EngineName | None = None,
    seed: int = 1,
    cpu_seconds: float = 1200,
    workers: int = 1,
) -> None:
    """Search for the bugs of these names, or for all of them."""
    how = (even, guided, seed)
    skipped = {each["bug"] for each in _searches(file) if _how(each) == how and _is_final(each, cpu_seconds)}
    for bug in all_bugs():
        if bug.name in skipped or (names and bug.name not in names):
            continue
        with (
            mock.patch("fuzz.cli.run_campaign.patches_between", partial(directing, bug)),
            mock.patch("fuzz.campaign.edges.patches_between", partial(directing, bug)),
            mock.patch("fuzz.cli.run_campaign.plant_all", return_value=()),  # canaries take as long as many searches
            mock.patch("fuzz.cli.run_campaign.directed_workloads", partial(_directed, generators_only=bool(guided))),
            TemporaryDirectory() as campaigns,
            mock.patch.dict(os.environ, {"PGDUEL_CAMPAIGNS": campaigns} if guided else {}),
        ):
            found = search_for(bug, even=even, guided=guided, first_seed=seed, cpu_seconds=cpu_seconds, workers=workers)
            line = json.dumps(asdict(found))
        with file.open("a") as lines:
            lines.write(f"{line}\n")
    for line in _medians(_searches(file)):
        typer.echo(line)


def _directed(
    target: SourceContext,
    patches: Sequence[tuple[str, str]],
    among: Collection[str] | None = None,
    *,
    generators_only: bool,
) -> tuple[Direction, dict[str, str]]:
    return directed_workloads(target, patches, all_generators() if generators_only else among)


def _searches(file: Path) -> list[dict[str, Any]]:
    """Return the last search of each bug, of each kind."""
    found = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return list({(*_how(each), each["bug"]): each for each in found}.values())


def _how(search: Mapping[str, Any]) -> tuple[bool, str | None, int]:
    """Return whether a search is even, its engine if it is one in flavor guided, and its first seed."""
    return search["even"], search.get("guided"), search.get("seed", 1)


def _is_final(search: Mapping[str, Any], cpu_seconds: float) -> bool:
    """Return whether a search found its bug, or took as long as a further one would."""
    return search["oracle"] is not None or search["cpu_seconds"] > cpu_seconds - _LEAST


def _medians(searches: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for even, guided in dict.fromkeys(_how(each)[:2] for each in searches):
        alike = [each for each in searches if _how(each)[:2] == (even, guided)]
        spent = [each["cpu_seconds"] if each["oracle"] else math.inf for each in alike]
        found = sum(map(math.isfinite, spent))
        how = " ".join(("with --even" if even else "directed", *([f"by the engine {guided}"] if guided else [])))
        yield f"{how}: {found} of {len(spent)} bugs found, in a median of {median(spent):.1f} s of CPU time"


if __name__ == "__main__":
    typer.run(main)

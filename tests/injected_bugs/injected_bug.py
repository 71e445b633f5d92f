"""Injected bugs, and campaigns that find them.

A bug is a patch on top of a sound series. Its header has these lines; all but the first are optional:

- `# Oracle: NAME` or `# Oracle: NAME, NAME or NAME`: oracles one of which must find the bug, the intended one first.
  `metamorphic` stands for all metamorphic oracles.
- `# Series: DIRECTORY`: the series below patches/pg17; by default the one of the arm `patched`.
- `# Workload: GENERATOR`: the only generator of the campaign, for bugs that others rarely reach; by default all
  generators, but no source.
- `# Arms: bugged`: the campaign has no sound arm.
- `# Quick: GENERATOR`: the quick tests find the bug within a few cases of this generator, without reduction.
- `# Blame: may be absent, REASON`: blame need not find the patch.
- `# Psql: may not show it, REASON`: psql need not show the reproducer.
- `# Missed: REASON`: no campaign is known to find the bug, so its test is expected to fail and is not run.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzz import documents, workdir
from fuzz.bench.reduction.reducer import size_of
from fuzz.campaign.catalog import find_finding
from fuzz.generators.generator import all_generators
from fuzz.servers.arm import SHIPPED
from fuzz.triage.blame import Blame
from oracles.framework.metamorphic import Metamorphic
from oracles.model.mode import settings_of
from oracles.model.oracle import all_oracles
from tests.injected_bugs.psql import PsqlResult, run_in_psql

SEEDS = (1, 2, 3)  # the next campaign runs if no finding of the one before replays

PG17 = workdir.PROJECT / "patches" / "pg17"
_GROUPS = {"metamorphic": tuple(oracle.name for oracle in all_oracles() if isinstance(oracle, Metamorphic))}
_HEADER = re.compile(r"# (Oracle|Series|Workload|Arms|Quick|Blame|Psql|Missed): (.+)")
_EXCEPTIONS = {"Blame": "may be absent, ", "Psql": "may not show it, "}


@dataclass(frozen=True, slots=True)
class Bug:
    """An injected bug with the fields of its header."""

    patch: Path
    oracles: tuple[str, ...]
    series: str | None
    workload: str | None
    alone: bool
    quick: str | None
    may_lack_blame: bool
    may_not_show_in_psql: bool
    missed: str | None

    @property
    def name(self) -> str:
        return self.patch.stem

    def may_show_to(self, oracle: str) -> bool:
        """Return whether the oracle's finding counts. Wrong rows, for `result`, may show to any oracle first."""
        return oracle in self.oracles or "result" in self.oracles


def bug_of(patch: Path) -> Bug:
    """Read a bug's header."""
    header = dict(_HEADER.findall(patch.read_text().partition("\ndiff ")[0]))
    for field, words in _EXCEPTIONS.items():
        assert header.get(field, words).startswith(words), f"{patch.name}: # {field}: {words}REASON"
    oracles = tuple(name for word in re.split(r", | or ", header["Oracle"]) for name in _GROUPS.get(word, (word,)))
    return Bug(
        patch,
        oracles,
        header.get("Series"),
        header.get("Workload"),
        alone="Arms" in header,
        quick=header.get("Quick"),
        may_lack_blame="Blame" in header,
        may_not_show_in_psql="Psql" in header,
        missed=header.get("Missed"),
    )


def all_bugs() -> list[Bug]:
    """Return the injected bugs in the order of their patches' paths."""
    return [bug_of(patch) for patch in sorted(Path(__file__).parent.glob("**/*.patch"))]


def sound_patches(bug: Bug) -> list[Path]:
    """Return the patches below the bug's own, in order."""
    parts = [bug.series] if bug.series else SHIPPED["patched"]
    return [patch for part in parts for patch in _listed(PG17 / part)]


def _listed(directory: Path) -> list[Path]:
    """Return the patches of a series, in order."""
    lines = (line.partition("#")[0].strip() for line in (directory / "series").read_text().splitlines())
    return [directory / name for name in lines if name]


def find_bug(bug: Bug, directory: Path, *, cases: int) -> str:
    """Find a bug within a number of cases; return a line with the time, the cases and the oracle.

    Fails if the bug is not found, not replayed, not blamed on its patch alone, or not shown by psql. Each campaign must
    find it. One campaign suffices for a finding that replays and occurs during blame, because a bug's effect may depend
    on timing, addresses, or buffers of one server.
    """
    sound = sound_patches(bug)
    sides = (*_arm("patched", sound), *_arm("bugged", [*sound, bug.patch]))
    _pgduel("build", *sides, expected={0})  # also the sound one, because blame tries only prefixes that are built
    arms = sides[2:] if bug.alone else sides
    for seed in SEEDS:
        summary = _fuzz(arms, directory, seed, cases, [bug.workload] if bug.workload else all_generators())
        found = [each for each in summary["findings"] if bug.may_show_to(each["oracle"])]
        assert found, summary["findings"]
        again = [each for each in found if bug.may_lack_blame or _occurred_again(each)]
        shown = next((each for each in again if _replays(each["reproducer"], *arms)), None)
        if shown:
            break
    assert shown, f"no reproducer replays: {found}"
    blamed = _blamed(bug, shown)
    in_psql = run_in_psql(Path(shown["reproducer"]), sides[1::2])
    _note(bug, summary, shown, blamed=blamed, in_psql=in_psql)
    assert blamed or (bug.may_lack_blame and not _occurred_again(shown)), shown["blame"]
    assert in_psql.differs or bug.may_not_show_in_psql, f"psql does not show {shown['reproducer']}"
    assert not _replays(shown["reproducer"], *(() if bug.alone else sides[:2]), *_arm("bugged", sound))
    cpu = sum(summary["cpu_seconds"].values())
    often = " of ".join(map(str, shown["shown"] or "?"))
    how = f"by {shown['oracle']}, in {often} runs after reduction"
    return f"{bug.name}: {summary['seconds']} s, {summary['cases']} cases, {cpu:.0f} s of CPU, {how}"


def _blamed(bug: Bug, shown: Mapping[str, Any]) -> bool:
    """Return whether the bug's patch is blamed, and no other."""
    return shown["blame"] is not None and shown["blame"]["patches"] == [bug.patch.name]


def _occurred_again(found: Mapping[str, Any]) -> bool:
    """Return whether the finding occurred with the whole series during blame."""
    blame = found["blame"]
    return blame is not None and documents.from_data(blame, Blame).first is not None


def _note(bug: Bug, summary: Mapping[str, Any], shown: Mapping[str, Any], *, blamed: bool, in_psql: PsqlResult) -> None:
    """Append a line about the bug to the file $PGDUEL_BUGS, for tests/injected_bugs/table.py."""
    file = os.environ.get("PGDUEL_BUGS")
    if not file:
        return
    _, found = find_finding(f"{summary['campaign']}/{shown['fingerprint']}")
    case = found.least.case
    line = {
        "bug": bug.name,
        "oracle": shown["oracle"],
        "finding": f"{summary['campaign']}/{shown['fingerprint']}",
        "statements before": len(found.case.all_steps),
        "statements": len(case.all_steps),
        "settings": len(settings_of(case.modes)),
        "rows": in_psql.rows,
        "characters": size_of(case, None).characters,
        "found in": summary["seconds"],
        "reduced in": shown["reduced_in"],
        "shown": shown["shown"],
        "blamed": blamed,
        "by psql": in_psql.differs,
    }
    with Path(file).open("a") as lines:
        lines.write(json.dumps(line) + "\n")


def _arm(name: str, series: Sequence[Path]) -> tuple[str, ...]:
    return "--arm", f"{name}={','.join(map(str, series))}"


def _fuzz(arms: Sequence[str], directory: Path, seed: int, cases: int, generators: Iterable[str]) -> dict[str, Any]:
    """Return the summary of a campaign that ends with a finding."""
    file = directory / "summary.json"
    limit = ("--stop-at-first", "--cases", str(cases), "--seed", str(seed))
    named = [word for name in generators for word in ("--generator", name)]
    _pgduel("fuzz", *arms, *limit, *named, "--json", str(file), expected={1})
    summary: dict[str, Any] = json.loads(file.read_text())
    return summary


def _replays(reproducer: str, *arms: str) -> bool:
    return _pgduel("replay", reproducer, *arms, expected={0, 1}) == 1


def _pgduel(*arguments: str, expected: Set[int]) -> int:
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", *arguments], capture_output=True, text=True, cwd=workdir.PROJECT
    )
    assert done.returncode in expected, f"{' '.join(arguments)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.returncode

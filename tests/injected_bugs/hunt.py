"""The hunt for an injected bug: a campaign finds it by the oracle that it names, and its reproducer replays.

A bug is a patch on top of a sound series, with a header:
`# Oracle: NAME` or `# Oracle: NAME, NAME or NAME`: whose finding is awaited. Several are named where it depends on the
case which of them sees the bug first, the one that it is made for before others; `claims` stands for all that hold an
arm against itself.
`# Series: DIRECTORY`: of patches/pg17, on top of which it applies; it is the arm `patched`, if it does not say.
`# Workload: GENERATOR`: the one made for what it breaks, if others hardly get there.
`# Arms: bugged`: it is found where there is no sound arm to hold it against; otherwise there is one.
`# Hunt: each run`: the whole hunt is in each run of all tests; others are `long`.
`# Quick: GENERATOR`: the quick tests find it within a few cases of this one; they do not reduce it.
`# Blame: may be absent, REASON`, `# Psql: may not show it, REASON`: a hunt does not require that its patch is blamed,
or that psql shows its reproducer. All others do.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzz import documents, workdir
from fuzz.bench.reduction.size import size_of
from fuzz.campaign.catalog import find_finding
from fuzz.servers.arm import SHIPPED
from fuzz.triage.blame import Blame
from oracles.framework.metamorphic import Metamorphic
from oracles.model.mode import settings_of
from oracles.model.oracle import all_oracles
from tests.injected_bugs.plainly import Seen, seen_by_psql

SEEDS = (1, 2, 3)  # of campaigns, the next one where a finding does not replay, or did not show again

PG17 = workdir.PROJECT / "patches" / "pg17"
_WORDS = {"claims": tuple(oracle.name for oracle in all_oracles() if isinstance(oracle, Metamorphic))}
_HEADER = re.compile(r"# (Oracle|Series|Workload|Arms|Quick|Hunt|Blame|Psql): (.+)")
_EXCUSES = {"Blame": "may be absent, ", "Psql": "may not show it, "}


@dataclass(frozen=True, slots=True)
class Bug:
    """An injected bug, and what its header says."""

    patch: Path
    oracles: tuple[str, ...]
    series: str | None
    workload: str | None
    alone: bool
    quick: str | None
    takes_long: bool
    may_lack_blame: bool
    may_not_show_in_psql: bool

    @property
    def name(self) -> str:
        return self.patch.stem


def bug_of(patch: Path) -> Bug:
    """Read a bug's header."""
    header = dict(_HEADER.findall(patch.read_text().partition("\ndiff ")[0]))
    for field, words in _EXCUSES.items():
        assert header.get(field, words).startswith(words), f"{patch.name}: # {field}: {words}REASON"
    oracles = tuple(name for word in re.split(r", | or ", header["Oracle"]) for name in _WORDS.get(word, (word,)))
    return Bug(
        patch,
        oracles,
        header.get("Series"),
        header.get("Workload"),
        alone="Arms" in header,
        quick=header.get("Quick"),
        takes_long="Hunt" not in header,
        may_lack_blame="Blame" in header,
        may_not_show_in_psql="Psql" in header,
    )


def sound_patches(bug: Bug) -> list[Path]:
    """Return the patches that the bug is put on top of, in order."""
    parts = [bug.series] if bug.series else SHIPPED["patched"]
    return [patch for part in parts for patch in _listed(PG17 / part)]


def _listed(directory: Path) -> list[Path]:
    """Return the patches of a series, in order."""
    lines = (line.partition("#")[0].strip() for line in (directory / "series").read_text().splitlines())
    return [directory / name for name in lines if name]


def hunt(bug: Bug, directory: Path, *, cases: int) -> str:
    """Find a bug within so many cases; return a line that says how fast.

    Fails where it is not found, not replayed, not blamed on its patch alone, or not shown by psql.
    Each campaign has to find it, but it is enough that the finding of one replays, and showed again when its patch was
    searched for: what a bug does may depend on timing, addresses, or numbers of buffers in that one server.
    """
    sound = sound_patches(bug)
    sides = (*_arm("patched", sound), *_arm("bugged", [*sound, bug.patch]))
    _pgduel("build", *sides, expected={0})  # the sound one too: blame tries prefixes that are built
    arms = sides[2:] if bug.alone else sides
    for seed in SEEDS:
        told = _fuzz(arms, directory, seed, cases, ("--generator", bug.workload) if bug.workload else ())
        found = [each for each in told["findings"] if each["oracle"] in bug.oracles]
        assert found, told["findings"]
        again = [each for each in found if bug.may_lack_blame or _showed_again(each)]
        shown = next((each for each in again if _replays(each["reproducer"], *arms)), None)
        if shown:
            break
    assert shown, f"no reproducer replays: {found}"
    blamed = _blamed(bug, shown)
    seen = seen_by_psql(Path(shown["reproducer"]), sides[1::2])
    _note(bug, told, shown, blamed=blamed, seen=seen)
    assert blamed or (bug.may_lack_blame and not _showed_again(shown)), shown["blame"]
    assert seen.differs or bug.may_not_show_in_psql, f"psql does not show {shown['reproducer']}"
    assert not _replays(shown["reproducer"], *(() if bug.alone else sides[:2]), *_arm("bugged", sound))
    cpu = sum(told["cpu_seconds"].values())
    often = " of ".join(map(str, shown["shown"] or "?"))
    how = f"by {shown['oracle']}, in {often} runs once it was reduced"
    return f"{bug.name}: {told['seconds']} s, {told['cases']} cases, {cpu:.0f} s of CPU, {how}"


def _blamed(bug: Bug, shown: Mapping[str, Any]) -> bool:
    """Tell whether the bug's patch is blamed, and no other."""
    return shown["blame"] is not None and shown["blame"]["patches"] == [bug.patch.name]


def _showed_again(found: Mapping[str, Any]) -> bool:
    """Tell whether the whole series showed it when it was asked which of its patches is to blame."""
    blame = found["blame"]
    return blame is not None and documents.from_data(blame, Blame).first is not None


def _note(bug: Bug, told: Mapping[str, Any], shown: Mapping[str, Any], *, blamed: bool, seen: Seen) -> None:
    """Add a line about the bug to the file that $PGDUEL_BUGS names, which tests/injected_bugs/table.py reads."""
    file = os.environ.get("PGDUEL_BUGS")
    if not file:
        return
    _, found = find_finding(f"{told['campaign']}/{shown['fingerprint']}")
    case = found.least.case
    line = {
        "bug": bug.name,
        "oracle": shown["oracle"],
        "finding": f"{told['campaign']}/{shown['fingerprint']}",
        "statements before": len(found.case.all_steps),
        "statements": len(case.all_steps),
        "settings": len(settings_of(case.modes)),
        "rows": seen.rows,
        "characters": size_of(case, None).characters,
        "found in": told["seconds"],
        "reduced in": shown["reduced_in"],
        "shown": shown["shown"],
        "blamed": blamed,
        "by psql": seen.differs,
    }
    with Path(file).open("a") as lines:
        lines.write(json.dumps(line) + "\n")


def _arm(name: str, series: Sequence[Path]) -> tuple[str, ...]:
    return "--arm", f"{name}={','.join(map(str, series))}"


def _fuzz(arms: Sequence[str], directory: Path, seed: int, cases: int, workload: Sequence[str]) -> dict[str, Any]:
    """Return the summary of a campaign that ended with a finding."""
    summary = directory / "summary.json"
    limit = ("--stop-at-first", "--cases", str(cases), "--seed", str(seed))
    _pgduel("fuzz", *arms, *limit, *workload, "--json", str(summary), expected={1})
    told: dict[str, Any] = json.loads(summary.read_text())
    return told


def _replays(reproducer: str, *arms: str) -> bool:
    return _pgduel("replay", reproducer, *arms, expected={0, 1}) == 1


def _pgduel(*arguments: str, expected: Set[int]) -> int:
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", *arguments], capture_output=True, text=True, cwd=workdir.PROJECT
    )
    assert done.returncode in expected, f"{' '.join(arguments)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.returncode

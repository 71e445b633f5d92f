"""Joining reduction, which knows nothing of oracles, to the oracle whose finding is reduced."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fuzz import workdir
from fuzz.campaign.blame import Blame
from fuzz.campaign.known import Smallest
from fuzz.campaign.store import StoredFinding
from fuzz.cli.options import ArmOptions
from fuzz.errors import PgduelError
from fuzz.execution.stage import Stage
from fuzz.inquiry.asking import Alike, Asking, same_arms
from fuzz.inquiry.blaming import suspicion
from fuzz.reduction.limit import Limit
from fuzz.reduction.reducer import Uninteresting, reduce
from fuzz.reduction.reproducer import noted, render
from fuzz.servers.arm import Arm
from oracles.case import Case
from oracles.finding import Finding
from oracles.sampling import SAMPLES

SECONDS = 60.0  # that the reduction of one finding may take
DIRECTORY = "reproducers"


@dataclass(frozen=True, slots=True)
class Reducing:
    """How a campaign's findings are reduced. Pickles, since worker processes do it."""

    options: ArmOptions
    arms: Mapping[str, Any]  # what is recorded of each

    def write(self, found: StoredFinding, directory: Path) -> Path:
        """Write the script of the case as it was found; return its path."""
        path = _script(found, directory)
        path.parent.mkdir(exist_ok=True)
        self._write(path, found.case, found.finding, found.case_id)
        return path

    def _write(self, path: Path, case: Case, shown: Finding, case_id: str) -> None:
        path.write_text(render(case, shown, self.arms, case_id, _replay(path, self.options)), encoding="utf-8")

    def reduce(self, arms: Sequence[Arm], found: StoredFinding, directory: Path) -> Smallest:
        """Overwrite the script of the whole case by each smaller one; return the last. Raises ServerError.

        A finding that does not show again leaves the script of the whole case. What shows under another symptom
        then (a crash that wanders) is reduced by whatever the same oracle reports of the same arms.
        """
        path = _script(found, directory)
        by_hand = _replay(found.case_id, self.options)
        limit = Limit()
        runs = 0
        with Stage(arms, "reduction", stop=limit.passed) as stage:
            asked = _Asked(stage, limit, found, arms)
            for alike in (Finding.resembles, same_arms):
                try:
                    least = reduce(
                        asked.start,
                        partial(asked.shows, alike),
                        seconds=SECONDS,
                        by_hand=by_hand,
                        on_better=lambda case: self._write(path, case, asked.shown[case], found.case_id),
                    )
                except Uninteresting as never:
                    runs += never.runs
                    continue
                return Smallest(least.case, asked.shown[least.case], least.showing.shown, least.showing.runs)
        return Smallest(found.case, found.finding, 0, runs)

    def blame(self, arms: Sequence[Arm], found: StoredFinding, smallest: Smallest) -> Blame:
        """Find what is to blame, as far as that takes no build; the script says it. Raises BuildError, ServerError."""
        blame = suspicion(smallest, arms, lambda line: None, built_only=True).blame(self.arms)
        if found.reproducer is not None:
            note(found.reproducer, {"shows": smallest.how_often, "blame": str(blame)})
        return blame


def note(path: Path, notes: Mapping[str, str]) -> None:
    """Have a reproducer say more of its finding. Raises PgduelError."""
    try:
        path.write_text(noted(path.read_text(encoding="utf-8"), notes), encoding="utf-8")
    except OSError as error:
        raise PgduelError(f"cannot write {path} ({error.strerror})") from error


def judged_by(script: str, path: Path, options: ArmOptions) -> str:
    """Return a script that names the command to judge it by from now on."""
    path = path.resolve()
    place = path.relative_to(workdir.CHECKOUT) if path.is_relative_to(workdir.CHECKOUT) else path
    line = f"--   Judge it: {_replay(place, options)}"
    return re.sub(r"^--   Judge it: .*$", lambda _: line, script, count=1, flags=re.MULTILINE)


def _replay(what: Path | str, options: ArmOptions) -> str:
    return f"./pgduel replay {what}{options.command_line()}"


class _Asked:
    """Whether cases show the finding to be reduced, and what they show."""

    def __init__(self, stage: Stage, limit: Limit, found: StoredFinding, arms: Sequence[Arm]) -> None:
        self.start = _asking_for_what_it_got(found.case, alone=len(arms) == 1)
        self.shown: dict[Case, Finding] = {}
        self._limit = limit
        self._asking = Asking(stage, arms, found.finding)

    def shows(self, alike: Alike, case: Case) -> bool:
        """Tell whether the case shows a finding like the one to be reduced, and keep what it shows."""
        with self._limit.question(whole=case == self.start):
            shown = self._asking.shown(case, alike)
        if shown is not None:
            self.shown[case] = shown
        return shown is not None


def _script(found: StoredFinding, directory: Path) -> Path:
    return directory / DIRECTORY / f"{found.finding.fingerprint}.sql"


def _asking_for_what_it_got(case: Case, *, alone: bool) -> Case:
    """Have a case that is sampled for its content sampled whatever its content; reduction drops it if it can."""
    sampled = (sample.mode for sample in SAMPLES if case in (sample.alone if alone else sample))
    return replace(case, modes=case.modes + tuple(mode for mode in sampled if mode not in case.modes))

"""Joining reduction, which knows nothing of oracles, to the oracle whose finding is reduced."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fuzz.campaign.seats import seats
from fuzz.campaign.store import StoredFinding
from fuzz.campaign.trial import try_case
from fuzz.cli.options import ArmOptions
from fuzz.execution.stage import Stage
from fuzz.reduction.limit import Limit
from fuzz.reduction.reducer import Uninteresting, reduce
from fuzz.reduction.reproducer import render
from fuzz.servers.arm import Arm
from oracles.case import Case
from oracles.finding import Finding
from oracles.oracle import all_oracles
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
        replay = f"./pgduel replay {path}{self.options.command_line()}"
        path.write_text(render(case, shown, self.arms, case_id, replay), encoding="utf-8")

    def reduce(self, arms: Sequence[Arm], found: StoredFinding, directory: Path) -> Path:
        """Overwrite the script of the whole case by each smaller one; return its path. Raises ServerError.

        A finding that does not show again leaves the script of the whole case. What shows under another symptom
        then (a crash that wanders) is reduced by whatever the same oracle reports of the same arms.
        """
        path = _script(found, directory)
        by_hand = f"./pgduel replay {found.case_id}{self.options.command_line()}"
        limit = Limit()
        with Stage(arms, "reduction", stop=limit.passed) as stage:
            asked = _Asked(stage, limit, found, arms)
            for alike in (Finding.resembles, _same_arms):
                with suppress(Uninteresting):
                    reduce(
                        asked.start,
                        partial(asked.shows, alike),
                        seconds=SECONDS,
                        by_hand=by_hand,
                        on_better=lambda case: self._write(path, case, asked.shown[case], found.case_id),
                    )
                    break
        return path


class _Asked:
    """Whether cases show a finding, asked of its oracle and of real servers."""

    def __init__(self, stage: Stage, limit: Limit, found: StoredFinding, arms: Sequence[Arm]) -> None:
        self.start = _asking_for_what_it_got(found.case, alone=len(arms) == 1)
        self.shown: dict[Case, Finding] = {}
        self._stage = stage
        self._limit = limit
        self._finding = found.finding
        self._seats = seats([oracle for oracle in all_oracles() if oracle.name == found.finding.oracle], arms)

    def shows(self, alike: Callable[[Finding, Finding], bool], case: Case) -> bool:
        """Tell whether the case shows a finding like the one to be reduced, and keep what it shows."""
        with self._limit.question(whole=case == self.start):
            trial = try_case(self._stage, self._seats, case)
        for finding in trial.findings:
            if alike(finding, self._finding):
                self.shown[case] = finding
                return True
        return False


def _script(found: StoredFinding, directory: Path) -> Path:
    return directory / DIRECTORY / f"{found.finding.fingerprint}.sql"


def _same_arms(one: Finding, other: Finding) -> bool:
    return one.arms == other.arms


def _asking_for_what_it_got(case: Case, *, alone: bool) -> Case:
    """Have a case that is sampled for its content sampled whatever its content; reduction drops it if it can."""
    sampled = (sample.mode for sample in SAMPLES if case in (sample.alone if alone else sample))
    return replace(case, modes=case.modes + tuple(mode for mode in sampled if mode not in case.modes))

"""Joining reduction, which knows nothing of oracles, to the oracle whose finding is reduced."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fuzz.campaign.store import StoredFinding
from fuzz.campaign.trial import try_case
from fuzz.cli.options import ArmOptions
from fuzz.execution.stage import Stage
from fuzz.reduction.reducer import reduce
from fuzz.reduction.reproducer import render
from oracles.case import Case
from oracles.finding import Finding
from oracles.oracle import all_oracles
from oracles.repetition import REPEATED, is_repeated

SECONDS = 60.0  # that the reduction of one finding may take
DIRECTORY = "reproducers"


@dataclass(frozen=True, slots=True)
class Reducing:
    """How a campaign's findings are reduced. Pickles, since worker processes do it."""

    options: ArmOptions
    arms: Mapping[str, Any]  # what is recorded of each

    def __call__(self, stage: Stage, found: StoredFinding, directory: Path) -> Path:
        """Write the script of the case as it was found, then of each smaller one; return its path.

        Raises CaseError for a finding that does not show again: its script is that of the whole case.
        """
        oracles = [oracle for oracle in all_oracles() if oracle.name == found.finding.oracle]
        shown: dict[Case, Finding] = {found.case: found.finding}

        def shows_it(case: Case) -> bool:
            for finding in try_case(stage, oracles, case, tuple(self.arms)).findings:
                if finding.resembles(found.finding):
                    shown[case] = finding
                    return True
            return False

        path = directory / DIRECTORY / f"{found.finding.fingerprint}.sql"
        path.parent.mkdir(exist_ok=True)

        def write(case: Case) -> None:
            replay = f"./pgduel replay {path}{self.options.command_line()}"
            path.write_text(render(case, shown[case], self.arms, found.case_id, replay), encoding="utf-8")

        write(found.case)
        by_hand = f"./pgduel replay {found.case_id}{self.options.command_line()}"
        reduce(_asking_for_repetition(found.case), shows_it, seconds=SECONDS, by_hand=by_hand, on_better=write)
        return path


def _asking_for_repetition(case: Case) -> Case:
    """Have a case that is repeated for its content repeated whatever its content; reduction drops it if it can."""
    return replace(case, modes=(*case.modes, REPEATED)) if is_repeated(case) else case

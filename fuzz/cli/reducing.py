"""Joining reduction, which knows nothing of oracles, to the oracle whose finding is reduced, and to the store."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from fuzz import workdir
from fuzz.campaign.findings import StoredFinding
from fuzz.campaign.store import Store
from fuzz.cli.options import ArmOptions
from fuzz.errors import PgduelError
from fuzz.execution.executor import Executor
from fuzz.servers.arm import Arm
from fuzz.triage.blame import Blame, suspicion
from fuzz.triage.interestingness import FindingCheck, InterestingnessTest, same_arms
from fuzz.triage.question_timeout import QuestionTimeout
from fuzz.triage.reduced_case import ReducedCase
from fuzz.triage.reduction.problem import SECONDS
from fuzz.triage.reduction.reducer import Uninteresting, reduce
from fuzz.triage.reproducer.reproducer import noted, render
from oracles.model.case import Case
from oracles.model.finding import Finding

DIRECTORY = "reproducers"


@dataclass(frozen=True, slots=True)
class Reducing:
    """How a campaign's findings are reduced. Pickles, since worker processes do it."""

    options: ArmOptions
    arms: Mapping[str, Any]  # what is recorded of each

    def write(self, found: StoredFinding, directory: Path) -> Path:
        """Write the script of the smallest case known; return its path. Raises StorageError."""
        path = directory / DIRECTORY / f"{found.finding.fingerprint}.sql"
        with workdir.writing(path.parent):
            path.parent.mkdir(exist_ok=True)
        least = found.least
        workdir.write(path, render(least.case, least.finding, self.arms, found.case_id, _replay(path, self.options)))
        return path

    def reduce(self, arms: Sequence[Arm], found: StoredFinding, store: Store) -> ReducedCase:
        """Have script and store hold each smaller case; return the last. Raises ServerError, StorageError.

        It begins with what one that was cut off had come to. What shows under another symptom only (a crash that
        wanders) is reduced by whatever the same oracle reports of the same arms. What does not show again stays whole.
        """
        smallest = self._smallest(arms, found, store)
        self.write(replace(found, smallest=smallest), store.directory)
        return smallest

    def _smallest(self, arms: Sequence[Arm], found: StoredFinding, store: Store) -> ReducedCase:
        runs = 0
        limit = QuestionTimeout()
        with Executor(arms, "reduction", stop=limit.passed) as executor:
            for alike, case in product((Finding.resembles, same_arms), dict.fromkeys((found.least.case, found.case))):
                question = InterestingnessTest(executor, limit, arms, case, found.finding)
                try:
                    least = reduce(
                        question.whole,
                        partial(question.shows, alike=alike),
                        seconds=SECONDS,
                        by_hand=_replay(found.case_id, self.options),
                        seems=question.seems_to_show if alike == Finding.resembles else None,
                        on_better=partial(self._keep, found, store, question),
                    )
                except Uninteresting as never:
                    runs += never.runs
                    continue
                shown = FindingCheck(executor, arms, found.finding).voted(least.case, question.shown[least.case])
                return ReducedCase(least.case, shown, least.showing.shown, least.showing.runs)
        return ReducedCase(found.case, found.finding, 0, runs)

    def _keep(self, found: StoredFinding, store: Store, question: InterestingnessTest, better: Case) -> None:
        """Have store and script hold a smaller case. All that is said of it is that it showed."""
        smaller = ReducedCase(better, question.shown[better], 1, 1)
        store.came_to(found.finding.fingerprint, smaller)
        self.write(replace(found, smallest=smaller), store.directory)

    def blame(self, arms: Sequence[Arm], found: StoredFinding, smallest: ReducedCase) -> Blame:
        """Find what is to blame, as far as that takes no build; the script says it.

        Where the smallest case does not show it any more (it may rest on what was in the buffers), the whole one is
        tried. Raises BuildError, ServerError, StorageError.
        """
        whole = replace(smallest, case=found.case, finding=found.finding)
        for known in dict.fromkeys((smallest, whole)):
            blame = suspicion(known, arms, lambda line: None, built_only=True).blame(self.arms)
            if blame.first is not None:
                break
        if found.reproducer is not None:
            note(found.reproducer, {"shows": smallest.how_often, "blame": str(blame)})
        return blame


def note(path: Path, notes: Mapping[str, str]) -> None:
    """Have a reproducer say more of its finding. Raises PgduelError."""
    try:
        script = path.read_text(encoding="utf-8")
    except OSError as error:
        raise PgduelError(f"cannot read {path} ({error.strerror})") from error
    workdir.write(path, noted(script, notes))


def judged_by(script: str, path: Path, options: ArmOptions) -> str:
    """Return a script that names the command to judge it by from now on."""
    path = path.resolve()
    place = path.relative_to(workdir.CHECKOUT) if path.is_relative_to(workdir.CHECKOUT) else path
    line = f"--   Judge it: {_replay(place, options)}"
    return re.sub(r"^--   Judge it: .*$", lambda _: line, script, count=1, flags=re.MULTILINE)


def _replay(what: Path | str, options: ArmOptions) -> str:
    return f"./pgduel replay {what}{options.command_line()}"

"""Index contents: btree indexes must be sound, and have all rows of their tables, if those of the reference do.

Rows that an index lacks are in the table, so `result` finds no difference unless a later query of the case happens to
read the index. This oracle executes the case once more on each arm. Then amcheck compares each index with its table.

Only errors that report corruption count. An index that is corrupt on both arms may have an operator class of the case
that contradicts itself, so it is in doubt. A finding must occur again, while the other arm's index is sound.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

from oracles.framework.canaries import canary_case
from oracles.framework.pairwise import REPETITIONS, Pair, SampledPairwise
from oracles.framework.verdicts import lost_session
from oracles.model.case import Case, Step
from oracles.model.finding import Finding
from oracles.model.mode import Mode
from oracles.model.observation import CaseObservation, Run
from oracles.model.oracle import Agree, Canary, Inconclusive, More, NotApplicable, Sample, Unstable, Verdict

CHECKED: Final = Sample("indexes_checked", 8)
_CHECK: Final = Mode("check_indexes", (("pgduel_tools.check_indexes", "on"),))
_INDEX: Final = "index "
COMPLETE: Final = "complete"
_CORRUPT: Final = re.compile("error XX00[12] ")  # ERRCODE_DATA_CORRUPTED, ERRCODE_INDEX_CORRUPTED
_NAMES: Final = re.compile(r'"[^"]*"|\([0-9,]*\)|[0-9]+')
_SCRIPT_END: Final = """\
-- the contents of btree indexes
CREATE EXTENSION IF NOT EXISTS amcheck SCHEMA public;
SELECT format('SELECT %L AS index, public.bt_index_check(%L, true)', indexrelid::regclass, indexrelid::regclass)
FROM pg_index JOIN pg_class AS c ON c.oid = indexrelid
WHERE relnamespace IN ('duel'::regnamespace, pg_my_temp_schema()) AND relkind = 'i' AND indisvalid
  AND relam = (SELECT oid FROM pg_am WHERE amname = 'btree')
ORDER BY relname COLLATE "C"
\\gexec"""


def _run(case: Case, arm: str, repetition: int = 0) -> Run:
    return Run(arm, (*case.modes, _CHECK), repetition=repetition)


def states(seen: CaseObservation) -> Mapping[str, str]:
    """Return index -> COMPLETE, or SQLSTATE and text of an error."""
    return {name: state for name, state in seen.digests if name.startswith(_INDEX)}


class _IndexPair(Pair):
    def judge(self) -> tuple[Verdict, ...] | More:
        seen = [self._seen(arm) for arm in (self.reference, self.suspect)]
        if any(each.residue is None for each in seen):
            return (lost_session(*seen),)
        ours, theirs = map(states, seen)
        differing = [name for name in sorted(ours.keys() & theirs.keys()) if _kind(ours[name]) != _kind(theirs[name])]
        if differing and (missing := self.missing(self._again())):
            return More(missing, frozenset(_symptom(_corrupt(ours[name], theirs[name])) for name in differing))
        verdicts: list[Verdict] = [self._verdict(name) for name in differing]
        verdicts += self._doubts(ours, theirs)
        if any(isinstance(verdict, Finding) for verdict in verdicts):  # others have the same cause
            return tuple(verdict for verdict in verdicts if isinstance(verdict, Finding))[:1]
        if not ours or not theirs:
            return (NotApplicable(),)
        return (*verdicts, Agree(sum(step.has_ended for step in seen[0].steps)))

    def _again(self) -> Iterator[Run]:
        return (_run(self.case, arm, REPETITIONS[0]) for arm in (self.reference, self.suspect))

    def _seen(self, arm: str, repetition: int = 0) -> CaseObservation:
        return self.observations[_run(self.case, arm, repetition)]

    def _verdict(self, name: str) -> Finding | Inconclusive | Unstable:
        first, again = (
            [states(self._seen(arm, number)).get(name, "") for arm in (self.reference, self.suspect)]
            for number in (0, REPETITIONS[0])
        )
        expected, actual = (f"{name}: {state}" for state in first)
        corrupt = _corrupt(*first)
        if not corrupt:
            return Inconclusive("an index cannot be checked", sides=(expected, actual))
        if list(map(_kind, first)) != list(map(_kind, again)):
            return Unstable("index contents: not in each run", sides=(expected, actual))
        return Finding(
            oracle=IndexContents.name,
            arms=(self.reference, self.suspect),
            origin=_symptom(corrupt),
            step=None,
            summary=f"{name}: {_CORRUPT.sub('', corrupt)}",
            expected=expected,
            actual=actual,
        )

    def _doubts(self, ours: Mapping[str, str], theirs: Mapping[str, str]) -> Iterator[Inconclusive]:
        """Yield the first index that no arm can check, and the first that is corrupt on both."""
        reasons: dict[str, tuple[str, str]] = {}
        for name in sorted(ours.keys() & theirs.keys()):
            if ours[name] != COMPLETE and _kind(ours[name]) == _kind(theirs[name]):
                corrupt = _CORRUPT.match(ours[name])
                reason = "an index is corrupt on both arms" if corrupt else "an index cannot be checked"
                reasons.setdefault(reason, (f"{name}: {ours[name]}", f"{name}: {theirs[name]}"))
        return (Inconclusive(reason, sides=sides) for reason, sides in reasons.items())


def _kind(state: str) -> str:
    """Return COMPLETE, or the SQLSTATE. Texts have places of rows."""
    return COMPLETE if state == COMPLETE else " ".join(state.split()[:2])


def _corrupt(ours: str, theirs: str) -> str:
    """Return the state that reports corruption, the suspect's first; "" if none does."""
    return next((state for state in (theirs, ours) if _CORRUPT.match(state)), "")


def _symptom(state: str) -> str:
    """Return the error without names, places and numbers."""
    return f"index contents: {_NAMES.sub('...', _CORRUPT.sub('', state))}"


class IndexContents(SampledPairwise):
    """Btree indexes that are corrupt, or lack rows of their tables."""

    name: ClassVar[str] = "index_contents"
    samples: ClassVar[tuple[Sample, ...]] = (CHECKED,)
    script_end: ClassVar[str] = _SCRIPT_END
    canaries: ClassVar[tuple[Canary, ...]] = (
        Canary(
            "insert_unindexed:nest",
            canary_case(
                Step("CREATE INDEX ON nest (n)"),
                Step("INSERT INTO nest SELECT n, name FROM canary"),
                samples=(CHECKED,),
            ),
        ),
    )
    pair = _IndexPair

    def own_runs(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return a run on each arm that checks the indexes at its end, if the case is in the sample."""
        return tuple(_run(case, arm) for arm in arms) if case in CHECKED else ()

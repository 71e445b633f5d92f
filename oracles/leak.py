"""Leak: no resources may remain after a case, and none may grow whenever it is repeated.

There are three signs of a leak:

- the server's own leak warnings, on any arm;
- remains of the case, on any arm; also those behind a foreign server: sessions, transactions, cursors and prepared
  statements;
- growth: after each repetition of the case, a session holds more of a resource, and another arm's session does not.
  Caches grow on all arms.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import pairwise, permutations
from typing import ClassVar, Final

from oracles.framework.canaries import canary_case, query
from oracles.framework.shared_runs import REPEATED, REPEATS, repeated_runs
from oracles.framework.verdicts import findings_of_runs, lost_session
from oracles.model.case import Case
from oracles.model.finding import Finding, as_all_do, first_of_each, pairs_of
from oracles.model.observation import CaseObservation, Residue, Resources, Run
from oracles.model.oracle import (
    Agree,
    Canary,
    Inconclusive,
    More,
    Observations,
    Oracle,
    Sample,
    Unstable,
    Verdict,
    duel,
    judged_arms,
)

# Factor beyond the other arm's growth. Growth on both arms is normal for the base (PL/pgSQL keeps each function ever
# called), and equal within two percent on equal builds; a patch may legally make a structure a little larger.
FASTER: Final = 1.25
_CONTEXT: Final = "memory context "
_PLANS_KEPT: Final = "growth: only one arm calls a function, whose plans the session keeps"


def outgrown(suspect: Sequence[Resources], other: Sequence[Resources]) -> Iterator[str]:
    """Yield each quantity that grows steadily on the suspect, and faster than on the other arm."""
    held = _held(suspect)
    for quantity in _gained(suspect, other):
        later = _after_warm_up(held[quantity])
        if len(later) > 1 and all(before < after for before, after in pairwise(later)):
            yield quantity


def _gained(suspect: Sequence[Resources], other: Sequence[Resources]) -> Iterator[str]:
    """Yield each quantity of which the suspect gains more than the other arm, steadily or not."""
    others = _held(other)
    for quantity, values in _held(suspect).items():
        gained, others_gain = _gain(_after_warm_up(values)), _gain(_after_warm_up(others.get(quantity, ())))
        if gained > FASTER * others_gain:
            yield quantity


def series(resources: Sequence[Resources], quantity: str) -> str:
    """Return the values of a quantity after each repetition, as text."""
    return ", ".join(map(str, _held(resources).get(quantity, ())))


def _held(resources: Sequence[Resources]) -> dict[str, tuple[int, ...]]:
    contexts = sorted({name for each in resources for name in each.contexts})
    return {
        "open files": tuple(each.open_files for each in resources),
        "shared memory mappings": tuple(each.shared_memory for each in resources),
    } | {f"{_CONTEXT}{name}": tuple(each.contexts.get(name, (0, 0))[1] for each in resources) for name in contexts}


def _called(resources: Sequence[Resources]) -> frozenset[str]:
    return frozenset().union(*(each.called for each in resources))


def _after_warm_up(values: Sequence[int]) -> Sequence[int]:
    """Return the values without the first third, in which caches fill."""
    return values[len(values) // 3 :]


def _gain(values: Sequence[int]) -> int:
    return max(0, values[-1] - values[0]) if values else 0


CONFIRMING_REPEATS: Final = 18

# The server's own leak warnings, all from elog(WARNING), which is never translated: resowner.c, bufmgr.c and
# localbuf.c, fd.c, relcache.c, parallel.c, dynahash.c, spi.c.
_REPORTED: Final = re.compile(
    r"resource was not closed: .*"
    r"|(?:local )?buffer refcount leak: .*"
    r"|\d+ temporary files and directories not closed at end-of-transaction"
    r"|(?:leaking still-referenced|cannot remove) relcache entry .*"
    r"|leaked (?:parallel context|hash_seq_search scan).*"
    r"|(?:sub)?transaction left non-empty SPI stack"
)
_LOGGED: Final = re.compile(r"WARNING:\s+(?:[0-9A-Z]{5}:\s+)?")
# Statements of postgres_fdw in the remote session's log.
_OPENED: Final = re.compile(
    r"LOG:  (?:statement: DECLARE (\w+) CURSOR|statement: PREPARE (\w+)|execute (pgsql_fdw_prep_\d+):)"
)
_CLOSED: Final = re.compile(r"LOG:  statement: (?:CLOSE|DEALLOCATE) (\w+)$")
_ROLLED_BACK: Final = re.compile(r"LOG:  statement: (?:ABORT TRANSACTION|ROLLBACK TO SAVEPOINT|DEALLOCATE ALL)")
_COMMITTED: Final = re.compile(r"LOG:  statement: COMMIT TRANSACTION")
_CHANGING: Final = re.compile(r'0x[0-9a-f]+|\d+|"[^"]*"')

_WHAT_IS_HELD: Final = """\
-- What the session still holds.
SELECT locktype, relation::regclass, mode, objid FROM pg_locks
WHERE pid = pg_backend_pid() AND locktype <> 'virtualxid' AND relation IS DISTINCT FROM 'pg_locks'::regclass;
SELECT name FROM pg_cursors;
SELECT name FROM pg_ls_tmpdir() WHERE name LIKE format('pgsql_tmp%s.%%', pg_backend_pid());
SELECT name, count(*), sum(total_bytes) FROM pg_backend_memory_contexts
GROUP BY name ORDER BY sum(total_bytes) DESC, name LIMIT 10;"""

_WATCHED: Final = canary_case(query("SELECT n FROM canary"))
_REPEATED: Final = replace(_WATCHED, samples=(REPEATED.name,))


class Leak(Oracle):
    """Resources that remain after a case, or grow with each repetition of it."""

    name: ClassVar[str] = "leak"
    needs_another_arm: ClassVar[bool] = False
    samples: ClassVar[tuple[Sample, ...]] = (REPEATED,)
    script_end: ClassVar[str] = _WHAT_IS_HELD
    canaries: ClassVar[tuple[Canary, ...]] = (
        *(Canary(action, _WATCHED) for action in ("leak_tupdesc", "leak_pin", "leak_temp_file")),
        *(Canary(f"leak_remote_{what}", _WATCHED) for what in ("session", "transaction", "cursor", "statement")),
        Canary("leak_lock", _WATCHED, needs_another_arm=True),  # a lock on all arms belongs to the case
        *(
            Canary(action, _REPEATED, needs_another_arm=True)
            for action in ("leak_descriptor", "leak_shared_memory", "grow_context")
        ),
    )

    def runs(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return the plain runs, and repeated runs of a sample of cases."""
        return duel(case, arms) + repeated_runs(case, arms)

    def judge(self, case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...] | More:
        """Return a finding for each kind of remains and each quantity that grows."""
        growth = _growth(case, arms, observations)
        reported = findings_of_runs(arms, observations, _reported, _left_finding)
        if isinstance(growth, More):
            return growth
        if isinstance(reported, More):
            return reported
        found = (*first_of_each((*reported, *_left_behind(case, arms, observations))), *growth)
        suspects = {verdict.arms[1] for verdict in found if isinstance(verdict, Finding)}
        return (*found, *(self._clean(case, arm, observations) for arm in judged_arms(arms) if arm not in suspects))

    def origins(self, seen: CaseObservation) -> Iterator[str]:
        """Yield the origins of the server's own warnings to the client. Runs that share a session share its log."""
        return (origin for origin, *_ in _reported(replace(seen, log=(), remote=())))

    def _clean(self, case: Case, arm: str, observations: Observations) -> Agree | Inconclusive:
        seen = [observations[run] for run in self.runs(case, (arm,))]
        if any(observed.residue is None for observed in seen):
            return lost_session(*seen)
        return Agree(sum(step.has_ended for step in seen[0].steps))


def _left_behind(case: Case, arms: Sequence[str], observations: Observations) -> Iterator[Finding]:
    for runs in (duel(case, arms), repeated_runs(case, arms)):
        seen = {run.arm: observations[run] for run in runs}
        cases_own = _locks_of_the_case(tuple(seen.values()))
        signs: dict[str, dict[str, str]] = defaultdict(dict)  # origin -> arm -> example
        for arm, observed in seen.items():
            for origin, example in (*_residue(observed, cases_own), *_left_remote(observed)):
                signs[origin].setdefault(arm, example)
        for origin, examples in signs.items():
            for pair in pairs_of(arms, examples):
                yield _left_finding(pair, origin, examples[pair[1]])


def _locks_of_the_case(seen: Sequence[CaseObservation]) -> AbstractSet[str]:
    """Return the remaining advisory locks that are no leak, because the case took them for its session.

    Those are the locks on all arms. If steps had different outcomes, all remaining advisory locks are excluded.
    """
    held = [
        {lock for lock in observed.residue.locks if lock.startswith("advisory")}
        for observed in seen
        if observed.residue
    ]
    alike = len({tuple(step.outcome for step in observed.steps) for observed in seen}) == 1
    return set.intersection(*held) if held and alike else set().union(*held)


def _reported(observed: CaseObservation) -> Iterator[tuple[str, None, str]]:
    """Yield origin, step (unknown) and text of the server's own warnings, from client messages and log."""
    messages = [
        message.text
        for step in observed.steps
        for message in step.messages
        if (message.severity, message.sqlstate) == ("WARNING", "01000")
    ]
    lines = (*observed.log, *(each.text for each in observed.remote))
    logged = [line[found.end() :] for line in lines if (found := _LOGGED.match(line))]
    for text in messages + logged:
        if found := _REPORTED.match(text):
            yield f"warning: {_CHANGING.sub('N', found[0])}", None, found[0]


def _residue(observed: CaseObservation, cases_own: AbstractSet[str]) -> Iterator[tuple[str, str]]:
    left = observed.residue or Residue()
    if left.pins:
        yield "left: pins", f"buffers pinned: {left.pins}"
    for kind in ("temp_files", "locks", "cursors", "prepared", "remote"):
        if names := [name for name in getattr(left, kind) if name not in cases_own]:
            yield f"left: {kind.replace('_', ' ')}", f"{len(names)} left: {', '.join(names)}"


def _left_remote(observed: CaseObservation) -> Iterator[tuple[str, str]]:
    """Yield origin and text of objects that a session behind a foreign server had open at COMMIT.

    postgres_fdw commits after the local statements have ended. A rollback closes all objects by itself.
    """
    opened: dict[int, set[tuple[str, str]]] = defaultdict(set)
    for each in observed.remote:
        mine = opened[each.session]
        if found := _OPENED.match(each.text):
            mine.add(("cursor", found[1]) if found[1] else ("prepared statement", found[2] or found[3]))
        elif found := _CLOSED.match(each.text):
            mine.discard(("cursor", found[1]))
            mine.discard(("prepared statement", found[1]))
        elif _ROLLED_BACK.match(each.text):
            mine.clear()
        elif _COMMITTED.match(each.text):
            yield from ((f"left: remote {kind}", f"{kind} {name} left open over there") for kind, name in sorted(mine))
            mine.clear()


def _left_finding(pair: tuple[str, str], origin: str, example: str) -> Finding:
    return _finding(pair, origin, example, "nothing left behind")


def _finding(pair: tuple[str, str], origin: str, actual: str, expected: str) -> Finding:
    return Finding(Leak.name, pair, origin, None, f"{pair[1]} leaks: {origin}{as_all_do(pair)}", expected, actual)


def _growth(case: Case, arms: Sequence[str], observations: Observations) -> tuple[Verdict, ...] | More:
    """Return the verdicts on growth for each ordered pair of arms.

    If a session grows in a few repetitions, runs with many repetitions are requested, and growth must continue there.
    """
    verdicts: list[Verdict] = []
    wanted: list[Run] = []
    for pair in permutations(arms, 2) if case in REPEATED else ():
        few, many = (tuple(Run(arm, case.modes, repeats) for arm in pair) for repeats in (REPEATS, CONFIRMING_REPEATS))
        suspected = tuple(_outgrown(few, observations))
        if suspected and any(run not in observations for run in many):
            wanted += many
        else:
            judged = (_growth_verdict(quantity, many, observations) for quantity in suspected)
            verdicts += [verdict for verdict in judged if verdict is not None]
    return More(tuple(dict.fromkeys(wanted))) if wanted else tuple(verdicts)


def _outgrown(runs: Sequence[Run], observations: Observations) -> Iterator[str]:
    """Yield the quantities that grew faster in the second run than in the first, unless one of them is incomplete."""
    if _complete(runs, observations):
        other, suspect = (observations[run].resources for run in runs)
        yield from outgrown(suspect, other)


def _complete(runs: Sequence[Run], observations: Observations) -> bool:
    return all(len(observations[run].resources) == run.repeats for run in runs)


def _growth_verdict(
    quantity: str, runs: tuple[Run, ...], observations: Observations
) -> Finding | Unstable | Inconclusive | None:
    """Return the verdict on a suspected quantity after many repetitions on (reference, suspect), None if it stopped."""
    other, suspect = (observations[run].resources for run in runs)
    ours, theirs = (f"after each repetition: {series(each, quantity)}" for each in (other, suspect))
    if not _complete(runs, observations):
        return Inconclusive("growth: the longer run was not executed to its end", None, (ours, theirs))
    if quantity in outgrown(suspect, other):
        if quantity.startswith(_CONTEXT) and _called(other) != _called(suspect):
            return Inconclusive(_PLANS_KEPT, None, (ours, theirs))
        return _finding((runs[0].arm, runs[1].arm), f"growth: {quantity}", theirs, ours)
    if quantity in _gained(suspect, other):
        return Unstable("growth: not steady in the longer run", None, (ours, theirs))
    return None

"""The executor, which runs a worker's cases on all arms concurrently.

The worker has a database on each arm. Runs on different arms are concurrent in one loop. Runs on one arm are
sequential, so that remains are attributed to the right run.

Runs of a case that differ only in replaced queries are executed as one run. An oracle may request several variants of a
query, each in a run of its own. Creating the same tables for each run would take most of the time. So one run executes
all variants of each query, one after another. Queries only read, so variants do not affect each other, unless one
aborts their transaction or ends the session. Then each run is executed by itself, which may not repeat a crash or an
internal error. So the executor also returns shared runs with such a fault, for the oracles that judge all runs.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Final, Self

from fuzz.errors import ServerError
from fuzz.execution.case_run import CaseRun
from fuzz.execution.exchanges import Exchange, never, run_exchanges
from fuzz.execution.session import is_redundant, skipped_run, time_limit
from fuzz.execution.worker_database import WorkerDatabase
from fuzz.servers.arm import Arm
from oracles.crash import crash_report
from oracles.internal_error import internal_errors, is_fault
from oracles.model.case import Case, Kind, Step
from oracles.model.observation import CaseObservation, Observation, Outcome, Run

STATEMENT_TIMEOUT_MS: Final = 5000
# seconds that a server may stay silent after statement_timeout
_GRACE_SECONDS = 5.0
_IDLE = "I"  # transaction status outside of transactions
_CUT = (Outcome.LOST, Outcome.SKIPPED)


class Executor:
    """The databases of one worker on all arms. It is a context manager that drops them on exit."""

    def __init__(
        self,
        arms: Sequence[Arm],
        worker: str = "0",
        statement_timeout_ms: int = STATEMENT_TIMEOUT_MS,
        stop: Callable[[], bool] = never,
        parameters: Mapping[str, str] | None = None,
    ) -> None:
        """Create the databases. `worker` (letters and digits) distinguishes executors on the same arms.

        `parameters` are start-up parameters of cases' sessions, unless a run is explained or has a fault. Several times
        a second, `stop` is called; if it returns true, the observation is abandoned. Raises ServerError.
        """
        self._timeout_ms = statement_timeout_ms
        self._stop = stop
        self._databases = {arm.name: WorkerDatabase(arm, worker) for arm in arms}
        self._parameters = parameters or {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def has_setting(self, name: str) -> bool:
        """Return whether any arm has a setting of this name."""
        return any(name.lower() in worker_db.settings for worker_db in self._databases.values())

    def observe(self, case: Case, runs: Sequence[Run]) -> dict[Run, CaseObservation]:
        """Execute each distinct run of the case, and return the observations. Raises ServerError, Abandoned.

        Shared runs are added, on all arms, if one of them has a fault.

        A server that crashed or was killed is restarted before this returns. If it does not start again after a crash,
        the arm's other runs are skipped. An abandoned statement continues on the server until it ends, or until the
        executor is used again or closed.
        """
        queues: dict[str, list[Run]] = defaultdict(list)
        for run in dict.fromkeys(runs):
            queues[run.arm].append(run)
        limit = max((self._limit(run) for run in runs), default=0.0)
        exchanges = [self._execute_all(self._databases[arm], case, queue) for arm, queue in queues.items()]
        observed = run_exchanges(exchanges, limit, self._stop)
        return _without_sound_shared(runs, {run: seen for part in observed for run, seen in part.items()})

    def _limit(self, run: Run) -> float:
        """Return the seconds without a complete reply after which a run is ended."""
        return time_limit(run, self._timeout_ms) + (0 if run.timeout_factor else _GRACE_SECONDS)

    def _execute_all(
        self, worker_db: WorkerDatabase, case: Case, runs: Sequence[Run]
    ) -> Exchange[dict[Run, CaseObservation]]:
        observed: dict[Run, CaseObservation] = {}
        for run in runs:
            if is_redundant(case, run, worker_db.settings):
                observed[run] = skipped_run(case, run, worker_db.settings)
        try:
            yield from self._execute_groups(worker_db, case, [run for run in runs if run not in observed], observed)
        except ServerError:  # after a crash, it must not hide the crash
            if not any(seen.crash for seen in observed.values()):
                raise
            observed |= {run: skipped_run(case, run, worker_db.settings) for run in runs if run not in observed}
        with suppress(ServerError):  # the next run reports the failure
            yield from worker_db.make_ready()
        return observed

    def _execute_groups(
        self, worker_db: WorkerDatabase, case: Case, runs: Sequence[Run], observed: dict[Run, CaseObservation]
    ) -> Exchange[None]:
        """Execute runs, and add their observations to those in `observed`. Raises ServerError."""
        for group in groups(case, runs):
            parts = None
            if len(group) > 1:
                shared = shared_run(case, group)
                seen = yield from self._execute(worker_db, shared.case, shared.run)
                observed[shared.whole(case)] = shared.merged(seen)
                parts = shared.parts(seen)
            if parts is None:
                for run in group:
                    observed[run] = yield from self._execute(worker_db, case, run)
            else:
                observed |= parts

    def _execute(self, worker_db: WorkerDatabase, case: Case, run: Run) -> Exchange[CaseObservation]:
        seen = yield from CaseRun(worker_db, case, run, self._timeout_ms, self._parameters).exchange()
        worker_db.uses += run.repeats
        return seen

    def close(self) -> None:
        """Drop the databases."""
        for worker_db in self._databases.values():
            worker_db.close()


@dataclass(frozen=True, slots=True)
class SharedRun:
    """A case with all variants of its queries, the run that executes it, and the positions of each run's steps."""

    case: Case
    run: Run
    places: tuple[tuple[Run, tuple[int, ...]], ...]

    def parts(self, seen: CaseObservation) -> dict[Run, CaseObservation] | None:
        """Return the observation of each run, or None if a variant may have affected another."""
        if seen.crash is not None or any(step.outcome in _CUT for step in seen.steps) or self._disturbed(seen):
            return None
        return {run: replace(seen, steps=tuple(seen.steps[place] for place in places)) for run, places in self.places}

    def _disturbed(self, seen: CaseObservation) -> bool:
        """Return whether a query with several variants changed the transaction status of the session."""
        status = [_IDLE, *(step.transaction for step in seen.steps)]
        return any(
            status[place] != status[place + 1] for places in self._variants() if len(places) > 1 for place in places
        )

    def _variants(self) -> list[tuple[int, ...]]:
        """Return the positions of the variants of each step of the original case, in the order of execution."""
        return [tuple(dict.fromkeys(places)) for places in zip(*(places for _, places in self.places), strict=True)]

    def whole(self, case: Case) -> Run:
        """Return this run as one of the original case: a query is replaced by all of its variants."""
        texts = ("\n;".join(self.case.steps[place].sql for place in places) for places in self._variants())
        original = enumerate(zip(texts, case.all_steps, strict=True))
        return replace(self.run, instead=tuple((at, text) for at, (text, step) in original if text != step.sql))

    def merged(self, seen: CaseObservation) -> CaseObservation:
        """Return the observation of `whole`: for each query the first variant with a fault, else the first one."""
        variants = ([seen.steps[place] for place in places] for places in self._variants())
        return replace(seen, steps=tuple(next(filter(_is_faulty, each), each[0]) for each in variants))


def _is_faulty(step: Observation) -> bool:
    return step.outcome is Outcome.LOST or any(map(is_fault, step.messages))


def _without_sound_shared(runs: Sequence[Run], observed: Mapping[Run, CaseObservation]) -> dict[Run, CaseObservation]:
    """Return the observations of these runs, and of each shared run that has a crash or internal error on an arm."""
    wanted = frozenset(runs)
    others = {run: seen for run, seen in observed.items() if run not in wanted}
    faulty = {replace(run, arm="") for run, seen in others.items() if crash_report(seen) or any(internal_errors(seen))}
    return {run: seen for run, seen in observed.items() if run not in others or replace(run, arm="") in faulty}


def shared_run(case: Case, runs: Sequence[Run]) -> SharedRun:
    """Return the shared run for one of the `groups`."""
    replacements = {run: dict(run.instead) for run in runs}
    steps: list[Step] = []
    places: dict[Run, list[int]] = defaultdict(list)
    for position, step in enumerate(case.all_steps):
        variants: dict[str, int] = {}
        for run in runs:
            sql = replacements[run].get(position, step.sql)
            if sql not in variants:
                variants[sql] = len(steps)
                steps.append(step if sql == step.sql else step.with_statement(sql))
            places[run].append(variants[sql])
    found = tuple((run, tuple(where)) for run, where in places.items())
    return SharedRun(replace(case, scene=(), steps=tuple(steps)), _without_replacements(runs[0]), found)


def groups(case: Case, runs: Sequence[Run]) -> list[list[Run]]:
    """Return the runs in order, grouped by whether they may share a scene."""
    found: dict[Run, list[Run]] = defaultdict(list)
    for run in runs:
        found[_without_replacements(run) if _may_share(case, run) else run].append(run)
    return list(found.values())


def _without_replacements(run: Run) -> Run:
    return replace(run, instead=(), needs=())


def _may_share(case: Case, run: Run) -> bool:
    """Return whether a run replaces queries only, and is not measured as a whole."""
    steps = case.all_steps
    queries = all(steps[position].kind is Kind.QUERY for position, _ in run.instead)
    return run.repeats == 1 and not run.explain and run.plannings < 2 and queries

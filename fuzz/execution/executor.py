"""The executor: runs a worker's cases on all arms concurrently.

Each arm gets a database of the worker's own. Runs on different arms go on concurrently in one loop; runs on the same
arm follow one another, so that what one leaves behind is not taken for another's.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from fuzz.errors import ServerError
from fuzz.execution.case_run import CaseRun
from fuzz.execution.exchanges import Exchange, never, run_exchanges
from fuzz.execution.session import adds_nothing, not_played, seconds_allowed
from fuzz.execution.shared_scene import alike, joint
from fuzz.execution.worker_database import WorkerDatabase
from fuzz.servers.arm import Arm
from oracles.model.case import Case
from oracles.model.observation import CaseObservation, Run

STATEMENT_TIMEOUT_MS: Final = 5000
_GRACE_SECONDS = 5.0  # that a server may stay silent beyond statement_timeout


class Executor:
    """Databases of one worker on all arms. Use as a context manager; leaving it drops them."""

    def __init__(
        self,
        arms: Sequence[Arm],
        worker: str = "0",
        statement_timeout_ms: int = STATEMENT_TIMEOUT_MS,
        stop: Callable[[], bool] = never,
    ) -> None:
        """Make the databases; `worker` (letters and digits) tells apart stages on the same arms. Raises ServerError.

        `stop` is asked several times a second whether to abandon what is being observed.
        """
        self._timeout_ms = statement_timeout_ms
        self._stop = stop
        self._places = {arm.name: WorkerDatabase(arm, worker) for arm in arms}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def settings(self) -> frozenset[str]:
        """The names, in lower case, of all settings that any arm has."""
        return frozenset().union(*(place.settings for place in self._places.values()))

    def observe(self, case: Case, runs: Sequence[Run]) -> dict[Run, CaseObservation]:
        """Execute each distinct run of the case and return what was observed. Raises ServerError, Abandoned.

        A server that crashed, or was killed, is up again when this returns. What was abandoned goes on in the server
        until its statement ends, or the executor is used again or closed.
        """
        queues: dict[str, list[Run]] = defaultdict(list)
        for run in dict.fromkeys(runs):
            queues[run.arm].append(run)
        silence = max((self._silence(run) for run in runs), default=0.0)
        exchanges = [self._play_all(self._places[arm], case, queue) for arm, queue in queues.items()]
        observed = run_exchanges(exchanges, silence, self._stop)
        return {run: observation for part in observed for run, observation in part.items()}

    def _silence(self, run: Run) -> float:
        """Return after how many seconds of silence a run is ended."""
        return seconds_allowed(run, self._timeout_ms) + (0 if run.patience else _GRACE_SECONDS)

    def _play_all(self, place: WorkerDatabase, case: Case, runs: Sequence[Run]) -> Exchange[dict[Run, CaseObservation]]:
        observed: dict[Run, CaseObservation] = {}
        for run in runs:
            if adds_nothing(case, run, place.settings):
                observed[run] = not_played(case, run, place.settings)
        for together in alike(case, [run for run in runs if run not in observed]):
            parts = None
            if len(together) > 1:
                asked = joint(case, together)
                parts = asked.parts((yield from self._play(place, asked.case, asked.run)))
            if parts is None:
                for run in together:
                    observed[run] = yield from self._play(place, case, run)
            else:
                observed |= parts
        with suppress(ServerError):  # where that does not work, the next run tells
            yield from place.make_ready()
        return observed

    def _play(self, place: WorkerDatabase, case: Case, run: Run) -> Exchange[CaseObservation]:
        seen = yield from CaseRun(place, case, run, self._timeout_ms).exchange()
        place.uses += run.repeats
        return seen

    def close(self) -> None:
        """Drop the databases."""
        for place in self._places.values():
            place.close()

"""Pool of worker processes, which set themselves up once, and then execute jobs. Processes that die are replaced.

The pool does not depend on the kind of jobs. A job whose process died is returned as `LostJob`, and its owner decides
whether to submit it again.
"""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from ctypes import c_byte
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, ForkServerProcess, SpawnContext, SpawnProcess
from typing import Generic, Protocol, Self, TypeVar

from fuzz.output import guard

Job = TypeVar("Job")
Result = TypeVar("Result")
Setup = Callable[[int, Callable[[], bool]], AbstractContextManager[Callable[[Job], Result]]]

_SPAWN = multiprocessing.get_context("spawn")
_EXIT_TIMEOUT = 3.0  # seconds in which a worker may end by itself


@dataclass(frozen=True, slots=True)
class Done(Generic[Job, Result]):
    """A job and its result."""

    job: Job
    result: Result


@dataclass(frozen=True, slots=True)
class LostJob(Generic[Job]):
    """A job whose process died; `status` is the process's exit status, negative for a signal.

    On another machine, the process has no known status, but `worker` is its address.
    """

    job: Job
    status: int | None
    worker: str = ""

    @property
    def line(self) -> str:
        """Return a line for the user."""
        if self.worker:
            return f"worker {self.worker} was lost; its job is assigned again"
        return f"a worker died (exit status {self.status}) and was replaced"


class Workers(Protocol[Job, Result]):
    """Interface of workers that execute one job each."""

    @property
    def idle(self) -> int:
        """Return the number of workers that wait for a job."""

    @property
    def jobs(self) -> list[Job]:
        """Return the running jobs."""

    def stop(self) -> None:
        """Request an early end of all running jobs."""

    def submit(self, job: Job) -> None:
        """Give a job to an idle worker."""

    def wait(self, timeout: float) -> list["Done[Job, Result] | LostJob[Job]"]:
        """Return the jobs that have ended, after at most `timeout` seconds without one."""


@dataclass(slots=True)
class _Worker(Generic[Job]):
    number: int
    process: SpawnProcess | ForkServerProcess
    pipe: Connection
    job: Job | None = None


class Pool(Generic[Job, Result]):
    """Processes that execute one job each. Use as a context manager, which ends them."""

    def __init__(
        self, setup: "Setup[Job, Result]", count: int, context: SpawnContext | ForkServerContext = _SPAWN
    ) -> None:
        """`setup(number, stop)` is called in each process, and must pickle. `stop()` returns whether to end early."""
        self._setup = setup
        self._context = context
        # An Event would have a lock, which a killed process may hold for ever.
        self._stop = context.RawValue("b")
        self._workers: list[_Worker[Job]] = []
        self._count = count

    def __enter__(self) -> Self:
        self._workers = [self._started(number) for number in range(self._count)]
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()
        for worker in self._workers:
            worker.pipe.close()
        for worker in self._workers:
            worker.process.join(_EXIT_TIMEOUT)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()

    def _started(self, number: int) -> "_Worker[Job]":
        mine, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(self._setup, number, self._stop, theirs), daemon=True)
        process.start()
        theirs.close()
        return _Worker(number, process, mine)

    @property
    def idle(self) -> int:
        """Return the number of workers without a job."""
        return sum(worker.job is None for worker in self._workers)

    @property
    def jobs(self) -> list[Job]:
        """Return the running jobs."""
        return [worker.job for worker in self._workers if worker.job is not None]

    def stop(self) -> None:
        """Request an early end of all running jobs."""
        self._stop.value = True

    def submit(self, job: Job) -> None:
        """Give a job to an idle worker."""
        worker = next(worker for worker in self._workers if worker.job is None)
        worker.job = job
        try:
            worker.pipe.send(job)
        except BrokenPipeError:
            return  # it died while idle: `wait` returns the job as LostJob

    def wait(self, timeout: float) -> list["Done[Job, Result] | LostJob[Job]"]:
        """Return the jobs that have ended, after at most `timeout` seconds without one."""
        busy = {worker.pipe: worker for worker in self._workers if worker.job is not None}
        return [self._received(busy[pipe]) for pipe in wait(list(busy), timeout) if isinstance(pipe, Connection)]

    def _received(self, worker: "_Worker[Job]") -> "Done[Job, Result] | LostJob[Job]":
        job = worker.job
        assert job is not None
        try:
            result: Result = worker.pipe.recv()
        except (EOFError, OSError):  # an OSError if it died within a message
            worker.process.join()
            worker.pipe.close()
            self._workers[worker.number] = self._started(worker.number)
            return LostJob(job, worker.process.exitcode)
        worker.job = None
        return Done(job, result)


def _serve(setup: "Setup[Job, Result]", number: int, stop: c_byte, pipe: Connection) -> None:
    """Execute jobs from the pipe until its other end is closed; if the parent dies, end even during a job."""
    guard()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to all; the parent decides
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with setup(number, lambda: bool(stop.value)) as work:
        while True:
            try:
                job: Job = pipe.recv()
            except (EOFError, ConnectionResetError):
                return
            result = work(job)
            try:
                pipe.send(result)
            except BrokenPipeError:
                return


def _end_with_parent() -> None:
    """Wait until the parent dies, then end the process. A resumed campaign repeats the job."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))

"""Tests of the pool of worker processes: results, replacement of dead workers, and the end of jobs on request."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fuzz.campaign.pool import Done, LostJob, Pool


@contextmanager
def _calculator(number: int, stop: Callable[[], bool]) -> Iterator[Callable[[str], str]]:
    def work(job: str) -> str:
        if job == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if job == "long":
            return "x" * 10_000_000
        if job == "until stopped":
            while not stop():
                pass
        return f"{job} by {number}"

    yield work


def _next(pool: Pool[str, str]) -> Done[str, str] | LostJob[str]:
    (ended,) = pool.wait(60)
    return ended


def test_a_worker_that_dies_is_replaced_and_its_job_is_returned() -> None:
    with Pool(_calculator, 1) as pool:
        pool.submit("die")
        assert _next(pool) == LostJob("die", -signal.SIGKILL)
        pool.submit("live")
        assert _next(pool) == Done("live", "live by 0")


def test_a_worker_that_died_while_idle_is_replaced_too() -> None:
    with Pool(_calculator, 1) as pool:
        pool.submit("live")
        assert _next(pool) == Done("live", "live by 0")
        (worker,) = pool._workers
        worker.process.kill()
        worker.process.join()
        pool.submit("again")
        assert _next(pool) == LostJob("again", -signal.SIGKILL)
        pool.submit("again")
        assert _next(pool) == Done("again", "again by 0")


def test_a_worker_that_dies_while_it_sends_its_result_is_replaced_too() -> None:
    with Pool(_calculator, 1) as pool:
        pool.submit("long")
        (worker,) = pool._workers
        assert worker.pipe.poll(60)
        worker.process.kill()
        assert _next(pool) == LostJob("long", -signal.SIGKILL)


def test_running_jobs_end_on_request() -> None:
    with Pool(_calculator, 1) as pool:
        pool.submit("until stopped")
        assert (pool.idle, pool.jobs) == (0, ["until stopped"])
        assert pool.wait(0.05) == []
        pool.stop()
        assert _next(pool) == Done("until stopped", "until stopped by 0")


def test_a_worker_that_dies_while_it_asks_whether_to_stop_holds_up_nobody() -> None:
    with Pool(_calculator, 1) as pool:
        for _ in range(5):
            pool.submit("until stopped")
            assert pool.wait(0.5) == []
            pool._workers[0].process.kill()
            assert _next(pool) == LostJob("until stopped", -signal.SIGKILL)
        pool.stop()

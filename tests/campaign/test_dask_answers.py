"""Tests of a Dask pool with hand-made answers of its worker: jobs that it sends, and findings that it stores."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fuzz.campaign import remote
from fuzz.campaign.catalog import opened
from fuzz.campaign.dask_pool import DaskPool
from fuzz.campaign.plan import Plan
from fuzz.campaign.pool import Done
from fuzz.campaign.remote import Answer, Preparation, RemoteWork
from fuzz.campaign.schedule import Range, RangeResult, Reduction, ReductionResult
from fuzz.campaign.store import Store
from fuzz.campaign.worker import EXAMPLES
from fuzz.servers.arm_options import ArmOptions
from fuzz.triage.findings import StoredFinding
from fuzz.triage.interestingness import ReducedCase
from oracles.model.case import Case, Step
from oracles.model.finding import Finding

PLAN = Plan(1, {"set_operations": 1}, None, None, stop_at_first=False, arms=ArmOptions())
WORK = RemoteWork("one", "1", (), {}, same_build=True, plan=PLAN, options="", records={}, code="")
FINDING = Finding("result", ("a", "a"), "rows", 0, "rows differ", "", "")
FIRST, OTHER = (Case("test", (), (Step(f"SELECT {number}"),)) for number in (1, 2))
JOB = Range(0, "set_operations", 0, 1)
NOTHING = Answer(RangeResult(), (), (), (), "", (), "")
Job = Range | Reduction


class Client:
    """A stub of Dask's client with one worker, which answers each job as `answer` says."""

    status = "running"
    scheduler = SimpleNamespace(address="stub")

    def __init__(self) -> None:
        self.answer = NOTHING
        self.explained: tuple[StoredFinding, ...] = ()  # that came with the last job

    def nthreads(self) -> dict[str, int]:
        return {"worker": 1}

    def submit(self, function: Callable[..., object], *arguments: Any, **_: object) -> object:
        answer: object = Preparation()
        if function is remote.execute:
            self.explained = arguments[-1]
            answer = self.answer
        return SimpleNamespace(status="finished", result=lambda timeout: answer)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with opened(tmp_path) as store:
        store.begin(PLAN, {})
        yield store


def done(client: Client, pool: DaskPool, job: Job, answer: Answer) -> Done[Any, Any]:
    """Return the ended job to which the worker gave this answer."""
    client.answer = answer
    while not pool.idle:
        pool.wait(0)
    pool.submit(job)
    (ended,) = pool.wait(1)
    assert isinstance(ended, Done)
    return ended


def reduced_in_vain() -> Answer:
    """Return the answer of a reduction that did not show the finding again."""
    smallest = ReducedCase(FIRST, FINDING, 0, 20)
    write = partial(Store.record_reduction, fingerprint=FINDING.fingerprint, smallest=smallest, seconds=1.0)
    return replace(NOTHING, result=ReductionResult(""), writes=(write,))


def test_another_case_of_an_explained_finding_is_reduced_anew(store: Store) -> None:
    client, found = Client(), (FINDING, "1/test/0", FIRST)
    pool = DaskPool(client, WORK, store, print, bool)
    assert done(client, pool, JOB, replace(NOTHING, found=(found,))).result.found == [FINDING.fingerprint]
    done(client, pool, Reduction(FINDING.fingerprint), reduced_in_vain())
    other = replace(NOTHING, found=((FINDING, "1/test/1", OTHER),), others=((FINDING, "1/test/1", OTHER),))
    assert done(client, pool, JOB, other).result.found == [FINDING.fingerprint]
    assert [each.finding for each in client.explained] == [FINDING]
    stored = store.finding(FINDING.fingerprint)
    assert (stored.case, stored.case_id, stored.count, stored.reduced) == (OTHER, "1/test/1", 2, False)
    # another worker began its job before that
    assert done(client, pool, JOB, replace(other, others=(found,))).result.found == []
    assert client.explained == ()
    assert store.finding(FINDING.fingerprint).case == OTHER


def test_a_few_cases_of_an_explained_finding_are_tried(store: Store) -> None:
    client = Client()
    store.add_finding(FINDING, "1/test/0", FIRST)
    for write in reduced_in_vain().writes:
        write(store)
    pool = DaskPool(client, WORK, store, print, bool)  # of a resumed campaign
    for number in range(1, EXAMPLES):
        done(client, pool, JOB, replace(NOTHING, found=((FINDING, f"1/test/{number}", OTHER),)))
        assert [each.count for each in client.explained] == [number]
        assert client.explained[0].case.all_steps == ()
    done(client, pool, JOB, NOTHING)
    assert client.explained == ()

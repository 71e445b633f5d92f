"""Tests of interrupted reductions: after a kill or a full disk, they continue from their smallest case."""

import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from fuzz.campaign.catalog import opened
from fuzz.campaign.store import Store
from fuzz.triage.findings import StoredFinding
from fuzz.triage.reduction.problem import sort_key
from fuzz.triage.reproducer.reproducer import load
from oracles.model.case import Case, Kind, Step
from tests.cli.command import Command, Ended, ended
from tests.cli.unreduced import CASE_ID, QUERY, SCENE, unreduced
from tests.servers.disk import fill, of_limited_size

pytestmark = [pytest.mark.servers, pytest.mark.long, pytest.mark.timeout(900)]

# The query waits, so each test takes a while. No two tables can be dropped together.
SLOW = QUERY.sql.replace("FROM (VALUES (5), (10), (15)) AS o (x)", "FROM (SELECT 5 * n FROM w) AS o (x)")
WAITING = (
    Step("CREATE FUNCTION waited() RETURNS int VOLATILE BEGIN ATOMIC SELECT pg_sleep(0.02); SELECT 1; END"),
    Step("CREATE TABLE w (n int)"),
    *(Step(f"INSERT INTO w SELECT {number} * waited()") for number in (1, 2, 3)),
)
NEEDLESS = tuple(Step(f"CREATE TABLE t{number} (a int, b text)") for number in range(16))
CASE = Case("by_hand", (*WAITING, *SCENE, *NEEDLESS), (Step(SLOW, Kind.QUERY),))


@pytest.fixture
def campaign(pgduel: Command, bugged: tuple[str, ...]) -> Path:
    return unreduced(pgduel, bugged, CASE)


def found_in(campaign: Path) -> StoredFinding:
    with opened(campaign) as store:
        return finding_of(store)


def finding_of(store: Store) -> StoredFinding:
    (found,) = (each for each in store.findings() if each.case_id == CASE_ID)
    return found


def await_smaller(process: subprocess.Popen[str], campaign: Path, than: Case) -> StoredFinding:
    """Wait until the reduction has a smaller case."""
    with opened(campaign) as store:
        while sort_key((found := finding_of(store)).least.case) >= sort_key(than):
            assert process.poll() is None, process.communicate()
            time.sleep(0.1)
    assert not found.reduced
    return found


def require_reduced(campaign: Path, best: StoredFinding) -> None:
    """Require that the reduction ended with a case that is no larger, and that the script has this case."""
    found = found_in(campaign)
    assert found.reduced
    assert found.reproducer is not None
    assert load(str(found.reproducer)).case.steps == found.least.case.steps
    assert found.least.shown == found.least.runs
    assert sort_key(found.least.case) <= sort_key(best.least.case)


def resumed(pgduel: Command, campaign: Path, best: StoredFinding) -> Ended:
    """Resume the campaign, and require that the finding's smallest case never grows."""
    process = pgduel.start("fuzz", "--resume", "last")
    with opened(campaign) as store:
        while process.poll() is None:
            assert sort_key(finding_of(store).least.case) <= sort_key(best.least.case)
            time.sleep(0.2)
    return ended(process)


def test_a_killed_campaign_continues_from_the_smallest_case(pgduel: Command, campaign: Path) -> None:
    process = pgduel.start("fuzz", "--resume", "last")
    await_smaller(process, campaign, CASE)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)  # ends only if the worker, which has these pipes too, ends
    best = found_in(campaign)
    assert best.reproducer is not None
    assert load(str(best.reproducer)).case.steps[-1].sql == SLOW  # the script is complete
    done = resumed(pgduel, campaign, best)
    assert done.status == 1, done.out + done.err
    require_reduced(campaign, best)


def test_a_killed_worker_costs_only_the_running_test(pgduel: Command, campaign: Path) -> None:
    process = pgduel.start("fuzz", "--resume", "last", "--workers", "1")
    best = await_smaller(process, campaign, CASE)
    (worker,) = (each for each in psutil.Process(process.pid).children() if "spawn_main" in " ".join(each.cmdline()))
    worker.kill()
    done = ended(process)
    assert done.status == 1, done.out + done.err
    assert "a worker died" in done.out
    require_reduced(campaign, best)


def test_a_reduction_outlasts_a_full_disk(pgduel: Command, bugged: tuple[str, ...]) -> None:
    with of_limited_size(pgduel.campaigns, 4) as full:
        campaign = unreduced(pgduel, bugged, CASE)
        process = pgduel.start("fuzz", "--resume", "last")
        best = await_smaller(process, campaign, CASE)
        filling = fill(full)
        time.sleep(2)
        filling.unlink()
        done = ended(process)
        assert done.status == 1, done.out + done.err
        assert "is not reduced" not in done.out
        require_reduced(campaign, best)

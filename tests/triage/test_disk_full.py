"""Tests of a full disk during reduction: an error, no finding, and a reduction that continues later."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from fuzz.campaign.catalog import opened
from fuzz.campaign.store import Store
from fuzz.errors import ServerError
from fuzz.servers.arm import Arm
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster
from fuzz.triage.interestingness import ReducedCase
from fuzz.triage.triage import Triage
from oracles.model.case import Case, Kind, Step
from oracles.model.finding import Finding
from tests.servers.disk import fill, of_limited_size

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]

FINDING = Finding("result", ("a", "b"), "rows under plan x", None, "rows", "", "")
# The query differs between servers of one build. Its table takes room on the disk.
QUERY = "SELECT n FROM t WHERE n > 1 OR current_setting('data_directory') LIKE '%/b-%'"
FILLED = Step("INSERT INTO t SELECT g, repeat('x', 1000) FROM generate_series(1, 9000) AS g")
NEEDLESS = tuple(Step(f"CREATE TABLE t{number} (a int, b text)") for number in range(16))
CASE = Case("by_hand", (Step("CREATE TABLE t (n int, b text)"), FILLED, *NEEDLESS), (Step(QUERY, Kind.QUERY),))


@pytest.fixture
def disk(open_directory: Path) -> Iterator[Path]:
    with of_limited_size(open_directory / "disk", 1500) as directory:
        yield directory


class FillingStore(Store):
    """A store that fills the servers' disk when it records the first smaller case."""

    disk: Path

    def record_progress(self, fingerprint: str, smallest: ReducedCase) -> None:
        super().record_progress(fingerprint, smallest)
        if len(smallest.case.all_steps) < len(CASE.all_steps):
            fill(self.disk)


def test_a_reduction_continues_when_servers_have_room_again(build: Build, disk: Path, tmp_path: Path) -> None:
    with ExitStack() as stack:
        store = stack.enter_context(closing(FillingStore(tmp_path)))
        store.disk = disk
        store.add_finding(FINDING, "1/by_hand/0", CASE)
        arms = [Arm(name, build, stack.enter_context(Cluster(build, name, directory=disk)), ()) for name in ("a", "b")]
        (found,) = store.findings()
        with pytest.raises(ServerError, match=r"the disk of server \w is full; make room for|make room there"):
            Triage("", {}, store).reduce(found, arms)
        (best,) = store.findings()
        assert not best.reduced
        assert len(best.least.case.all_steps) < len(CASE.all_steps)
        (disk / "filling").unlink()
        for arm in arms:
            arm.cluster.restart()
        left = Triage("", {}, stack.enter_context(opened(tmp_path))).reduce(best, arms)
    assert left.shown
    assert len(left.case.all_steps) <= len(best.least.case.all_steps)

"""False alarms of the oracle `statistics` on a correct server: 1,000 independent samples per arm, by all methods.

At most 1 % of the bounds may be below 1 %, and no failed test may fail again in two more samples.
"""

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from fuzz.execution.executor import Executor
from fuzz.generators import loopback
from fuzz.generators.foreign_analyze.remote import METHODS
from fuzz.servers.arm import Arm, shipped_series
from fuzz.servers.base import resolve_base
from fuzz.servers.build import ensure_build
from fuzz.servers.cluster import Cluster
from fuzz.servers.flavor import FLAVORS
from fuzz.servers.series import apply_series
from oracles.model.case import Case, Kind, Step
from oracles.statistics.oracle import Statistics, all_deviations, analyses
from oracles.statistics.sample_tests import LEVEL

pytestmark = [pytest.mark.servers, pytest.mark.long, pytest.mark.timeout(3600)]

RUNS, AT_ONCE = 1000, 20
ARMS = ("upstream", "patched")
ROWS = "SELECT g, g % 23, nullif(g % 7, 0), g / 40, 'k' || g * g % 101 FROM generate_series(1, 4000) AS g"


@pytest.fixture(params=ARMS)
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    base = resolve_base("pg17", print)
    trees = apply_series(base.tree, shipped_series(request.param, base))
    build = ensure_build(trees[-1], FLAVORS["assert"], print)
    with Cluster(build, "alarms") as cluster, Executor((Arm("alarms", build, cluster, trees),), "alarms") as executor:
        yield executor


def analyzed(method: str) -> Case:
    """Return a case that analyzes a table of about 500 blocks several times."""
    near = "(a int, b int, c int, d int, e text) WITH (fillfactor = 10)"
    scene = (
        *loopback.PROLOGUE,
        f"CREATE TABLE near {near}",
        f"INSERT INTO near {ROWS}",
        "ANALYZE near",
        loopback.foreign_table("far", "(a int, b int, c int, d int, e text)", "near", "fetch_size '1000'"),
        loopback.table_option("far", "analyze_sampling", method),
        "SET default_statistics_target = 1",
    )
    pair = (Step("ANALYZE far"), Step("SELECT count(*) FROM near", Kind.QUERY))
    return Case("alarms", tuple(map(Step, scene)), pair * AT_ONCE)


def test_correct_samples_are_rarely_rejected(
    executor: Executor, record_property: Callable[[str, object], None]
) -> None:
    tests: Counter[str] = Counter()
    below: Counter[str] = Counter()
    failures = runs = 0
    while runs < RUNS:
        case = analyzed(METHODS[runs // AT_ONCE % len(METHODS)])
        (run,) = Statistics().own_runs(case, ("alarms",))
        found = analyses(case, executor.observe(case, [run])[run]) or {}
        assert found  # timeouts of a slow machine may cost some analyses
        for each in found.values():
            runs += 1
            for (name, _), deviation in all_deviations(each).items():
                tests[name] += 1
                below[name] += deviation.probability < 0.01
                failures += deviation.probability < LEVEL
    report = f"{runs} samples: {failures} failures in {tests.total()} tests; below 1 %: {dict(below)}"
    record_property("report", report)
    for name, number in tests.items():
        assert below[name] <= number * 0.01 + 3 * (number * 0.01) ** 0.5, name
    assert failures <= tests.total() * LEVEL + 3 * max(1.0, (tests.total() * LEVEL) ** 0.5)

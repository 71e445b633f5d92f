"""The table of functions that each workload enters, `entered.jsonl`, from measurements on PostgreSQL 17.

After workloads were added or changed, renew it (half an hour): `python -m fuzz.campaign.direction.table`.
"""

from collections.abc import Mapping
from contextlib import closing
from math import ceil, sqrt
from typing import Final

from fuzz.campaign.direction.direction import Entered, Function, write_entered
from fuzz.engines.seeded import case_of
from fuzz.execution.executor import Executor
from fuzz.execution.source_database import SourceDatabase
from fuzz.generators.generator import Generator, Scale
from fuzz.output import note
from fuzz.servers.arm import Arm
from fuzz.servers.base import resolve_base
from fuzz.servers.build import Build, ensure_build
from fuzz.servers.cluster import Cluster
from fuzz.servers.coverage import function_calls, require_tools
from fuzz.servers.flavor import COVERAGE, FLAVORS
from fuzz.sources.source import UserInput
from fuzz.sources.workloads import default_workloads, workload_named
from oracles.model.case import CaseId
from oracles.model.observation import Run

_SEED: Final = 1
_SECONDS: Final = 60  # of CPU time for each workload, according to its seconds per case
_OF_PROCESSES: Final = frozenset({"Pg_magic_func", "_PG_init"})  # called when a library is loaded, by no statement
_MARKED: Final = 2  # times the even share: functions without a larger share are left out


def rates(build: Build, workload: str) -> dict[Function, float]:
    """Return the calls of each function in a second of the server's CPU time, on a new cluster. Raises PgduelError."""
    with Cluster(build, workload) as cluster:
        arm = Arm("only", build, cluster, (build.tree,))
        before = function_calls(build, cluster.coverage)
        spent = cluster.cpu_seconds()
        with closing(SourceDatabase(arm, "entered", UserInput())) as target, Executor((arm,), "entered") as executor:
            generator = workload_named(workload, target)
            for index in range(cases_of(generator)):
                case = case_of(CaseId(_SEED, workload, index), Scale(), target)
                executor.observe(case, [Run("only", case.modes)])
        seconds = cluster.cpu_seconds() - spent
        after = function_calls(build, cluster.coverage)
    return {function: (calls - before.get(function, 0)) / seconds for function, calls in after.items()}


def cases_of(generator: Generator) -> int:
    """Return the number of cases of a measurement."""
    return ceil(_SECONDS / generator.cpu_seconds)


def entered(measured: Mapping[str, Mapping[Function, float]]) -> Entered:
    """Return the table of measured rates by workload.

    A function that is called for each row has a million times the calls of one that is called for each statement. The
    square roots of the rates leave a share to workloads that call it for a few rows.
    """
    workloads = tuple(sorted(measured))
    shares: dict[str, dict[str, tuple[int, ...]]] = {}
    for file, name in sorted({function for each in measured.values() for function in each}):
        if name in _OF_PROCESSES:
            continue
        roots = [sqrt(measured[workload].get((file, name), 0)) for workload in workloads]
        percents = tuple(round(100 * root / sum(roots)) if root else 0 for root in roots)
        if max(percents) > _MARKED * 100 / len(workloads):
            shares.setdefault(file, {})[name] = percents
    return Entered(workloads, shares)


def main() -> None:
    """Measure all workloads of a run without options, and write the table."""
    require_tools()
    build = ensure_build(resolve_base("pg17", note).tree, FLAVORS[COVERAGE], note, label="upstream")
    with Cluster(build, "workloads") as cluster:
        target = SourceDatabase(Arm("only", build, cluster, (build.tree,)), "default", UserInput())
        workloads, left_out = default_workloads(target)
        target.close()
    for name, reason in left_out.items():
        note(f"left out: {name} ({reason})")
    measured = {}
    for workload in workloads:
        note(f"measuring {workload}")
        measured[workload] = rates(build, workload)
    write_entered(entered(measured))


if __name__ == "__main__":
    main()

"""The data of a bench, made once by the reference and kept: arms start from copies.

So all arms have equal data and equal statistics, and the next run has the same. Only pgduel's own arms share data,
because another patch may change the format of files without a change of the catalogs. The directory has the data of the
last run's parameters only.
"""

import hashlib
import inspect
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from fuzz import workdir
from fuzz.bench.bench import Bench, BenchError, Point
from fuzz.servers import Report
from fuzz.servers.account import server_account
from fuzz.servers.arm import Arm
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster

_NOTE = "made_of"
_DATA = "data"
_STOPPED = "shut down"  # the state in pg_controldata


@contextmanager
def kept_data(bench: Bench, points: Sequence[Point], reference: Build, report: Report) -> Iterator[Path]:
    """Yield the data directory of a stopped server with the points' data. No other process changes it meanwhile.

    Raises BenchError, ServerError, StorageError.
    """
    home = workdir.bench_data() / bench.name
    with FileLock(f"{home}.lock"):
        made_of = _made_of(bench, points, reference)
        note = home / _NOTE
        if not note.is_file() or note.read_text() != made_of:
            report(f"making the data of {bench.name}")
            with workdir.writing(home):
                shutil.rmtree(home, ignore_errors=True)
                home.mkdir()
            server_account().require_entry(home)
            _make(bench, points, reference, home / _DATA)
            workdir.write(note, made_of)
        yield home / _DATA


def have_equal_catalogs(one: Build, other: Build) -> bool:
    """Return whether initdb makes the same catalogs with two builds."""
    return _catalogs(one) == _catalogs(other)


def _make(bench: Bench, points: Sequence[Point], build: Build, data: Path) -> None:
    directory = workdir.clusters_on_disk()
    with Cluster(build, "data", settings=dict(bench.settings), directory=directory) as cluster:
        bench.fill(Arm("data", build, cluster, ()), points)
        cluster.stop()
        _require_stopped(cluster)
        os.rename(cluster.data, data)


def _require_stopped(cluster: Cluster) -> None:
    """Check that the server was not killed: after recovery, its unlogged tables would be empty. Raises BenchError."""
    printed = cluster.run(cluster.build.bindir / "pg_controldata", str(cluster.data)).stdout
    state = next((line for line in printed.splitlines() if line.startswith("Database cluster state")), "")
    if state.partition(":")[2].strip() != _STOPPED:
        raise BenchError("the server with the data of the bench did not stop in time; run the command again")


def _made_of(bench: Bench, points: Sequence[Point], build: Build) -> str:
    """Return a digest of all that the data depend on."""
    code = Path(inspect.getfile(type(bench))).read_bytes()
    facts = (build.key, server_account().uid, bench.data(points), dict(bench.settings))
    return hashlib.sha256(repr(facts).encode() + code).hexdigest()


def _catalogs(build: Build) -> str:
    """Return a digest of the files from which initdb makes the catalogs."""
    (bootstrap,) = build.prefix.glob("share/**/postgres.bki")
    files = sorted((bootstrap, *bootstrap.parent.glob("*.sql")))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()

"""`pgduel campaign scheduler` and `pgduel campaign worker`: Dask's programs, in pgduel's Python environment."""

import os
import sys
from typing import Annotated

import typer

from fuzz import workdir
from fuzz.campaign.pool import processors
from fuzz.cli.options import with_dask

Options = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- OPTION...]", help="Options of Dask's own program.", show_default=False),
]


def scheduler(options: Options = None) -> None:
    """Run a Dask scheduler for campaigns on many machines, until Ctrl-C. It prints its address."""
    _run("dask_scheduler", "--no-dashboard", *(options or ()))


def worker(
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="Address of the scheduler.", show_default=False)],
    options: Options = None,
    *,
    workers: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of processes, each with servers of its own.")
    ] = processors(),
) -> None:
    """Run cases of campaigns with `--dask` on this machine, until Ctrl-C."""
    own = ("--nworkers", str(workers), "--nthreads", "1", "--memory-limit", "0", "--no-dashboard")
    _run("dask_worker", address, *own, *(options or ()))


def _run(program: str, *arguments: str) -> None:
    """Replace this process by a program of Dask, which receives signals itself. Raises PgduelError."""
    with_dask(program)
    command = (sys.executable, "-P", "-m", f"distributed.cli.{program}", *arguments)
    os.execve(sys.executable, command, os.environ | {"PYTHONPATH": str(workdir.PROJECT)})

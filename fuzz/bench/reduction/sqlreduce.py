"""Debian's sqlreduce, which reduces one statement while it raises the same error, on the suspect's server alone.

All other statements of the case stay. They create the scene, once, in a separate database.
"""

import re
import subprocess
import time
from dataclasses import replace
from typing import ClassVar, Final

from fuzz.bench.bench import connected
from fuzz.bench.reduction.reducer import CountedTest, Reducer, Task
from fuzz.errors import PgduelError, last_line
from fuzz.execution.executor import STATEMENT_TIMEOUT_MS
from fuzz.execution.session import SEARCH_PATH
from fuzz.execution.worker_database import TEMPLATE
from fuzz.servers.arm import Arm
from fuzz.servers.settings import start_options
from fuzz.triage.reduction.problem import with_step
from fuzz.triage.reproducer.script import write_steps
from oracles.model.case import Case, Kind
from oracles.model.mode import settings_of

_DATABASE: Final = "duel_sqlreduce"
_RESULT: Final = re.compile(r"^Minimal query yielding the same error:\n(.*?)\n\nPretty", re.MULTILINE | re.DOTALL)
_TRIES: Final = re.compile(r"^Seen: (\d+) items", re.MULTILINE)
_NOT_THIS: Final = "it reduces a statement that raises an error"


class SqlReduce(Reducer):
    """sqlreduce (Berg and others)."""

    name: ClassVar[str] = "sqlreduce"
    program: ClassVar[str] = "sqlreduce"

    def unfit(self, task: Task) -> str:
        """Return the reason if the finding is no error or crash of a single statement."""
        step = task.found.finding.step
        if step is None:
            return f"{_NOT_THIS}; this finding has no single statement"
        if task.found.finding.oracle != "crash" and not task.found.finding.origin.startswith("outcome: "):
            return f"{_NOT_THIS}; this finding is of the oracle {task.found.finding.oracle}"
        statement = task.found.case.all_steps[step]
        if statement.kind in (Kind.COPY_IN, Kind.COPY_OUT) or statement.params:
            return f"{_NOT_THIS} by itself, without data or parameters"
        return ""

    def reduce(self, task: Task, test: CountedTest) -> Case:
        """Reduce the statement that shows the finding."""
        step = task.found.finding.step
        assert step is not None
        case, arm = test.interestingness.whole, _erring(task)
        environment = _environment(arm, case)
        with connected(arm) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {_DATABASE} WITH (FORCE)")
            connection.execute(f"CREATE DATABASE {_DATABASE} TEMPLATE {TEMPLATE}")
        _create_scene(arm, replace(case, scene=case.all_steps[:step], steps=()), environment)
        out = _run(case.all_steps[step].sql, environment, test.until)
        tries, found = _TRIES.search(out), _RESULT.search(out)
        if tries is None or found is None:
            raise PgduelError(f"sqlreduce printed no result: {last_line(out)}")
        test.tries += int(tries[1])
        return with_step(case, step, replace(case.all_steps[step], sql=found[1]))


def _erring(task: Task) -> Arm:
    """Return the arm on which the statement fails."""
    expected, suspect = task.found.finding.arms
    name = expected if task.found.finding.origin.endswith(" / ok") else suspect
    return next(arm for arm in task.arms if arm.name == name)


def _environment(arm: Arm, case: Case) -> dict[str, str]:
    """Return the environment of a client whose sessions have the case's settings."""
    settings = {"search_path": SEARCH_PATH, "statement_timeout": str(STATEMENT_TIMEOUT_MS)} | settings_of(case.modes)
    own = {"PGPORT": str(arm.cluster.port), "PGDATABASE": _DATABASE}
    return arm.cluster.environment() | own | {"PGOPTIONS": start_options(settings)}


def _create_scene(arm: Arm, scene: Case, environment: dict[str, str]) -> None:
    """Create the scene by psql, even if some of its statements fail."""
    script = "\n".join(("CREATE SCHEMA IF NOT EXISTS duel;", *write_steps(scene)))
    arm.cluster.run(arm.build.bindir / "psql", "-X", "-q", stdin=script, variables=environment)


def _run(statement: str, environment: dict[str, str], until: float) -> str:
    """Return sqlreduce's output. Raises PgduelError."""
    command = ["sqlreduce", "--database", _DATABASE, "--sqlstate", "--timeout", str(STATEMENT_TIMEOUT_MS)]
    seconds = max(0.0, until - time.monotonic())
    try:
        done = subprocess.run(
            command, input=statement, env=environment, capture_output=True, text=True, timeout=seconds
        )
    except subprocess.TimeoutExpired as error:
        raise PgduelError(
            "sqlreduce did not end in time, and prints no result before its end; give more --seconds"
        ) from error
    if done.returncode:
        raise PgduelError(f"sqlreduce failed: {last_line(done.stderr)}")
    return done.stdout

"""The output of psql for a reproducer, on a server with the bug and on one without it."""

import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from fuzz.servers.arm import Arm, open_arms
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.cluster import await_connections

_DATABASE = "plain"
_STEADY = 3  # runs; a line that all of them print depends neither on time nor on chance
_RUNS = 20  # maximal number of runs with the bug
_CLEANING_UP = "DROP SCHEMA duel CASCADE;"
_TABLES = "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'duel'::regnamespace AND relkind IN ('r', 'm')"


Printed = Counter[tuple[str, str]]  # lines, each with the line of the script that caused it


@dataclass(frozen=True, slots=True)
class PsqlResult:
    """Whether the outputs of the two servers differ, and the number of rows in the sound server's tables."""

    differs: bool
    rows: int


def run_in_psql(reproducer: Path, arms: Sequence[str]) -> PsqlResult:
    """Run a reproducer on two arms in the form of --arm, the sound one first. Raises PgduelError."""
    specs = ArmOptions.given(None, None, None, None, arms, "assert").specs(print)
    with open_arms(specs, print) as (sound, bugged):
        right = [_printed(sound, reproducer) for _ in range(_STEADY)]
        always = _in_all(right)
        wrong: list[Printed] = []
        while len(wrong) < _RUNS and not (wrong and always - wrong[-1]):
            wrong.append(_printed(bugged, reproducer))
        differs = bool(always - wrong[-1]) or bool(_in_all(wrong) - right[0])
        return PsqlResult(differs, _rows_left(sound, reproducer))


def _in_all(runs: Sequence[Printed]) -> Printed:
    """Return the lines that all runs printed."""
    lines = runs[0]
    for run in runs[1:]:
        lines = lines & run
    return lines


def _printed(arm: Arm, reproducer: Path) -> Printed:
    """Return the lines that psql prints. Error messages lack numbers, which depend on files and processes."""
    script = reproducer.read_text(encoding="utf-8")
    done = _psql(arm, script)
    messages = re.sub(r"\d+", "N", done.stderr).splitlines()
    return Counter((*_with_causes(script, done.stdout), *(("", line) for line in messages)))


def _with_causes(script: str, printed: str) -> Iterator[tuple[str, str]]:
    """Yield each line with the line of the script above it, which psql repeats."""
    echoed = set(script.splitlines())
    last = ""
    for line in printed.splitlines():
        last = line if line in echoed else last
        yield last, line


def _psql(arm: Arm, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a new database."""
    await_connections(arm.cluster)
    with psycopg.connect(**_where(arm, "postgres"), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {_DATABASE} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {_DATABASE}")
    where = ("-h", str(arm.cluster.socket_dir), "-p", str(arm.cluster.port), "-U", "postgres", _DATABASE)
    return arm.cluster.run(arm.build.bindir / "psql", "-X", "-f", "-", *where, stdin=script)


def _rows_left(arm: Arm, reproducer: Path) -> int:
    """Return the number of rows in the script's tables at its end."""
    _psql(arm, reproducer.read_text(encoding="utf-8").replace(_CLEANING_UP, ""))
    with psycopg.connect(**_where(arm, _DATABASE), autocommit=True) as connection:
        tables = [name for (name,) in connection.execute(_TABLES)]
        counts = [connection.execute(f"SELECT count(*) FROM ONLY {name}").fetchone() for name in tables]
    return sum(count for row in counts if row for count in row)


def _where(arm: Arm, database: str) -> Any:
    return arm.cluster.connect_kwargs | {"dbname": database}

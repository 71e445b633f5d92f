"""A reproducer as its reader runs it: by psql, on a server without and on one with the bug."""

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
from fuzz.servers.recovery import await_connections

_DATABASE = "plain"
_STEADY = 3  # runs, in all of which a line comes that is no matter of time or chance
_RUNS = 20  # with the bug, before it is said not to show
_CLEANING_UP = "DROP SCHEMA duel CASCADE;"
_TABLES = "SELECT oid::regclass::text FROM pg_class WHERE relnamespace = 'duel'::regnamespace AND relkind IN ('r', 'm')"


Printed = Counter[tuple[str, str]]  # lines, each with that of the script that it came of


@dataclass(frozen=True, slots=True)
class Seen:
    """Whether the server with the bug prints something else, and how many rows the sound one's tables hold."""

    differs: bool
    rows: int


def seen_by_psql(reproducer: Path, arms: Sequence[str]) -> Seen:
    """Run a reproducer on two arms, given as --arm has them, the sound one first. Raises PgduelError."""
    specs = ArmOptions.given(None, None, None, None, arms, "assert").specs(print)
    with open_arms(specs, print) as (sound, bugged):
        right = [_printed(sound, reproducer) for _ in range(_STEADY)]
        always = _in_all(right)
        wrong: list[Printed] = []
        while len(wrong) < _RUNS and not (wrong and always - wrong[-1]):
            wrong.append(_printed(bugged, reproducer))
        differs = bool(always - wrong[-1]) or bool(_in_all(wrong) - right[0])
        return Seen(differs, _rows_left(sound, reproducer))


def _in_all(runs: Sequence[Printed]) -> Printed:
    """Return the lines that all runs printed."""
    lines = runs[0]
    for run in runs[1:]:
        lines = lines & run
    return lines


def _printed(arm: Arm, reproducer: Path) -> Printed:
    """Return the lines that psql prints; of complaints, without the numbers, which tell files and processes."""
    script = reproducer.read_text(encoding="utf-8")
    done = _psql(arm, script)
    complaints = re.sub(r"\d+", "N", done.stderr).splitlines()
    return Counter((*_below(script, done.stdout), *(("", line) for line in complaints)))


def _below(script: str, printed: str) -> Iterator[tuple[str, str]]:
    """Yield each line with the one of the script, as psql repeats them, that it stands below."""
    asked = set(script.splitlines())
    last = ""
    for line in printed.splitlines():
        last = line if line in asked else last
        yield last, line


def _psql(arm: Arm, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a database of its own."""
    await_connections(arm.cluster)
    with psycopg.connect(**_where(arm, "postgres"), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {_DATABASE} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {_DATABASE}")
    where = ("-h", str(arm.cluster.socket_dir), "-p", str(arm.cluster.port), "-U", "postgres", _DATABASE)
    return arm.cluster.run(arm.build.bindir / "psql", "-X", "-f", "-", *where, stdin=script)


def _rows_left(arm: Arm, reproducer: Path) -> int:
    """Return how many rows the tables of a script hold in the end."""
    _psql(arm, reproducer.read_text(encoding="utf-8").replace(_CLEANING_UP, ""))
    with psycopg.connect(**_where(arm, _DATABASE), autocommit=True) as connection:
        tables = [name for (name,) in connection.execute(_TABLES)]
        counts = [connection.execute(f"SELECT count(*) FROM ONLY {name}").fetchone() for name in tables]
    return sum(count for row in counts if row for count in row)


def _where(arm: Arm, database: str) -> Any:
    return arm.cluster.connect_kwargs | {"dbname": database}

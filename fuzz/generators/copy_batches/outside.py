"""COPY with files and programs of the server, whose content is always the same."""

import random
from typing import Final

from fuzz.generators.choices import chance, pick, some
from fuzz.generators.copy_batches.changes import make_check
from fuzz.generators.copy_batches.formats import literal, make_output_options
from fuzz.generators.copy_batches.table import CopyState, CopyTable, Made
from oracles.model.case import Step

_SINKS: Final = ("'/dev/null'", "PROGRAM 'cat > /dev/null'")
_MANY: Final = "SELECT repeat('row', 99) FROM generate_series(1, 2000)"  # more bytes than a pipe holds
# A program that receives rows reads all of them, or none of more than a pipe holds. Otherwise it would depend on the
# moment whether the server fails to write. No file is on a full device, because oracles compare nothing after that.
_REFUSED: Final = (
    "COPY {name} (id, k) FROM '/nowhere/rows'",
    "COPY {name} (id, k) FROM '/dev'",
    "COPY {name} (id, k) FROM '/dev/null/rows'",
    "COPY {name} (id, k) FROM '/dev/null' WITH (FORMAT binary)",
    "COPY {name} (id, k) FROM PROGRAM 'exit 3'",
    "COPY {name} (id, k) FROM PROGRAM 'kill -9 $$'",
    "COPY {name} (id, k) FROM PROGRAM 'no_such_program 2> /dev/null'",
    "COPY (SELECT id FROM {name}) TO '/nowhere/rows'",
    "COPY (SELECT id FROM {name}) TO '/dev'",
    "COPY (SELECT id FROM {name}) TO 'relative/rows'",
    "COPY (SELECT id FROM {name}) TO PROGRAM 'cat > /dev/null; exit 3'",
    f"COPY ({_MANY}) TO PROGRAM 'exit 3'",
    "COPY one_text FROM PROGRAM 'echo a; echo \"\\.\"; exit 3'",
    "COPY (SELECT id FROM {name}) TO PROGRAM 'cat > /dev/null; no_such_program 2> /dev/null'",
)

# The server stops reading at the end marker, so the program ends by SIGPIPE.
_STOPPED: Final = Step(
    "COPY one_text FROM PROGRAM 'echo a; echo \"\\.\"; seq 1 40000'", tags=("copy.outside", "copy.outside.stopped")
)


def make_outside(rng: random.Random, state: CopyState, table: CopyTable) -> Made:
    """Return COPYs to files and programs, from a program, and some that fail."""
    loaded, state = _from_program(rng, state, table)
    refused = tuple(
        Step(statement.format(name=table.name), may_fail=True, tags=("copy.error.outside",))
        for statement in some(rng, _REFUSED, 8)
    )
    sinks = tuple(_to_sink(rng, table, sink) for sink in _SINKS)
    return (*sinks, loaded, _STOPPED, *refused, make_check(rng, state, table)), state


def _to_sink(rng: random.Random, table: CopyTable, sink: str) -> Step:
    options = make_output_options(rng, ("id", "k"), ordered=True)
    return Step(f"COPY (SELECT id, k FROM {table.name}) TO {sink}{options.sql()}", tags=("copy.outside",))


def _from_program(rng: random.Random, state: CopyState, table: CopyTable) -> tuple[Step, CopyState]:
    """Return a COPY of numbered rows with one key, which fails if the program does so at its end."""
    count, key = pick(rng, (1, 33, 65, 120)), pick(rng, table.keys)
    program = f"seq -f '%.0f,{'' if key is None else key}' {state.next_id} {state.next_id + count - 1}"
    fails = chance(rng, 20)
    program += "; exit 3" if fails else ""
    sql = f"COPY {table.name} (id, k) FROM PROGRAM {literal(program)} WITH (FORMAT csv)"
    return Step(sql, may_fail=fails, tags=("copy.outside",)), state.after_rows(count)

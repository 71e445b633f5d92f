"""Turns of `concurrent_changes` about DETACH PARTITION CONCURRENTLY, whose two transactions others see one by one.

The first transaction marks the partition, and then the detachment waits for the sessions that hold locks on the parent.
"""

import random
from typing import Final

from fuzz.generators.choices import between, chance, pick
from fuzz.generators.concurrent_changes.scene import Scene
from fuzz.generators.loopback import CONNECTION
from oracles.model.case import Step

_SPAN: Final = 10_000  # between the first keys of two partitions

# Executes a query in a session of its own while another one detaches a partition. The query has a snapshot from before
# the detachment. It starts when the session that the detachment waits for ends its transaction. A new session has no
# cached bounds, so it reads those of all partitions. The detached one has the highest OID, so it is read last.
_DURING: Final = f"""CREATE OR REPLACE FUNCTION during_detachment(parent text, part text, query text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE session text; result bigint; sessions text[] := '{{holder, reader, detacher}}';
BEGIN
  FOREACH session IN ARRAY sessions LOOP PERFORM dblink_connect(session, {CONNECTION}); END LOOP;
  PERFORM dblink_exec('holder', format('BEGIN; LOCK TABLE %I IN ACCESS SHARE MODE', parent));
  PERFORM dblink_exec('reader', 'BEGIN ISOLATION LEVEL REPEATABLE READ; DECLARE snapshot CURSOR FOR SELECT');
  PERFORM dblink_send_query('detacher', format('ALTER TABLE %I DETACH PARTITION %I CONCURRENTLY', parent, part));
  WHILE dblink_is_busy('detacher') = 1 AND EXISTS (SELECT FROM dblink('holder', format(
    'SELECT 1 FROM pg_inherits WHERE inhrelid = %L::regclass AND NOT inhdetachpending', part)) AS r (n int))
  LOOP PERFORM pg_sleep(0.001); END LOOP;
  PERFORM dblink_send_query('reader', query);
  PERFORM dblink_exec('holder', 'COMMIT');
  SELECT n INTO result FROM dblink_get_result('reader') AS r (n bigint);
  PERFORM * FROM dblink_get_result('reader') AS r (n bigint);
  PERFORM dblink_exec('reader', 'COMMIT');
  PERFORM * FROM dblink_get_result('detacher') AS r (status text);
  FOREACH session IN ARRAY sessions LOOP PERFORM dblink_disconnect(session); END LOOP;
  RETURN result;
END $$"""

# Leaves a detachment pending, because it waits for this session and ends at the limit.
_INTERRUPTED: Final = f"""CREATE OR REPLACE FUNCTION interrupted_detachment(parent text, part text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE result text;
BEGIN
  PERFORM dblink_connect('detacher', {CONNECTION});
  PERFORM dblink_exec('detacher', 'SET lock_timeout = 50');
  result := dblink_exec('detacher', format('ALTER TABLE %I DETACH PARTITION %I CONCURRENTLY', parent, part), false);
  PERFORM dblink_disconnect('detacher');
  RETURN result;
END $$"""
_COUNTED: Final = (
    "CREATE OR REPLACE FUNCTION counted(parent text) RETURNS bigint STABLE LANGUAGE plpgsql AS $$ DECLARE n bigint;"
    " BEGIN EXECUTE format('SELECT count(*) FROM %I', parent) INTO n; RETURN n; END $$"
)


def detachment_turn(rng: random.Random, _scene: Scene, number: int) -> list[Step]:
    """Return a detachment with statements before, during and after it."""
    name = f"d{number}"
    if chance(rng, 60):
        return _meanwhile(rng, name)
    return _pending(rng, name)


def _meanwhile(rng: random.Random, name: str) -> list[Step]:
    """Return a query while the detachment ends. The detached partition is empty, so its rows do not depend on time."""
    call = f"during_detachment('{name}', '{name}_gone', $q${pick(rng, _QUERIES).format(name)}$q$)"
    # Long lists take the query time to read. They must fit into pages of pg_class.
    return [
        *_made(name, between(rng, 3, 6), values=between(rng, 1000, 1500)),
        Step(_DURING),
        Step(f"SELECT {call}", tags=("detached_meanwhile",)),
        Step(f"SELECT count(*), sum(v) FROM {name}"),
    ]


_QUERIES: Final = (
    "SELECT count(*) FROM {0}",
    "SELECT sum(x.v) FROM {0} AS x JOIN {0} AS y USING (k)",
    "SELECT count(*) FROM {0} WHERE k = (SELECT 10001)",
    "SELECT sum(v) FROM {0} WHERE k IN (10001, 20002)",
    "WITH w AS (INSERT INTO {0} SELECT 10000 + g, g FROM generate_series(1, 9) AS g RETURNING v) SELECT sum(v) FROM w",
    "WITH w AS (UPDATE {0} SET k = 10000 WHERE k = 20001 RETURNING v) SELECT sum(v) FROM w",
    "WITH w AS (DELETE FROM {0} WHERE v < 5 RETURNING v) SELECT count(*) FROM w",
)


def _pending(rng: random.Random, name: str) -> list[Step]:
    """Return statements under old and new snapshots while a detachment is pending. Old ones see its rows."""
    interrupted = Step(f"SELECT interrupted_detachment('{name}', '{name}_gone')", tags=("detachment_pending",))
    rows = Step(f"SELECT count(*), sum(v), min(k) FROM {name}")
    added = Step(f"INSERT INTO {name} VALUES (0, 100), (10003, 200)", may_fail=True)
    if chance(rng, 50):
        old = Step("FETCH 1 FROM old")
        begun = [Step("BEGIN"), Step(f"DECLARE old CURSOR FOR SELECT counted('{name}') FROM generate_series(1, 3)")]
        seen = [step for _ in range(3) for step in (rows, old)][between(rng, 0, 1) :]
    else:
        begun = [Step("BEGIN ISOLATION LEVEL REPEATABLE READ")]
        seen = [rows, *([added] if chance(rng, 40) else []), rows]
    return [
        *_made(name, between(rng, 1, 3), values=between(rng, 3, 10)),
        Step(f"INSERT INTO {name} VALUES (0, 7), (0, 8)"),
        Step(_INTERRUPTED),
        Step(_COUNTED),
        *begun,
        Step(f"LOCK TABLE {name} IN ACCESS SHARE MODE"),
        *([rows] if chance(rng, 50) else []),
        interrupted,
        *seen,
        Step(pick(rng, ("COMMIT", "ROLLBACK"))),
        rows,
        added,
        Step(f"ALTER TABLE {name} DETACH PARTITION {name}_gone FINALIZE"),
        rows,
        Step(f"SELECT count(*), sum(v) FROM {name}_gone"),
    ]


def _made(name: str, parts: int, *, values: int) -> list[Step]:
    """Return the creation of a table with lists of values, and a last partition for zero alone."""
    keys = f"(SELECT string_agg(g::text, ', ') FROM generate_series(p * {_SPAN}, p * {_SPAN} + {values}) AS g)"
    return [
        Step(f"CREATE TABLE {name} (k int4, v int4) PARTITION BY LIST (k)"),
        Step(
            f"DO $$ BEGIN FOR p IN 1 .. {parts} LOOP EXECUTE format("
            f"'CREATE TABLE {name}_%s PARTITION OF {name} FOR VALUES IN (%s)', p, {keys}); END LOOP; END $$"
        ),
        Step(f"CREATE TABLE {name}_gone PARTITION OF {name} FOR VALUES IN (0)"),
        Step(
            f"INSERT INTO {name} SELECT p * {_SPAN} + g, g FROM generate_series(1, {parts}) AS p,"
            f" generate_series(1, {min(values, 9)}) AS g"
        ),
    ]

"""Remains of a case in its session: as seen by the session, by another connection, and by the operating system.

Costs on an assert build with 32 MB of shared buffers: The query from outside takes 0.4 ms on the server and 0.2 ms in
pgduel. Digests take 0.1 ms per table and 0.7 us per row. The list of temporary files takes 0.02 ms.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from fuzz.errors import ServerError
from fuzz.execution import messages
from fuzz.execution.exchanges import Exchange
from fuzz.execution.wire import Reply
from fuzz.execution.worker_database import WorkerDatabase
from fuzz.generators.loopback import LED_BY
from fuzz.servers.processes import sleeps
from oracles.model.observation import Residue, Resources

TIDY: Final = "RESET SESSION AUTHORIZATION; SET ROLE NONE; RESET ALL; CLOSE ALL; DEALLOCATE ALL"
LEFT_INSIDE: Final = (
    "SELECT 'cursor', name FROM pg_cursors UNION ALL SELECT 'prepared', name FROM pg_prepared_statements ORDER BY 1, 2"
)
DIGESTS: Final = "SELECT * FROM pgduel_tools.digests()"
CONTEXTS: Final = "SELECT * FROM pgduel_tools.contexts"
FLUSH: Final = "SELECT pg_stat_force_next_flush()"  # at the end of its transaction
CALLED: Final = """
SELECT oid::regprocedure FROM pg_proc
WHERE pronamespace = to_regnamespace('duel') AND pg_stat_get_function_calls(oid) > 0 ORDER BY 1"""
COUNTERS: Final = "SHOW pgduel_probe.counters"
# Names may have the number of a session. 16384 is FirstNormalObjectId.
SIZES: Final = """
SELECT relkind, pg_relation_size(oid) FROM pg_class WHERE oid >= 16384 AND relkind IN ('i', 'm', 'r') ORDER BY 1, 2"""

# Pinned buffers are listed only if there are any, because the summary is a hundred times cheaper than the list.
_LEFT_OUTSIDE = """
SELECT CASE WHEN (SELECT buffers_pinned FROM pg_buffercache_summary()) = 0 THEN '0' ELSE
    (SELECT count(*)::text FROM pg_buffercache WHERE pinning_backends > 0 AND reldatabase = $1::oid) END
UNION ALL
SELECT concat_ws(' ', locktype, mode,
                 CASE WHEN locktype = 'advisory' THEN format('%s/%s/%s', classid, objid, objsubid) END)
FROM pg_locks WHERE pid = $2::int AND locktype <> 'virtualxid'
"""
# Sessions behind foreign servers: their state, and the number of others with the same application name and user.
#
# Each server has its own application name, and postgres_fdw keeps one session per user and server. So any second
# session is an error. The query does not use the view pg_stat_activity, because it has joins, which a patch may have
# broken.
_LEFT_REMOTE = f"""
SELECT state, count(*) OVER (PARTITION BY application_name, usesysid) - 1, pid FROM pg_stat_get_activity(NULL)
WHERE application_name ~ format('^{LED_BY}%s\\M', $1::text) AND backend_type = 'client backend'
"""
_PIN_POLLS = 4  # other processes pin buffers briefly; a leak remains
_PAUSE = 0.01
_REMOTE_POLLS = 200  # after its connection was closed, a session needs CPU time to exit
# consecutive checks without a running session, after which none is about to exit
_ASLEEP_POLLS = 10
_RELATION_FILE = re.compile(r"/(?:base|global|pg_tblspc)/(?!.*pgsql_tmp)")
# names of mappings, apart from the main shared memory segment
_SHARED_MEMORY = ("/pg_dynshmem/", "/SYSV")


def residue(worker_db: WorkerDatabase, pid: int, inside: Sequence[tuple[str, str]]) -> Exchange[Residue]:
    """Return the remains of an idle backend.

    `inside` has the kinds and names of open objects according to its session.
    """
    for _ in range(_PIN_POLLS):
        rows = yield from worker_db.admin_query(_LEFT_OUTSIDE, (str(worker_db.database_oid), str(pid)))
        pins = int(rows[0][0] or 0)
        if not pins:
            break
        yield _PAUSE
    asleep = 0
    for _ in range(_REMOTE_POLLS):
        sessions = yield from worker_db.admin_query(_LEFT_REMOTE, (str(pid),))
        remote = _remote(pid, sessions)
        asleep = asleep + 1 if all(sleeps(int(remote_pid or 0)) for *_, remote_pid in sessions) else 0
        if not remote or asleep == _ASLEEP_POLLS:
            break
        yield _PAUSE
    return Residue(
        temp_files=worker_db.temporary_files(pid),
        pins=pins,
        locks=tuple(sorted(row[0] or "" for row in rows[1:])),
        cursors=tuple(name for kind, name in inside if kind == "cursor"),
        prepared=tuple(name for kind, name in inside if kind == "prepared"),
        remote=remote,
    )


def _remote(pid: int, sessions: Sequence[Sequence[str | None]]) -> tuple[str, ...]:
    """Return the problems of sessions behind foreign servers.

    If there are more sessions than connections, one is about to exit, so nothing is reported.
    """
    # Without the client's own socket.
    held = sum(target.startswith("socket:") for target in _descriptors(pid)) - 1
    busy = [f"{state} session" for state, *_ in sessions if state != "idle"]
    surplus = any(int(others or 0) for _, others, _ in sessions)
    if len(sessions) > held:
        return ()
    return (*sorted(busy), *(("one session too many",) if surplus else ()))


def resources(pid: int, contexts: Reply, called: Reply) -> Resources:
    """Return the resources of a backend after a repetition of the case, with the names of the functions called in it.

    Files of relations are not counted, because a backend keeps them open while it has descriptors to spare.
    """
    try:
        mappings = Path(f"/proc/{pid}/maps").read_text().splitlines()
    except OSError as error:
        raise _ended(pid) from error
    return Resources(
        open_files=sum(not _RELATION_FILE.search(target) for target in _descriptors(pid)),
        shared_memory=sum(any(name in line for name in _SHARED_MEMORY) for line in mappings),
        contexts={row[0] or "": (int(row[1] or 0), int(row[2] or 0)) for row in table(contexts)},
        called=frozenset(row[0] or "" for row in table(called)),
    )


def _descriptors(pid: int) -> Iterator[str]:
    """Yield the target of each descriptor of a backend, without those closed meanwhile. Raises ServerError."""
    directory = Path(f"/proc/{pid}/fd")
    try:
        descriptors = os.listdir(directory)
    except OSError as error:
        raise _ended(pid) from error
    for descriptor in descriptors:
        with suppress(FileNotFoundError):
            yield os.readlink(directory / descriptor)


def _ended(pid: int) -> ServerError:
    """Return the error for a backend that was killed after its last answer. The run is then repeated."""
    return ServerError(f"process {pid} ended before its resources were read")


def table(reply: Reply) -> list[list[str | None]]:
    """Return a reply's rows as values."""
    return [messages.values_of(row) for row in reply.rows]


def pairs(reply: Reply) -> tuple[tuple[str, str], ...]:
    """Return a reply's rows of two values each."""
    return tuple((row[0] or "", row[1] or "") for row in table(reply))


def counters(reply: Reply) -> dict[str, int]:
    """Return the reach counters, which are one text of `name=number` pairs; {} if the probe is not loaded."""
    text = (table(reply) or [[None]])[0][0] or ""
    return {name: int(number) for name, _, number in (pair.partition("=") for pair in text.split())}

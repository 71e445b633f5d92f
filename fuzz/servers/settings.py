"""Settings of clusters, as a table, as files, and as options of sessions."""

import re
from collections.abc import Iterable, Mapping

# initdb's settings, which two arms must have in common, and which cannot change later.
INITDB = (
    "--username=postgres",
    "--auth=peer",
    "--encoding=UTF8",
    "--locale=C",
    "--no-sync",
    "--no-instructions",
)
# Options against new defaults of a major version, which older ones reject: 18 has checksums.
INITDB_SINCE = {18: ("--no-data-checksums",)}

# The group of the relays' roles; each relay creates its own role. All arms have the group from the start.
RELAY_ROLES = "pgduel_relay"

# pg_hba.conf, in place of initdb's. The first matching line decides, so relays' roles come first: whoever opens a
# relay's port must have the password, although the connection comes from pgduel. The caller and the account of servers
# may be any other role, because cases change roles and foreign servers lead back to their own server; `ident` makes the
# map. No line admits TCP or replication.
HBA = f"""\
# TYPE  DATABASE  USER           METHOD
local   all       +{RELAY_ROLES}  scram-sha-256
local   all       all            peer map=pgduel
"""

# Small and volatile: a fuzzing cluster is temporary, and small memory reaches more code.
FUZZING = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    # synchronous_commit stays on: without it, the pages that VACUUM marks all-visible, and so plans, depend on timing.
    "fsync": "off",
    "full_page_writes": "off",
    "checkpoint_timeout": "1h",
    "max_wal_size": "512MB",
    # No background activity may change plans, or use buffers and time.
    "autovacuum": "off",
    "jit": "off",
    "shared_buffers": "32MB",
    # In the data directory, so deleted with it after a kill. In containers, /dev/shm may be small.
    "dynamic_shared_memory_type": "mmap",
    "max_connections": "40",
    "max_worker_processes": "20",
    "max_parallel_workers": "12",
    "max_prepared_transactions": "10",
    "max_locks_per_transaction": "512",  # many partitions in one transaction
    "restart_after_crash": "on",
    # The first field attributes a line to a backend.
    "logging_collector": "off",
    "log_destination": "stderr",
    "log_line_prefix": "%p|%a|",
    "log_min_messages": "warning",
    "log_min_error_statement": "panic",
    "log_checkpoints": "off",
    "log_autovacuum_min_duration": "-1",
    "lc_messages": "C",
    "timezone": "UTC",
    "log_timezone": "UTC",
}

# PostgreSQL's own tests expect its defaults.
SUITES = {
    "dynamic_shared_memory_type": "posix",
    "autovacuum": "on",
    "max_wal_size": "1GB",
    "shared_buffers": "128MB",
    "max_connections": "100",
    "max_worker_processes": "8",
    "max_parallel_workers": "8",
    "max_locks_per_transaction": "64",
    "shared_preload_libraries": "",
}


def ident(system_users: Iterable[str]) -> str:
    """Return pg_ident.conf, in which these system users may be any role."""
    return "".join(f'pgduel "{user}" all\n' for user in system_users)


def lines(settings: dict[str, str]) -> str:
    """Return the settings as lines of postgresql.conf."""
    return "".join(f"{name} = '{_quoted(value)}'\n" for name, value in settings.items())


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n")


def start_options(settings: Mapping[str, str]) -> str:
    """Return the settings as libpq's `options`, for sessions of other programs."""
    return " ".join(f"-c {name}={_escaped(value)}" for name, value in settings.items())


def _escaped(value: str) -> str:
    return re.sub(r"([\\\s])", r"\\\1", value)

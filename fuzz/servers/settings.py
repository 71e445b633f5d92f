"""Settings of the clusters that we start, as one table, and as files and sessions take them."""

import re
from collections.abc import Iterable, Mapping

# initdb's part: what two arms must have in common, and cannot change later.
INITDB = (
    "--username=postgres",
    "--auth=peer",
    "--encoding=UTF8",
    "--locale=C",
    "--no-sync",
    "--no-instructions",
)
# What a major version does by default and older ones do not, nor know how to refuse: 18 has checksums.
INITDB_SINCE = {18: ("--no-data-checksums",)}

# The group of the roles as which relays let clients in; each relay makes its own. All arms have it from the start.
RELAY_ROLES = "pgduel_relay"

# pg_hba.conf, in place of initdb's. The first line that matches decides, so relays' roles come first: whoever opens a
# relay's port must know the password, though the connection comes from pgduel. The caller and the account of servers
# may be any other role, because cases change roles and foreign servers lead back to their own server; `ident` makes the
# map. No line admits TCP or replication.
HBA = f"""\
# TYPE  DATABASE  USER           METHOD
local   all       +{RELAY_ROLES}  scram-sha-256
local   all       all            peer map=pgduel
"""

# Small and volatile: a fuzzing cluster is thrown away, and small memory reaches more code.
FUZZING = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    # synchronous_commit stays on: without it, what VACUUM may mark all-visible, and so plans, depends on timing.
    "fsync": "off",
    "full_page_writes": "off",
    "checkpoint_timeout": "1h",
    "max_wal_size": "512MB",
    # Nothing may change plans or take buffers and time by itself.
    "autovacuum": "off",
    "jit": "off",
    "shared_buffers": "32MB",
    # In the data directory, and so gone with it when a server is killed; /dev/shm may be small, in containers.
    "dynamic_shared_memory_type": "mmap",
    "max_connections": "40",
    "max_worker_processes": "20",
    "max_parallel_workers": "12",
    "max_prepared_transactions": "10",
    "max_locks_per_transaction": "512",  # many partitions, within one transaction
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
    """Return pg_ident.conf: these users of the system may be any role."""
    return "".join(f'pgduel "{user}" all\n' for user in system_users)


def lines(settings: dict[str, str]) -> str:
    """Return the settings as lines of postgresql.conf."""
    return "".join(f"{name} = '{_quoted(value)}'\n" for name, value in settings.items())


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "''")


def start_options(settings: Mapping[str, str]) -> str:
    """Return the settings as libpq's `options` has them, for sessions of other programs."""
    return " ".join(f"-c {name}={_escaped(value)}" for name, value in settings.items())


def _escaped(value: str) -> str:
    return re.sub(r"([\\\s])", r"\\\1", value)

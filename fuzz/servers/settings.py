"""Settings of the clusters that we start, as one table, and as files and sessions take them."""

import re
from collections.abc import Mapping

# initdb's part: what two arms must have in common, and cannot change later.
INITDB = (
    "--username=postgres",
    "--auth=trust",
    "--encoding=UTF8",
    "--locale=C",
    "--no-sync",
    "--no-instructions",
)
# What a major version does by default and older ones do not, nor know how to refuse: 18 has checksums.
INITDB_SINCE = {18: ("--no-data-checksums",)}

# Small and volatile: a fuzzing cluster is thrown away, and small memory reaches more code.
FUZZING = {
    "listen_addresses": "",
    "unix_socket_permissions": "0777",
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

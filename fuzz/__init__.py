"""pgduel: a patched PostgreSQL server duels master. Everything from a source tree to a report."""

__version__ = "0.1.0"

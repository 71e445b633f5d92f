"""pgduel: a patched PostgreSQL server duels master. Everything from a source tree to a report."""

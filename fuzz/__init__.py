"""pgduel, a differential fuzzer for PostgreSQL patches: everything from a source tree to a report."""

__version__ = "0.1.0"

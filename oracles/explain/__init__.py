"""Functions that read EXPLAIN's output."""

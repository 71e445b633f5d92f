"""Reading EXPLAIN."""

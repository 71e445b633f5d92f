"""Mutants of the lines that a series adds, held against a duel and against the series' own regression tests."""

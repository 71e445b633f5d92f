"""Determinism of foreign statements: whether the data determine their results, and repair if they do not."""

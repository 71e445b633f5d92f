"""Statements that we did not write."""

"""Reproducers: psql scripts that show a finding without pgduel, and from which pgduel restores the case."""

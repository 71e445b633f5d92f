"""Workloads: each file turns randomness into cases."""

"""Reducers held against each other: pgduel's own and those that others wrote, on the findings of campaigns."""

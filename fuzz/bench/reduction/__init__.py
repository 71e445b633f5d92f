"""A comparison of reducers, pgduel's own and others, on findings of campaigns."""

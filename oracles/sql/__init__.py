"""Reading, building and rewriting queries, and whether the data determine their rows."""

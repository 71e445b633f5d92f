"""Analysis, construction and rewriting of queries, and whether the data determine their rows."""

"""Order of rows: the oracle, the sort keys of a query, and the statement that compares returned rows."""

"""Sources: generators of cases with statements from elsewhere."""

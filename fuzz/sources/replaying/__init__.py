"""Scripts of others as steps of a case."""

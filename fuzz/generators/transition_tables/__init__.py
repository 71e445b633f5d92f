"""Generator `transition_tables`: rows that statement triggers see in transition tables, and that row triggers see."""

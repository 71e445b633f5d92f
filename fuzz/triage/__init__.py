"""What becomes of a finding: confirmed, reduced, blamed, deduplicated, written as a reproducer."""

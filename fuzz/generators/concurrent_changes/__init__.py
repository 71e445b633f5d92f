"""Generator `concurrent_changes`: statements whose rows another session changes after the snapshot was taken."""

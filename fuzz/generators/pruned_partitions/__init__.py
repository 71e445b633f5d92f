"""The generator `pruned_partitions` and its parts."""

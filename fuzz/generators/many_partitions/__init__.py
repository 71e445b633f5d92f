"""The generator `many_partitions` and its parts."""

"""The generator `merged_bounds` and its parts."""

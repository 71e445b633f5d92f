"""The generator `aged_indexes` and its parts."""

"""The source `typed` and its parts."""

"""The source `sqlancer` and its parts."""

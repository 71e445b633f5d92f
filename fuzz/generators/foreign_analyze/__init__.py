"""The generator `foreign_analyze` and its parts."""

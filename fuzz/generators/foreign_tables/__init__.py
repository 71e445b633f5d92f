"""The generator `foreign_tables` and its parts."""

"""The generator `hash_growth` and its parts."""

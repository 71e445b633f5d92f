"""The generator `outer_joins` and its parts, some of which `hash_growth` uses."""

"""Parts of the generator `hash_growth`: sizes at which hash tables grow, and ways to have the planner expect others."""

"""A case on all arms in lockstep, under modes, into observations."""

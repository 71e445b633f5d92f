"""Execution of a case on all arms concurrently, under modes, which yields observations."""

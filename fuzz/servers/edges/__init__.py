"""Edges: which of the server's branches a session takes, counted by SanitizerCoverage in builds of flavor `guided`."""

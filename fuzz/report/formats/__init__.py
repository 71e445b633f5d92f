"""Formats of a campaign's report, one file per format."""

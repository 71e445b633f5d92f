"""Additions of test_additions, one file of each kind. Each is complete, and none imports another."""

"""Generators of test cases. Each file or folder is one generator."""

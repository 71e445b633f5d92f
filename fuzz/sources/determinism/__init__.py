"""Determinism of foreign statements, according to an arm's parser and catalogs, and repair of nondeterministic ones.

A statement is analysed once, when its source makes the case. Its step keeps no mark: reduction changes the statement,
and oracles derive others. They judge by text (oracles/sql/determinism.py), with a table from the same criterion.
"""

"""Random SQL shared by generators: scopes, types, expressions, joins, queries and tables.

Scopes, columns, sources, FROM items, signatures and queries also serve the source `typed`, with the types of an arm.
"""

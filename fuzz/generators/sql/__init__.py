"""Random SQL shared by generators: scopes, types, expressions, joins, queries and tables."""

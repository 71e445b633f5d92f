"""Random SQL that generators share: scope, types, expressions, joins, queries, tables."""

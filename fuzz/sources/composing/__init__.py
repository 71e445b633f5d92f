"""Statements composed of what an arm's catalogs offer: types, functions, operators, casts and aggregates."""

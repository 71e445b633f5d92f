"""Material for generators of queries: tables and their data, scope, typed expressions, joins, SELECTs."""

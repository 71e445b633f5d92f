-- Aggregates and window functions, with their kind (aggkind; w for window functions) and the number of their direct
-- arguments, which come first.
SELECT p.oid::int, quote_ident(p.proname), coalesce(a.aggkind::text, 'w'), coalesce(a.aggnumdirectargs, 0)::int,
       t.arguments, r.typname::text
FROM pg_proc AS p
JOIN pg_type AS r ON r.oid = p.prorettype
LEFT JOIN pg_aggregate AS a ON a.aggfnoid = p.oid,
LATERAL (SELECT ARRAY(SELECT typname::text FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY AS a(oid, n)
                      JOIN pg_type USING (oid) ORDER BY n) AS arguments) AS t
WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind IN ('a', 'w')
ORDER BY 3, p.proname COLLATE "C", t.arguments COLLATE "C"

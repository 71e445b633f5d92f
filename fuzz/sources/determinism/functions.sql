-- Functions and operators by whether what they return is determined by their arguments, the data and settings alone,
-- told by what the catalogs say of them.
--
-- A function is fit if it is immutable. A stable one is, too, if it has arguments and may run in parallel workers, so
-- that it reads no state of its session, and if neither they nor its result identify anything that is numbered anew on
-- each server: OIDs and what is one under another name, tuples, transactions. "any" would let it see how a value is
-- stored, which depends on the plan. A body in SQL must not read the clock.
-- An aggregate is fit if it picks by order, or adds up, by parts in any order, to an exact number, date or truth.
-- Otherwise it is fit only where it says in which order. What depends on the order of rows within their peers
-- (window functions) is not fit.
WITH identities AS (
    SELECT unnest(ARRAY['oid', 'tid', 'xid', 'xid8', 'cid', 'pg_lsn']::regtype[])::oid AS type
    UNION
    SELECT castsource FROM pg_cast WHERE castmethod = 'b' AND casttarget = 'oid'::regtype
    UNION
    SELECT '"any"'::regtype
), judged AS (
    SELECT p.oid, p.proname, p.pronargs, p.prorettype, p.prokind,
           CASE p.prokind
               WHEN 'f' THEN p.provolatile = 'i' OR p.provolatile = 's' AND p.pronargs > 0 AND p.proparallel = 's'
                   AND NOT p.proargtypes::oid[] || p.prorettype && (SELECT array_agg(type) FROM identities)
                   AND coalesce(p.prosqlbody::text NOT LIKE '%SQLVALUEFUNCTION%', true)
               WHEN 'a' THEN a.aggsortop <> 0 OR a.aggkind <> 'n' OR a.aggcombinefn <> 0
                   AND t.typcategory IN ('B', 'D', 'N', 'T', 'V') AND t.typname NOT IN ('float4', 'float8')
               ELSE false
           END AS fit
    FROM pg_proc AS p
    JOIN pg_type AS t ON t.oid = p.prorettype
    LEFT JOIN pg_aggregate AS a ON a.aggfnoid = p.oid
)
SELECT oid::int, proname::text, pronargs, prokind::text, fit, format_type(prorettype, NULL)
FROM judged
ORDER BY oid

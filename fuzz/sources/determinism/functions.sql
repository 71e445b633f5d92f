-- Functions of a database (`judged`), each with whether it is fit: arguments, data and settings alone determine its result. The
-- criteria are properties in the catalogs.
--
-- A function is fit if it is immutable. A stable one is fit if it has arguments, is parallel safe (so it reads no state
-- of its session), and has no argument or result that identifies an object numbered differently on each server. These
-- are OIDs and their aliases, tuples and transactions. "any" is excluded, because such a function may return how a value
-- is stored, which depends on the plan; those that are variadic print values. An SQL body must not read the clock.
-- Comparison functions of btree are not fit, because only the sign of their results is defined. Those that use memcmp
-- return other numbers for other addresses of the same values. Hashes, binary forms and images of values of any type are
-- not fit either: they contain OIDs, such as those of an enum's labels.
-- An aggregate is fit if it selects by order, or combines partial results in any order to an exact number, date or
-- truth value. Otherwise it is fit only in calls with ORDER BY. Window functions that depend on the order of peers are
-- not fit.
WITH identities AS (
    SELECT unnest(ARRAY['oid', 'tid', 'xid', 'xid8', 'cid', 'pg_lsn']::regtype[])::oid AS type
    UNION
    SELECT castsource FROM pg_cast
    WHERE castmethod = 'b' AND casttarget = 'oid'::regtype AND castsource <> 'int4'::regtype
    UNION
    SELECT '"any"'::regtype
), comparisons AS (
    SELECT s.amproc::oid AS function
    FROM pg_amproc AS s JOIN pg_opfamily AS f ON f.oid = s.amprocfamily JOIN pg_am AS m ON m.oid = f.opfmethod
    WHERE m.amname = 'btree' AND s.amprocnum = 1  -- BTORDER_PROC
), judged AS (
    SELECT p.oid, p.proname, p.pronargs, p.prorettype, p.prokind,
           CASE p.prokind
               WHEN 'f' THEN NOT EXISTS (SELECT FROM comparisons WHERE function = p.oid) AND NOT (
                   p.proname ~ 'hash|send|image'
                   AND EXISTS (SELECT FROM pg_type AS a WHERE a.oid = ANY (p.proargtypes) AND a.typtype = 'p')
                   ) AND (
                   p.provolatile = 'i' OR p.provolatile = 's' AND p.pronargs > 0 AND p.proparallel = 's'
                   AND NOT p.proargtypes::oid[] || p.prorettype
                       && (SELECT array_agg(type) FROM identities WHERE type <> p.provariadic)
                   AND coalesce(strpos(p.prosqlbody::text, 'SQLVALUEFUNCTION') = 0, true))
               WHEN 'a' THEN a.aggsortop <> 0 OR a.aggkind <> 'n' OR a.aggcombinefn <> 0
                   AND t.typcategory IN ('B', 'D', 'N', 'T', 'V') AND t.typname NOT IN ('float4', 'float8')
               ELSE false
           END AS fit
    FROM pg_proc AS p
    JOIN pg_type AS t ON t.oid = p.prorettype
    LEFT JOIN pg_aggregate AS a ON a.aggfnoid = p.oid
)

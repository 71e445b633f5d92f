-- Functions of PostgreSQL by name, if functions.sql finds all functions of the name fit. A query's text has no types, so
-- names stand for all of their functions. Each name has the properties that a reader of the text needs:
--   aggregate, or set (it returns sets), or function
--   inexact    some call may create values of `types`, which have equal but distinguishable values, from other values;
--              a function that also takes and returns integers is not inexact
--   adds       an aggregate whose floating-point result depends on the order of rows, by rounding; of other numbers it
--              is exact
--   picks      an aggregate that returns one of several equal values
--
-- Some fit functions are left out:
--   functions of internal types, which statements cannot call
--   functions that return identifiers, or are about identifiers only
--   current_setting: oracles change settings
-- It follows functions.sql.
, described AS (
    SELECT p.*, j.fit,
           EXISTS (SELECT FROM pg_type AS c WHERE c.oid = ANY (columns.types) AND c.typname = ANY (%s)) AS inexact,
           CASE WHEN a.aggkind = 'n' THEN 'aggregate'
                WHEN p.prokind = 'f' THEN CASE WHEN p.proretset THEN 'set' ELSE 'function' END
           END AS word,
           EXISTS (
               SELECT FROM pg_type AS a
               WHERE a.oid = ANY (p.proargtypes::oid[] || p.prorettype) AND a.typtype = 'p'
                 AND a.typname !~ '^(any|record)'
           ) AS is_internal,
           p.prokind = 'f' AND columns.types && (SELECT array_agg(type) FROM identities) AS identifies,
           p.proargtypes::oid[] && (SELECT array_agg(type) FROM identities WHERE type <> p.provariadic) AS takes_identities,
           p.prorettype = ANY (integers.types) AND p.proargtypes::oid[] && integers.types AS is_whole,
           coalesce(a.aggsortop <> 0, false) AS is_extreme,
           coalesce(a.aggcombinefn <> 0 AND t.typname IN ('float4', 'float8'), false) AS adds
    FROM (SELECT '{int2,int4,int8}'::regtype[]::oid[]) AS integers (types), judged AS j
    JOIN pg_proc AS p USING (oid)
    JOIN pg_type AS t ON t.oid = p.prorettype
    LEFT JOIN pg_aggregate AS a ON a.aggfnoid = p.oid
    CROSS JOIN LATERAL (
        SELECT coalesce(array_agg(type), ARRAY[p.prorettype])
        FROM unnest(p.proallargtypes, p.proargmodes) AS u (type, mode) WHERE mode IN ('b', 'o', 't')
    ) AS columns (types)
    WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname <> 'current_setting'
)
SELECT concat_ws(' ', proname, min(word),
                 CASE WHEN bool_or(inexact) AND NOT bool_or(is_whole) AND min(word) <> 'aggregate'
                      THEN 'inexact' END,
                 CASE WHEN bool_or(adds AND NOT is_extreme) THEN 'adds' END,
                 CASE WHEN bool_or(is_extreme AND inexact) THEN 'picks' END)
FROM described
GROUP BY proname
HAVING count(DISTINCT word) = 1 AND count(word) = count(*)
   AND bool_and((fit OR adds) AND NOT (is_internal OR identifies))
   AND bool_or(fit) AND NOT bool_and(takes_identities)
ORDER BY proname COLLATE "C"

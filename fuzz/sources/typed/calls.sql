-- Everything written as a call: functions, operators and casts, each with its function (0: none is called), and the type
-- names of arguments and result.
-- Functions of operators and aggregates are left out, because these calls reach them. So are casts to a length.
WITH called AS (
    SELECT p.oid, quote_ident(p.proname) AS name, CASE WHEN p.proretset THEN 'set' ELSE 'function' END AS form,
           p.proargtypes::oid[] AS arguments, p.prorettype AS result
    FROM pg_proc AS p
    WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND p.pronargs BETWEEN 1 AND 4
      AND p.provariadic = 0
      AND NOT EXISTS (SELECT FROM pg_operator WHERE oprcode = p.oid)
      AND NOT EXISTS (SELECT FROM pg_cast WHERE castfunc = p.oid AND p.pronargs > 1)
      AND NOT EXISTS (SELECT FROM pg_aggregate WHERE p.oid IN (aggtransfn, aggfinalfn, aggcombinefn, aggserialfn,
                                                               aggdeserialfn, aggmtransfn, aggminvtransfn))
    UNION ALL
    SELECT oprcode, oprname, CASE oprleft WHEN 0 THEN 'prefix' ELSE 'infix' END,
           array_remove(ARRAY[oprleft, oprright], 0::oid), oprresult
    FROM pg_operator WHERE oprnamespace = 'pg_catalog'::regnamespace
    UNION ALL
    SELECT castfunc, '', 'cast', ARRAY[castsource], casttarget FROM pg_cast
)
SELECT c.oid::int, c.name, c.form, t.arguments, r.typname::text
FROM called AS c
JOIN pg_type AS r ON r.oid = c.result,
LATERAL (SELECT ARRAY(SELECT typname::text FROM unnest(c.arguments) WITH ORDINALITY AS a(oid, n) JOIN pg_type USING (oid)
                      ORDER BY n) AS arguments) AS t
ORDER BY c.form, c.name COLLATE "C", t.arguments COLLATE "C", r.typname COLLATE "C"

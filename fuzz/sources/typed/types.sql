-- Types of an arm and of its scene. `name` is as in SQL, without the length that "bit" and "char" imply.
-- `parts` are component types: the element type of an array, the subtype of a range, the range type of a multirange, the
-- base type of a domain, or the field types of a composite type.
-- `exact`: values that compare as equal have equal bits, which B-tree deduplication requires (support function 4).
-- `ordered`: the type has a default order. For types with parts, both properties follow from the parts.
-- `sources`: other types whose values are valid for this type.
WITH comparable AS (
    SELECT c.opcintype AS type, EXISTS (
        SELECT FROM pg_amproc WHERE amprocfamily = c.opcfamily AND amproclefttype = c.opcintype
                                AND amprocrighttype = c.opcintype AND amprocnum = 4) AS exact
    FROM pg_opclass AS c JOIN pg_am AS a ON a.oid = c.opcmethod
    WHERE a.amname = 'btree' AND c.opcdefault
), relabelled AS (
    SELECT castsource AS source, casttarget AS target FROM pg_cast WHERE castmethod = 'b' AND castcontext = 'i'
), as_others AS (
    SELECT type, exact FROM comparable
    UNION ALL
    SELECT source, exact FROM comparable JOIN relabelled ON target = type
)
SELECT t.typname::text AS key,
       CASE WHEN element.oid IS NULL THEN quote_ident(t.typname) ELSE quote_ident(element.typname) || '[]' END AS name,
       CASE WHEN element.oid IS NULL THEN t.typtype::text ELSE 'a' END AS kind,
       t.typcategory::text AS category,
       CASE WHEN t.typtype = 'c' THEN ARRAY(SELECT f.typname::text FROM pg_attribute AS a JOIN pg_type AS f ON f.oid = a.atttypid
                                            WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum)
            ELSE ARRAY(SELECT p.typname::text FROM pg_type AS p
                       WHERE p.oid IN (element.oid, nullif(t.typbasetype, 0),
                                       CASE t.typtype WHEN 'r' THEN r.rngsubtype WHEN 'm' THEN r.rngtypid END)) END AS parts,
       ARRAY(SELECT quote_ident(attname) FROM pg_attribute
             WHERE attrelid = t.typrelid AND attnum > 0 AND NOT attisdropped ORDER BY attnum) AS fields,
       ARRAY(SELECT enumlabel::text FROM pg_enum WHERE enumtypid = t.oid ORDER BY enumsortorder) AS labels,
       t.typtype = 'e' OR coalesce((SELECT bool_and(exact) FROM as_others WHERE type = t.oid), false) AS exact,
       t.typtype = 'e' OR EXISTS (SELECT FROM as_others WHERE type = t.oid) AS ordered,
       t.typlen < 0 AS long,
       t.typcollation <> 0 AS collated,
       ARRAY(SELECT s.typname::text FROM relabelled JOIN pg_type AS s ON s.oid = source
             WHERE target = t.oid ORDER BY s.typname COLLATE "C") AS sources
FROM pg_type AS t
LEFT JOIN pg_class AS c ON c.oid = t.typrelid
LEFT JOIN pg_range AS r ON t.oid IN (r.rngtypid, r.rngmultitypid)
LEFT JOIN pg_type AS element ON element.oid = t.typelem AND t.typsubscript = 'array_subscript_handler'::regproc
WHERE t.typtype IN ('b', 'c', 'd', 'e', 'm', 'r') AND t.typisdefined AND coalesce(c.relkind, 'c') = 'c'
  AND t.typnamespace IN ('pg_catalog'::regnamespace, 'duel'::regnamespace)
ORDER BY t.typname COLLATE "C"

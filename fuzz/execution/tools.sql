-- What every database of a stage has from its template, besides extensions: pgduel's own functions, and a foreign
-- server that leads back to the same database (its address is set in each database).

CREATE SCHEMA pgduel_tools;

CREATE SERVER loopback FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '', port '', dbname '');
CREATE USER MAPPING FOR postgres SERVER loopback OPTIONS (user 'postgres');

-- Row count and order-independent hash of all rows of each table, view and sequence of the case.
-- Rows are hashed as text with the partition they live in, so partitions need no pass of their own. Foreign tables
-- are left out: what they show lives in a table that is there too, and a loop of them would eat all connections.
CREATE FUNCTION pgduel_tools.digests() RETURNS TABLE (name text, digest text)
LANGUAGE plpgsql
SET max_parallel_workers_per_gather = 0
SET client_min_messages = error
AS $$
DECLARE
    kind "char";
BEGIN
    FOR name, kind IN
        SELECT c.oid::regclass::text, c.relkind
        FROM pg_class c
        WHERE c.relnamespace IN (to_regnamespace('duel'), pg_my_temp_schema())
          AND c.relkind IN ('r', 'p', 'm', 'v', 'S') AND NOT c.relispartition
        ORDER BY c.oid::regclass::text COLLATE "C"
    LOOP
        BEGIN
            EXECUTE CASE kind
                WHEN 'S' THEN format('SELECT last_value || CASE WHEN is_called THEN '''' ELSE '' unused'' END FROM %s', name)
                WHEN 'v' THEN format('SELECT count(*) || '' '' || coalesce(sum(hashtextextended((r.*)::text, 0)), 0) '
                                     'FROM %s AS r', name)
                ELSE format('SELECT count(*) || '' '' || '
                            'coalesce(sum(hashtextextended(r.tableoid::regclass || (r.*)::text, 0)), 0) FROM %s AS r', name)
            END INTO digest;
        EXCEPTION WHEN OTHERS THEN
            digest := 'error ' || SQLSTATE;
        END;
        RETURN NEXT;
    END LOOP;
END
$$;

-- Remove what a case made, in its schema and beside it.
CREATE FUNCTION pgduel_tools.clear() RETURNS void
LANGUAGE plpgsql
SET client_min_messages = error
AS $$
DECLARE
    server name;
BEGIN
    FOR server IN SELECT srvname FROM pg_foreign_server WHERE srvname <> 'loopback' LOOP
        EXECUTE format('DROP SERVER %I CASCADE', server);
    END LOOP;
    DROP SCHEMA IF EXISTS duel CASCADE;
    DISCARD TEMP;
END
$$;

-- Memory contexts by name: how many, and the bytes used in them, since small leaks hide in blocks. Caches of catalogs,
-- plans of which belong to nobody, are left out by name: they grow with every new table, on every arm.
CREATE VIEW pgduel_tools.contexts AS
SELECT name, count(*) AS number, sum(used_bytes) AS bytes
FROM pg_backend_memory_contexts
WHERE name NOT IN ('CacheMemoryContext', 'index info', 'relation rules', 'partition key', 'partition descriptor',
                   'RelCache hash table', 'CatCache', 'Relcache by OID', 'TableSpace cache', 'Type information cache',
                   'Operator lookup cache', 'RowDescriptionContext', 'smgr relation table', 'MdSmgr')
GROUP BY name
ORDER BY name COLLATE "C";

-- What every database of a stage has from its template, besides extensions: pgduel's own functions, and a foreign
-- server that leads back to the same database (its address is set in each database).

CREATE SCHEMA pgduel_tools;

CREATE SERVER loopback FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '', port '', dbname '');
CREATE USER MAPPING FOR postgres SERVER loopback OPTIONS (user 'postgres');

-- Row count and order-independent hash of all rows of each table, view and sequence of the case, in whatever schema;
-- what an extension brings is its own business.
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
        JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE (n.nspname NOT LIKE 'pg\_%' AND n.nspname NOT IN ('information_schema', 'pgduel_tools')
               OR n.oid = pg_my_temp_schema())
          AND c.relkind IN ('r', 'p', 'm', 'v', 'S') AND NOT c.relispartition
          AND NOT EXISTS (SELECT FROM pg_depend WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')
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

-- Remove what a case made in its schema, and servers. Returns whether there is more: then the database has to be made
-- anew. What was not there before has a higher OID than `made_before`, which is made last.
CREATE FUNCTION pgduel_tools.clear() RETURNS boolean
LANGUAGE plpgsql
SET client_min_messages = error
AS $$
DECLARE
    server name;
    made CONSTANT oid := 'pgduel_tools.made_before'::regclass;
BEGIN
    FOR server IN SELECT srvname FROM pg_foreign_server WHERE srvname <> 'loopback' LOOP
        EXECUTE format('DROP SERVER %I CASCADE', server);
    END LOOP;
    DROP SCHEMA IF EXISTS duel CASCADE;
    DISCARD TEMP;
    RETURN EXISTS (SELECT FROM pg_namespace WHERE oid > made AND nspname NOT LIKE 'pg\_temp\_%'
                                              AND nspname NOT LIKE 'pg\_toast\_temp\_%')
        OR EXISTS (SELECT FROM pg_class WHERE oid > made)
        OR EXISTS (SELECT FROM pg_type WHERE oid > made)
        OR EXISTS (SELECT FROM pg_proc WHERE oid > made)
        OR EXISTS (SELECT FROM pg_operator WHERE oid > made)
        OR EXISTS (SELECT FROM pg_opclass WHERE oid > made)
        OR EXISTS (SELECT FROM pg_opfamily WHERE oid > made)
        OR EXISTS (SELECT FROM pg_am WHERE oid > made)
        OR EXISTS (SELECT FROM pg_cast WHERE oid > made)
        OR EXISTS (SELECT FROM pg_collation WHERE oid > made)
        OR EXISTS (SELECT FROM pg_conversion WHERE oid > made)
        OR EXISTS (SELECT FROM pg_language WHERE oid > made)
        OR EXISTS (SELECT FROM pg_transform WHERE oid > made)
        OR EXISTS (SELECT FROM pg_extension WHERE oid > made)
        OR EXISTS (SELECT FROM pg_foreign_data_wrapper WHERE oid > made)
        OR EXISTS (SELECT FROM pg_event_trigger WHERE oid > made)
        OR EXISTS (SELECT FROM pg_publication WHERE oid > made)
        OR EXISTS (SELECT FROM pg_ts_dict WHERE oid > made)
        OR EXISTS (SELECT FROM pg_ts_config WHERE oid > made)
        OR EXISTS (SELECT FROM pg_ts_parser WHERE oid > made)
        OR EXISTS (SELECT FROM pg_ts_template WHERE oid > made)
        OR EXISTS (SELECT FROM pg_default_acl WHERE oid > made)
        OR EXISTS (SELECT FROM pg_largeobject_metadata WHERE oid > made)
        OR EXISTS (SELECT FROM pg_db_role_setting JOIN pg_database d ON d.oid = setdatabase
                   WHERE datname = current_database());
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

CREATE SEQUENCE pgduel_tools.made_before;

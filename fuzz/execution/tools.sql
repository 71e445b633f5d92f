-- Content of the template of workers' databases, in addition to extensions: functions of pgduel, and a foreign server
-- that leads back to the same database. Its address is set in each database.

CREATE SCHEMA pgduel_tools;
GRANT USAGE ON SCHEMA pgduel_tools TO PUBLIC;

CREATE SERVER loopback FOREIGN DATA WRAPPER postgres_fdw OPTIONS (
    host '', port '', dbname '',
    application_name 'duel led by %p, loopback', options '-c log_statement=all -c log_parameter_max_length=0'
);
CREATE USER MAPPING FOR postgres SERVER loopback OPTIONS (user 'postgres');
CREATE EXTENSION amcheck SCHEMA pgduel_tools;

-- Row count and order-independent hash of all rows of each table, view and sequence of the case, in any schema. Objects
-- of extensions are left out.
-- Rows are hashed as text together with their partition, so partitions need no digest of their own. Foreign tables are
-- left out: their rows are in a table that has a digest, and a loop of foreign tables would use up all connections.
-- With pgduel_tools.check_indexes, also whether each btree index of a table is sound and has all rows of the table.
CREATE FUNCTION pgduel_tools.digests() RETURNS TABLE (name text, digest text)
LANGUAGE plpgsql
SET max_parallel_workers_per_gather = 0
SET client_min_messages = error
AS $$
DECLARE
    kind "char";
    schemas CONSTANT oid[] := ARRAY(
        SELECT oid FROM pg_namespace
        WHERE nspname NOT LIKE 'pg\_%' AND nspname NOT IN ('information_schema', 'pgduel_tools')
           OR oid = pg_my_temp_schema()
    );
BEGIN
    FOR name, kind IN
        SELECT c.oid::regclass::text, c.relkind
        FROM pg_class c
        WHERE c.relnamespace = ANY (schemas)
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
    IF current_setting('pgduel_tools.check_indexes', true) = 'on' THEN
        FOR name IN
            SELECT c.oid::regclass::text
            FROM pg_class c
            JOIN pg_index i ON i.indexrelid = c.oid
            WHERE c.relnamespace = ANY (schemas)
              AND c.relkind = 'i' AND i.indisvalid AND i.indisready
              AND c.relam = (SELECT oid FROM pg_am WHERE amname = 'btree')
            ORDER BY c.oid::regclass::text COLLATE "C"
        LOOP
            BEGIN
                PERFORM pgduel_tools.bt_index_check(name::regclass, true);
                digest := 'complete';
            EXCEPTION WHEN OTHERS THEN
                digest := format('error %s %s', SQLSTATE, SQLERRM);
            END;
            name := 'index ' || name;
            RETURN NEXT;
        END LOOP;
    END IF;
END
$$;

-- Numbers of objects that a case may drop although it did not create them.
CREATE VIEW pgduel_tools.numbers AS
SELECT (SELECT count(*) FROM pg_namespace WHERE nspname NOT LIKE 'pg\_temp\_%'
                                            AND nspname NOT LIKE 'pg\_toast\_temp\_%') AS schemas,
       (SELECT count(*) FROM pg_extension) AS extensions,
       (SELECT count(*) FROM pg_user_mapping) AS mappings;
CREATE TABLE pgduel_tools.numbers_before AS TABLE pgduel_tools.numbers;

-- Drop the case's schema and foreign servers. Returns whether other objects of the case remain, or objects of the
-- template are gone; then the database must be created again. Objects of the case have higher OIDs than `made_before`,
-- which is created last in this file.
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
    RETURN EXISTS (TABLE pgduel_tools.numbers EXCEPT TABLE pgduel_tools.numbers_before)
        OR EXISTS (SELECT FROM pg_namespace WHERE oid > made AND nspname NOT LIKE 'pg\_temp\_%'
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

-- Drop roles of a case with their objects in this database. Their objects elsewhere were dropped with their database.
CREATE FUNCTION pgduel_tools.drop_roles(made text[]) RETURNS void
LANGUAGE plpgsql
SET client_min_messages = error
AS $$
DECLARE
    role name;
BEGIN
    FOREACH role IN ARRAY made LOOP
        IF EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
            EXECUTE format('DROP OWNED BY %I CASCADE', role);
            EXECUTE format('DROP ROLE %I', role);
        END IF;
    END LOOP;
END
$$;

-- Memory contexts by name: their number, and the bytes used in them, because blocks would hide small leaks. Contexts of
-- catalog caches are left out by name, because they grow with each new table on every arm.
CREATE VIEW pgduel_tools.contexts AS
SELECT name, count(*) AS number, sum(used_bytes) AS bytes
FROM pg_backend_memory_contexts
WHERE name NOT IN ('CacheMemoryContext', 'index info', 'relation rules', 'partition key', 'partition descriptor',
                   'RelCache hash table', 'CatCache', 'Relcache by OID', 'TableSpace cache', 'Type information cache',
                   'Operator lookup cache', 'RowDescriptionContext', 'smgr relation table', 'MdSmgr')
GROUP BY name
ORDER BY name COLLATE "C";

-- The remote relation of a foreign table, and its method of sampling; no row for other relations.
CREATE FUNCTION pgduel_tools.remote_of(relation oid) RETURNS TABLE (remote text, method text)
LANGUAGE sql
AS $$
    SELECT quote_ident(max(option_value) FILTER (WHERE option_name = 'schema_name')) || '.'
           || quote_ident(max(option_value) FILTER (WHERE option_name = 'table_name')),
           coalesce(max(option_value) FILTER (WHERE option_name = 'analyze_sampling' AND is_own),
                    max(option_value) FILTER (WHERE option_name = 'analyze_sampling'))
    FROM pg_foreign_table JOIN pg_foreign_server AS s ON s.oid = ftserver,
         LATERAL (SELECT *, true AS is_own FROM pg_options_to_table(ftoptions)
                  UNION ALL SELECT *, false FROM pg_options_to_table(srvoptions)) AS options
    WHERE ftrelid = relation
    GROUP BY ftrelid
    HAVING count(*) FILTER (WHERE option_name IN ('schema_name', 'table_name')) = 2
$$;

-- The figures of the catalogs for a relation and all its parts. `current` means that those of the parts are up to date.
CREATE FUNCTION pgduel_tools.figures(relation oid)
RETURNS TABLE (stored boolean, current boolean, quoted real, quoted_parts real)
LANGUAGE sql
AS $$
    WITH RECURSIVE tree(member) AS (
        SELECT relation UNION SELECT inhrelid FROM tree, pg_inherits WHERE inhparent = member
    )
    SELECT bool_and(relkind IN ('r', 'm')),
           bool_and(relkind IN ('r', 'm') AND relpages = pg_relation_size(oid) / current_setting('block_size')::int
                    AND (reltuples >= 0 OR relpages = 0)),
           (SELECT reltuples FROM pg_class WHERE oid = relation),
           sum(greatest(reltuples, 0))
    FROM tree JOIN pg_class ON oid = member WHERE relkind <> 'p'
$$;

-- The result of ANALYZE of a relation, and the rows that it could read, for the oracle `statistics`.
-- For a foreign table, these are the rows of its remote relation. It must be in this database, and is read directly.
-- Arrays are in the order in which a scan returns the rows. `blocks` numbers the blocks of all tables of the relation,
-- `members` these tables, and `ranks` the values of a column in ascending order (0: NULL).
-- It reads pg_statistic, which ordinary roles may not.
CREATE FUNCTION pgduel_tools.analyzed(relation regclass) RETURNS TABLE (facts json, seen json)
LANGUAGE plpgsql
SECURITY DEFINER
SET max_parallel_workers_per_gather = 0
SET client_min_messages = error
AS $$
DECLARE
    about record;
    source regclass := relation;
    figures record;
    columns text;
    queries text;
    wanted int;
BEGIN
    SELECT * INTO about FROM pgduel_tools.remote_of(relation);
    IF FOUND THEN
        source := about.remote::regclass;
    END IF;
    SELECT * INTO figures FROM pgduel_tools.figures(source);

    SELECT string_agg(format('%I', attname), ', '),
           string_agg(format(
               $q$ SELECT %1$L AS name, max(octet_length(%1$I::text)) AS widest,
                          json_agg(CASE WHEN %1$I IS NULL THEN 0 ELSE duel_rank END ORDER BY duel_row) AS ranks,
                          json_agg(format('%%s', %1$I) ORDER BY duel_rank) FILTER (WHERE duel_first) AS values
                   FROM (SELECT duel_row, %1$I, dense_rank() OVER by_value AS duel_rank,
                                %1$I IS NOT NULL AND lag(%1$I) OVER by_value IS DISTINCT FROM %1$I AS duel_first
                         FROM visible WINDOW by_value AS (ORDER BY %1$I)) AS ranked $q$, attname), ' UNION ALL '),
           greatest(100, 300 * max(coalesce(nullif(attstattarget, -1),
                                            current_setting('default_statistics_target')::int))) AS wanted
    INTO STRICT columns, queries, wanted
    FROM pg_attribute WHERE attrelid = relation AND attnum > 0 AND NOT attisdropped;

    EXECUTE format($q$
        WITH visible AS MATERIALIZED (
            SELECT row_number() OVER () AS duel_row, %s AS duel_member, %s AS duel_part, %s AS duel_block, %s FROM %s
        )
        SELECT json_build_object(
            'rows', (SELECT count(*) FROM visible),
            'members', (SELECT json_agg(duel_member ORDER BY duel_row) FROM visible WHERE duel_member <> ''),
            'blocks', (SELECT json_agg(number ORDER BY duel_row) FROM
                          (SELECT duel_row, dense_rank() OVER (ORDER BY duel_part, duel_block) AS number
                           FROM visible WHERE duel_part IS NOT NULL) AS numbered),
            'columns', (SELECT json_agg(json_build_object(
                            'name', c.name, 'widest', widest, 'ranks', ranks, 'values', values, 'null_frac', null_frac,
                            'n_distinct', n_distinct, 'common', most_common_vals::text::text[],
                            'frequencies', most_common_freqs, 'bounds', histogram_bounds::text::text[],
                            'correlation', correlation) ORDER BY c.name)
                        FROM (%s) AS c LEFT JOIN (
                            SELECT s.* FROM pg_stats AS s JOIN pg_attribute AS a
                            ON attrelid = %L::regclass AND a.attname = s.attname
                            AND attstattarget IS DISTINCT FROM 0  -- else they are old
                            WHERE inherited = %L
                            AND (schemaname, tablename) = (SELECT relnamespace::regnamespace::name, relname
                                                           FROM pg_class WHERE oid = %L::regclass)) AS s
                        ON s.attname = c.name))
        $q$,
        CASE WHEN about.remote IS NULL THEN 'tableoid::regclass::text' ELSE $q$''$q$ END,
        CASE WHEN figures.stored THEN 'tableoid' ELSE 'NULL' END,
        CASE WHEN figures.stored THEN '(ctid::text::point)[0]' ELSE 'NULL' END,
        columns, source, queries, relation, about.remote IS NULL, relation) INTO STRICT seen;
    facts := json_build_object(
        'remote', about.remote, 'method', about.method, 'wanted', wanted, 'current', figures.current,
        'in_tree', EXISTS (SELECT FROM pg_inherits WHERE relation IN (inhrelid, inhparent)),
        'estimate', (SELECT reltuples FROM pg_class WHERE oid = relation),
        'quoted', figures.quoted, 'quoted_parts', figures.quoted_parts,
        'foreign', (WITH RECURSIVE tree(member) AS (
                        SELECT relation::oid UNION SELECT inhrelid FROM tree, pg_inherits WHERE inhparent = member
                    )
                    SELECT json_object_agg(member::regclass, json_build_object(
                        'remote', remote, 'current', f.current, 'quoted', f.quoted, 'quoted_parts', f.quoted_parts))
                    FROM tree, pgduel_tools.remote_of(member), pgduel_tools.figures(remote::regclass) AS f
                    WHERE member <> relation));
    RETURN NEXT;
END
$$;

CREATE SEQUENCE pgduel_tools.made_before;

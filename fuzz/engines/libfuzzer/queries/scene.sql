CREATE FUNCTION make_rows(rows int, keys int, skewed int, width int)
RETURNS TABLE (k int, s int, u int, t text, w text) LANGUAGE sql AS $$
SELECT CASE WHEN i % 11 = 3 THEN NULL WHEN i % 7 = 5 THEN 300 + i ELSE i * 7 % keys END,
	CASE WHEN i < skewed THEN 1 ELSE i % (2 * keys + 1) END,
	i,
	CASE WHEN i % 13 <> 6 THEN 'v' || i * 3 % keys END,
	repeat('w', width + i % 9)
FROM generate_series(0, rows - 1) AS i
$$;

CREATE TABLE few AS SELECT * FROM make_rows(10, 4, 3, 20);

CREATE TABLE nothing AS SELECT * FROM few WHERE false;

CREATE TABLE tens AS SELECT * FROM make_rows(60, 17, 4, 1000);

CREATE TABLE many_keys AS SELECT * FROM make_rows(100, 99, 1, 100);

CREATE TABLE hundreds AS SELECT * FROM make_rows(200, 53, 8, 400);

CREATE TABLE wide AS SELECT * FROM make_rows(90, 29, 6, 1500);

CREATE TABLE large AS SELECT * FROM make_rows(500, 97, 20, 250);

CREATE TABLE parts (LIKE few) PARTITION BY RANGE (k);

CREATE TABLE mates (LIKE few) PARTITION BY RANGE (k);

CREATE TABLE pieces (LIKE few) PARTITION BY HASH (k);

DO $$
BEGIN
	FOR i IN 0..11 LOOP
		EXECUTE format('CREATE TABLE parts_%s PARTITION OF parts FOR VALUES FROM (%s) TO (%s)', i, i * 5, i * 5 + 5);
		EXECUTE format('CREATE TABLE mates_%s PARTITION OF mates FOR VALUES FROM (%s) TO (%s)', i, i * 5, i * 5 + 5);
	END LOOP;
	FOR i IN 0..2 LOOP
		EXECUTE format('CREATE TABLE pieces_%s PARTITION OF pieces FOR VALUES WITH (MODULUS 3, REMAINDER %s)', i, i);
	END LOOP;
END
$$;

CREATE TABLE parts_rest PARTITION OF parts DEFAULT;

CREATE TABLE mates_rest PARTITION OF mates DEFAULT;

INSERT INTO parts SELECT * FROM make_rows(150, 53, 6, 500);

INSERT INTO mates SELECT * FROM make_rows(120, 53, 4, 600);

INSERT INTO pieces SELECT * FROM make_rows(130, 53, 5, 300);

CREATE UNIQUE INDEX ON few (u);

CREATE UNIQUE INDEX ON tens (u);

CREATE UNIQUE INDEX ON many_keys (u);

CREATE INDEX ON hundreds (k);

CREATE INDEX ON large (s, k);

CREATE INDEX ON parts (k);

CREATE INDEX ON mates (u);

ANALYZE;

CREATE TABLE misjudged AS SELECT * FROM make_rows(20, 40, 1, 10);

ANALYZE misjudged;

INSERT INTO misjudged SELECT * FROM make_rows(400, 40, 20, 200) WHERE u >= 20;

VACUUM (FREEZE);

SET allow_system_table_mods = on;

UPDATE pg_class SET reltuples = 20 WHERE relname = 'misjudged';

VACUUM (FREEZE) pg_class;


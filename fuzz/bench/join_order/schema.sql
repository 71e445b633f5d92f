-- A database of films. Small tables of kinds are plain; what grows with the number of films is partitioned by id.

CREATE TABLE film_kind (id int PRIMARY KEY, kind text NOT NULL);
CREATE TABLE company_kind (id int PRIMARY KEY, kind text NOT NULL);
CREATE TABLE credit_role (id int PRIMARY KEY, role text NOT NULL);
CREATE TABLE info_kind (id int PRIMARY KEY, info text NOT NULL);
CREATE TABLE link_kind (id int PRIMARY KEY, link text NOT NULL);
CREATE TABLE country (id int PRIMARY KEY, code text NOT NULL);

CREATE TABLE film (
    id int PRIMARY KEY, title text NOT NULL, kind_id int NOT NULL, year int, series_id int, episode int
) PARTITION BY HASH (id);
CREATE TABLE film_alias (id int PRIMARY KEY, film_id int NOT NULL, title text NOT NULL, country_id int)
    PARTITION BY HASH (id);
CREATE TABLE person (id int PRIMARY KEY, name text NOT NULL, gender text, born int) PARTITION BY HASH (id);
CREATE TABLE person_alias (id int PRIMARY KEY, person_id int NOT NULL, name text NOT NULL) PARTITION BY HASH (id);
CREATE TABLE person_info (id int PRIMARY KEY, person_id int NOT NULL, kind_id int NOT NULL, info text NOT NULL)
    PARTITION BY HASH (id);
CREATE TABLE figure (id int PRIMARY KEY, name text NOT NULL) PARTITION BY HASH (id);
CREATE TABLE credit (
    id int PRIMARY KEY, person_id int NOT NULL, film_id int NOT NULL, figure_id int, role_id int NOT NULL,
    note text, place int
) PARTITION BY HASH (id);
CREATE TABLE company (id int PRIMARY KEY, name text NOT NULL, country_id int) PARTITION BY HASH (id);
CREATE TABLE film_company (
    id int PRIMARY KEY, film_id int NOT NULL, company_id int NOT NULL, kind_id int NOT NULL, note text
) PARTITION BY HASH (id);
CREATE TABLE keyword (id int PRIMARY KEY, word text NOT NULL) PARTITION BY HASH (id);
CREATE TABLE film_keyword (id int PRIMARY KEY, film_id int NOT NULL, keyword_id int NOT NULL) PARTITION BY HASH (id);
CREATE TABLE film_info (id int PRIMARY KEY, film_id int NOT NULL, kind_id int NOT NULL, info text NOT NULL)
    PARTITION BY HASH (id);
CREATE TABLE film_score (id int PRIMARY KEY, film_id int NOT NULL, kind_id int NOT NULL, score int NOT NULL)
    PARTITION BY HASH (id);
CREATE TABLE film_link (id int PRIMARY KEY, film_id int NOT NULL, linked_id int NOT NULL, kind_id int NOT NULL)
    PARTITION BY HASH (id);
CREATE TABLE film_award (id int PRIMARY KEY, film_id int NOT NULL, person_id int, award text NOT NULL)
    PARTITION BY HASH (id);
CREATE TABLE film_place (id int PRIMARY KEY, film_id int NOT NULL, country_id int NOT NULL, place text NOT NULL)
    PARTITION BY HASH (id);

-- All references have an index.

CREATE INDEX ON film (kind_id);
CREATE INDEX ON film_alias (film_id);
CREATE INDEX ON film_alias (country_id);
CREATE INDEX ON person_alias (person_id);
CREATE INDEX ON person_info (person_id);
CREATE INDEX ON person_info (kind_id);
CREATE INDEX ON credit (film_id);
CREATE INDEX ON credit (person_id);
CREATE INDEX ON credit (figure_id);
CREATE INDEX ON credit (role_id);
CREATE INDEX ON company (country_id);
CREATE INDEX ON film_company (film_id);
CREATE INDEX ON film_company (company_id);
CREATE INDEX ON film_company (kind_id);
CREATE INDEX ON film_keyword (film_id);
CREATE INDEX ON film_keyword (keyword_id);
CREATE INDEX ON film_info (film_id);
CREATE INDEX ON film_info (kind_id);
CREATE INDEX ON film_score (film_id);
CREATE INDEX ON film_score (kind_id);
CREATE INDEX ON film_link (film_id);
CREATE INDEX ON film_link (linked_id);
CREATE INDEX ON film_link (kind_id);
CREATE INDEX ON film_award (film_id);
CREATE INDEX ON film_award (person_id);
CREATE INDEX ON film_place (film_id);
CREATE INDEX ON film_place (country_id);

-- Few rows, so that statistics can be exact and equal everywhere: nothing of this is executed.

INSERT INTO film_kind VALUES (1, 'film'), (2, 'series'), (3, 'episode'), (4, 'short'), (5, 'documentary');
INSERT INTO company_kind VALUES (1, 'production'), (2, 'distribution'), (3, 'effects'), (4, 'music');
INSERT INTO credit_role SELECT i, (ARRAY['actor', 'director', 'writer', 'producer', 'composer', 'editor'])[i]
    FROM generate_series(1, 6) AS i;
INSERT INTO info_kind SELECT i, (ARRAY['genre', 'language', 'runtime', 'budget', 'release', 'rating', 'votes', 'height',
    'biography', 'birthplace', 'top list', 'bottom list'])[i] FROM generate_series(1, 12) AS i;
INSERT INTO link_kind SELECT i, (ARRAY['follows', 'followed by', 'remake of', 'refers to', 'features', 'spoofs'])[i]
    FROM generate_series(1, 6) AS i;
INSERT INTO country SELECT i, chr(64 + i % 26 + 1) || chr(64 + i * 7 % 26 + 1) FROM generate_series(1, 60) AS i;

INSERT INTO film SELECT i, 'Film ' || md5(i::text), i % 5 + 1, 1920 + i * 13 % 105, nullif(i % 9, 0), i % 20
    FROM generate_series(1, 2000) AS i;
INSERT INTO film_alias SELECT i, i * 7 % 2000 + 1, 'Also ' || md5(i::text), i % 60 + 1
    FROM generate_series(1, 800) AS i;
INSERT INTO person SELECT i, md5(i::text), (ARRAY['f', 'm', NULL])[i % 3 + 1], 1900 + i * 11 % 110
    FROM generate_series(1, 2500) AS i;
INSERT INTO person_alias SELECT i, i * 3 % 2500 + 1, md5((i * 2)::text) FROM generate_series(1, 900) AS i;
INSERT INTO person_info SELECT i, i * 5 % 2500 + 1, 8 + i % 3, md5((i % 50)::text) FROM generate_series(1, 2500) AS i;
INSERT INTO figure SELECT i, 'The ' || md5(i::text) FROM generate_series(1, 1500) AS i;
INSERT INTO credit SELECT i, i * 17 % 2500 + 1, i * 3 % 2000 + 1, nullif(i % 1501, 0), i % 6 + 1,
    (ARRAY['(voice)', '(uncredited)', NULL, '(as himself)'])[i % 4 + 1], i % 12 FROM generate_series(1, 6000) AS i;
INSERT INTO company SELECT i, 'Company ' || md5(i::text), i % 60 + 1 FROM generate_series(1, 600) AS i;
INSERT INTO film_company SELECT i, i * 11 % 2000 + 1, i % 600 + 1, i % 4 + 1,
    (ARRAY['(co-production)', NULL])[i % 2 + 1]
    FROM generate_series(1, 3000) AS i;
INSERT INTO keyword SELECT i, 'word ' || i % 700 FROM generate_series(1, 1000) AS i;
INSERT INTO film_keyword SELECT i, i * 13 % 2000 + 1, i % 1000 + 1 FROM generate_series(1, 4000) AS i;
INSERT INTO film_info SELECT i, i * 7 % 2000 + 1, i % 5 + 1, md5((i % 80)::text) FROM generate_series(1, 5000) AS i;
INSERT INTO film_score SELECT i, i * 3 % 2000 + 1, 6 + i % 2, i % 100 FROM generate_series(1, 2000) AS i;
INSERT INTO film_link SELECT i, i * 19 % 2000 + 1, i * 23 % 2000 + 1, i % 6 + 1 FROM generate_series(1, 700) AS i;
INSERT INTO film_award SELECT i, i * 29 % 2000 + 1, nullif(i * 3 % 2501, 0), 'award ' || i % 12
    FROM generate_series(1, 500) AS i;
INSERT INTO film_place SELECT i, i * 31 % 2000 + 1, i % 60 + 1, md5((i % 90)::text) FROM generate_series(1, 1500) AS i;

ANALYZE;

"""An application's SQL: a dump, a script of queries, and statements that pg_stat_statements recorded."""

from pathlib import Path

_DUMP = r"""--
-- PostgreSQL database dump
--
SET statement_timeout = 0;
SET client_encoding = 'UTF8';
SELECT pg_catalog.set_config('search_path', '', false);
CREATE SCHEMA shop;
ALTER SCHEMA shop OWNER TO somebody;
CREATE TABLE shop.customer (id integer NOT NULL, name text, since date);
CREATE TABLE public.orders (id integer NOT NULL, customer integer, total numeric(10,2), placed timestamp);
ALTER TABLE shop.customer OWNER TO somebody;
COPY shop.customer (id, name, since) FROM stdin;
1	Ann	2020-01-01
2	Bob	2021-05-05
3	Cid; "the third"	2022-01-09
4	\N	\N
\.
INSERT INTO public.orders
    SELECT g, g % 5, g * 1.25, timestamp '2024-01-01' + g * interval '1 hour' FROM generate_series(1, 200) g;
ALTER TABLE ONLY shop.customer ADD CONSTRAINT customer_pkey PRIMARY KEY (id);
CREATE INDEX ON public.orders (customer);
"""
_QUERIES = """
SELECT c.name, count(*), sum(o.total) FROM shop.customer c JOIN orders o ON o.customer = c.id WHERE o.total > 10
    GROUP BY c.name ORDER BY 2 DESC LIMIT 3;
SELECT * FROM orders WHERE placed BETWEEN '2024-01-02' AND '2024-01-03' AND customer IN (1, 2);
SELECT name, now() FROM shop.customer;
SELECT name FROM shop.customer WHERE NOT EXISTS (SELECT 1 FROM orders WHERE customer = customer.id AND total < 5);
SELECT DISTINCT ON (customer) customer, id, total FROM orders ORDER BY customer, total DESC;
"""
_RECORDED = """calls,query
5,SELECT id FROM orders WHERE customer = $1 AND total < $2
2,UPDATE orders SET total = total + $1 WHERE id = $2
9,BEGIN
"""


def write_application(directory: Path) -> Path:
    """Write the application's SQL into a directory, and return the directory."""
    for name, text in (("1_dump.sql", _DUMP), ("2_queries.sql", _QUERIES), ("recorded.csv", _RECORDED)):
        (directory / name).write_text(text)
    return directory

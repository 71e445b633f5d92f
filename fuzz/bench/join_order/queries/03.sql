-- Recent films by keyword and information.
SELECT min(f.title)
FROM film AS f, film_info AS i, film_keyword AS fw, keyword AS w
WHERE fw.film_id = f.id AND i.film_id = f.id AND i.film_id = fw.film_id AND fw.keyword_id = w.id
  AND w.word LIKE 'word 1%' AND i.info IN ('a', 'b', 'c') AND f.year > 2005;

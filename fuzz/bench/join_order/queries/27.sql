-- Where awarded films were shot.
SELECT n.code, count(*)
FROM film AS f, film_award AS fa, film_place AS fp, country AS n, film_info AS i, film_score AS s, film_keyword AS fw
WHERE fa.film_id = f.id AND fp.film_id = f.id AND i.film_id = f.id AND s.film_id = f.id AND fw.film_id = f.id
  AND fp.country_id = n.id AND fa.award LIKE '%1' AND s.score > 60
GROUP BY n.code ORDER BY n.code;

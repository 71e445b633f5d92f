-- All that is known of a year's films.
SELECT min(f.title), min(t.title), min(fp.place), min(s.score)
FROM film AS f, film_alias AS t, film_info AS i, film_score AS s, film_keyword AS fw, film_company AS fc,
  film_award AS fa, film_place AS fp
WHERE t.film_id = f.id AND i.film_id = f.id AND s.film_id = f.id AND fw.film_id = f.id AND fc.film_id = f.id
  AND fa.film_id = f.id AND fp.film_id = f.id AND f.year = 1999;

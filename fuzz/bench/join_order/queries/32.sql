-- A cast's awards, titles, places and scores.
SELECT min(p.name), min(g.name), min(t.title), max(s.score)
FROM credit AS c, person AS p, figure AS g, film AS f, film_alias AS t, film_award AS fa, film_place AS fp,
  film_score AS s, film_info AS i, film_keyword AS fw
WHERE c.person_id = p.id AND c.figure_id = g.id AND c.film_id = f.id AND t.film_id = f.id AND fa.film_id = f.id
  AND fp.film_id = f.id AND s.film_id = f.id AND i.film_id = f.id AND fw.film_id = f.id AND f.year > 1980;

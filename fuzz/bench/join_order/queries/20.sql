-- Figures of series by rank.
SELECT min(g.name), min(f.title)
FROM figure AS g, credit AS c, person AS p, film AS f, film_kind AS k, film_keyword AS fw, keyword AS w,
  film_score AS s, info_kind AS ik
WHERE c.figure_id = g.id AND c.person_id = p.id AND c.film_id = f.id AND f.kind_id = k.id AND fw.film_id = f.id
  AND s.film_id = f.id AND c.film_id = fw.film_id AND c.film_id = s.film_id AND fw.film_id = s.film_id
  AND fw.keyword_id = w.id AND s.kind_id = ik.id AND ik.info = 'rating' AND k.kind = 'series' AND g.name LIKE '%man%'
  AND s.score > 70;

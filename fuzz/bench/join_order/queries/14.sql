-- Dark films by rating.
SELECT min(s.score), min(f.title)
FROM film AS f, film_kind AS k, film_info AS i, info_kind AS ik1, film_score AS s, info_kind AS ik2, film_keyword AS fw,
  keyword AS w
WHERE f.kind_id = k.id AND i.film_id = f.id AND s.film_id = f.id AND fw.film_id = f.id AND fw.film_id = i.film_id
  AND fw.film_id = s.film_id AND i.film_id = s.film_id AND fw.keyword_id = w.id AND i.kind_id = ik1.id
  AND s.kind_id = ik2.id AND ik1.info = 'language' AND ik2.info = 'votes' AND k.kind IN ('film', 'episode')
  AND w.word IN ('word 1', 'word 2', 'word 3') AND s.score < 85 AND f.year > 2010;

-- Rated films with a keyword.
SELECT min(s.score), min(f.title)
FROM film AS f, film_score AS s, info_kind AS ik, film_keyword AS fw, keyword AS w
WHERE s.film_id = f.id AND fw.film_id = f.id AND fw.film_id = s.film_id AND s.kind_id = ik.id
  AND fw.keyword_id = w.id AND ik.info = 'rating' AND w.word LIKE '%7' AND s.score > 50;

-- Two films, one a follow-up of the other, with their makers and scores.
SELECT min(co1.name), min(s2.score), min(f2.title)
FROM company AS co1, company AS co2, film_company AS fc1, film_company AS fc2, film AS f1, film AS f2, film_kind AS k1,
  film_kind AS k2, film_score AS s1, film_score AS s2, film_link AS l, link_kind AS lk, info_kind AS ik1,
  info_kind AS ik2
WHERE lk.id = l.kind_id AND f1.id = l.film_id AND f2.id = l.linked_id AND s1.kind_id = ik1.id AND s1.film_id = f1.id
  AND f1.kind_id = k1.id AND fc1.company_id = co1.id AND fc1.film_id = f1.id AND l.film_id = s1.film_id
  AND l.film_id = fc1.film_id AND s1.film_id = fc1.film_id AND s2.kind_id = ik2.id AND s2.film_id = f2.id
  AND f2.kind_id = k2.id AND fc2.company_id = co2.id AND fc2.film_id = f2.id AND l.linked_id = s2.film_id
  AND l.linked_id = fc2.film_id AND s2.film_id = fc2.film_id AND ik1.info = 'rating' AND ik2.info = 'rating'
  AND k1.kind = 'series' AND k2.kind = 'series' AND lk.link IN ('follows', 'followed by') AND s2.score < 30;

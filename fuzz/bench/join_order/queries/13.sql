-- The same for films of one kind, by release.
SELECT min(f.title), min(i.info), max(s.score)
FROM company AS co, company_kind AS ck, country AS n, film_company AS fc, film AS f, film_kind AS k, film_info AS i,
  info_kind AS ik1, film_score AS s, info_kind AS ik2
WHERE f.kind_id = k.id AND fc.film_id = f.id AND i.film_id = f.id AND s.film_id = f.id AND fc.film_id = i.film_id
  AND fc.film_id = s.film_id AND i.film_id = s.film_id AND fc.company_id = co.id AND co.country_id = n.id
  AND fc.kind_id = ck.id AND i.kind_id = ik1.id AND s.kind_id = ik2.id AND ik1.info = 'release'
  AND ik2.info = 'rating' AND k.kind = 'film' AND n.code = 'DE';

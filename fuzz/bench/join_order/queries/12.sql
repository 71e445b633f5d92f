-- Ratings and genres of a country's productions.
SELECT co.name, i.info, s.score
FROM company AS co, company_kind AS ck, film_company AS fc, film AS f, film_info AS i, info_kind AS ik1,
  film_score AS s, info_kind AS ik2
WHERE fc.film_id = f.id AND i.film_id = f.id AND s.film_id = f.id AND fc.film_id = i.film_id
  AND fc.film_id = s.film_id AND i.film_id = s.film_id AND fc.company_id = co.id AND fc.kind_id = ck.id
  AND i.kind_id = ik1.id AND s.kind_id = ik2.id AND ik1.info = 'genre' AND ik2.info = 'rating'
  AND ck.kind = 'production' AND s.score > 80 AND f.year BETWEEN 2005 AND 2010
ORDER BY co.name, i.info, s.score;

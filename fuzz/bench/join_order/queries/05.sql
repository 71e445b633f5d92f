-- Genres of co-productions.
SELECT i.info, count(*)
FROM film AS f, film_info AS i, info_kind AS ik, film_company AS fc, company_kind AS ck
WHERE i.film_id = f.id AND fc.film_id = f.id AND fc.film_id = i.film_id AND i.kind_id = ik.id AND fc.kind_id = ck.id
  AND ik.info = 'genre' AND ck.kind = 'production' AND fc.note LIKE '%co-production%'
GROUP BY i.info ORDER BY i.info;

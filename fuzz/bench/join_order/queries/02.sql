-- Who distributes films of the top list.
SELECT min(c.name), min(f.title)
FROM film AS f, film_company AS fc, company AS c, company_kind AS ck, film_score AS s
WHERE fc.film_id = f.id AND s.film_id = f.id AND s.film_id = fc.film_id AND fc.company_id = c.id
  AND fc.kind_id = ck.id AND ck.kind = 'distribution' AND s.score > 90;

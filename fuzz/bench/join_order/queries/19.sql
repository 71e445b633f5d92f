-- Voices with their figures and the releases.
SELECT min(p.name), min(f.title)
FROM person_alias AS pa, figure AS g, credit AS c, credit_role AS r, company AS co, film_company AS fc, film_info AS i,
  info_kind AS ik, person AS p, film AS f
WHERE pa.person_id = p.id AND c.person_id = p.id AND pa.person_id = c.person_id AND c.figure_id = g.id
  AND c.role_id = r.id AND c.film_id = f.id AND fc.film_id = f.id AND i.film_id = f.id AND c.film_id = fc.film_id
  AND c.film_id = i.film_id AND fc.film_id = i.film_id AND fc.company_id = co.id AND i.kind_id = ik.id
  AND ik.info = 'release' AND r.role = 'actor' AND c.note LIKE '%voice%' AND f.year BETWEEN 2000 AND 2010;

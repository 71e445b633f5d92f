-- The same with the figure that spoke.
SELECT min(pa.name), min(g.name), min(f.title)
FROM person_alias AS pa, person AS p, credit AS c, figure AS g, credit_role AS r, film AS f, film_company AS fc,
  company AS co
WHERE pa.person_id = p.id AND c.person_id = p.id AND pa.person_id = c.person_id AND c.figure_id = g.id
  AND c.role_id = r.id AND c.film_id = f.id AND fc.film_id = f.id AND c.film_id = fc.film_id
  AND fc.company_id = co.id AND c.note IN ('(voice)', '(as himself)') AND p.gender = 'f' AND p.name LIKE '%e%'
  AND f.year BETWEEN 2000 AND 2015;

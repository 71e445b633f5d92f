-- Uncredited figures, by the countries of the companies.
SELECT k.code, min(g.name)
FROM figure AS g, credit AS c, credit_role AS r, film AS f, film_company AS fc, company AS co, company_kind AS ck,
  country AS k
WHERE c.figure_id = g.id AND c.role_id = r.id AND c.film_id = f.id AND fc.film_id = f.id AND c.film_id = fc.film_id
  AND fc.company_id = co.id AND fc.kind_id = ck.id AND co.country_id = k.id AND c.note LIKE '%uncredited%'
  AND r.role = 'actor' AND f.year > 1990
GROUP BY k.code ORDER BY k.code;

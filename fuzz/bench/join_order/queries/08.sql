-- Voices in films of one country's companies.
SELECT min(pa.name), min(f.title)
FROM person_alias AS pa, person AS p, credit AS c, credit_role AS r, film AS f, film_company AS fc, company AS co
WHERE pa.person_id = p.id AND c.person_id = p.id AND pa.person_id = c.person_id AND c.role_id = r.id
  AND c.film_id = f.id AND fc.film_id = f.id AND c.film_id = fc.film_id AND fc.company_id = co.id
  AND co.country_id = 12 AND c.note = '(voice)' AND r.role = 'actor';

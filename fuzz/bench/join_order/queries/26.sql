-- Titles elsewhere, of films without a score.
SELECT n.code, count(*)
FROM film AS f, film_alias AS fa, country AS n, film_company AS fc, company AS co
WHERE fa.film_id = f.id AND fc.film_id = f.id AND fa.film_id = fc.film_id AND fa.country_id = n.id
  AND fc.company_id = co.id AND co.country_id = n.id AND NOT EXISTS (SELECT FROM film_score AS s WHERE s.film_id = f.id)
GROUP BY n.code ORDER BY n.code;

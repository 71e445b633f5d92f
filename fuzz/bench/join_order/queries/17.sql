-- In how many films each name is.
SELECT p.name, count(DISTINCT f.id)
FROM credit AS c, film AS f, person AS p, film_keyword AS fw, keyword AS w, film_company AS fc, company AS co
WHERE c.person_id = p.id AND c.film_id = f.id AND fw.film_id = f.id AND fc.film_id = f.id AND c.film_id = fw.film_id
  AND c.film_id = fc.film_id AND fw.film_id = fc.film_id AND fc.company_id = co.id AND fw.keyword_id = w.id
  AND p.name LIKE 'b%' AND w.word LIKE 'word 2%'
GROUP BY p.name ORDER BY count(DISTINCT f.id) DESC, p.name;

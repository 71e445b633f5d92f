-- Other names of those who made early episodes with a keyword.
SELECT min(pa.name), min(f.title)
FROM person_alias AS pa, person AS p, credit AS c, film AS f, film_keyword AS fw, keyword AS w, film_company AS fc,
  company AS co
WHERE pa.person_id = p.id AND c.person_id = p.id AND pa.person_id = c.person_id AND c.film_id = f.id
  AND fw.film_id = f.id AND fc.film_id = f.id AND c.film_id = fw.film_id AND c.film_id = fc.film_id
  AND fw.film_id = fc.film_id AND fc.company_id = co.id AND fw.keyword_id = w.id AND w.word = 'word 60'
  AND f.episode >= 5 AND f.episode < 10;

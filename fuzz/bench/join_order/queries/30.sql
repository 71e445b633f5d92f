-- People whose own award is for a film that they have a credit in.
SELECT p.name, fa.award, f.title
FROM person AS p, person_alias AS pa, person_info AS pi, credit AS c, film_award AS fa, film AS f, film_info AS i,
  film_score AS s, film_company AS fc
WHERE pa.person_id = p.id AND pi.person_id = p.id AND c.person_id = p.id AND fa.person_id = p.id AND c.film_id = f.id
  AND fa.film_id = f.id AND i.film_id = f.id AND s.film_id = f.id AND fc.film_id = f.id AND p.born < 1940
ORDER BY p.name, fa.award, f.title;

-- Who played in films with a keyword.
SELECT min(p.name), min(f.title)
FROM credit AS c, film AS f, person AS p, film_keyword AS fw, keyword AS w
WHERE c.film_id = f.id AND fw.film_id = f.id AND c.film_id = fw.film_id AND c.person_id = p.id
  AND fw.keyword_id = w.id AND w.word = 'word 33' AND p.name LIKE 'a%' AND f.year > 2010;

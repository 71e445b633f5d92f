-- Links between films that share a keyword, a place and a company.
SELECT f1.title, f2.title
FROM film_link AS l, film AS f1, film AS f2, film_keyword AS w1, film_keyword AS w2, film_place AS p1, film_place AS p2,
  film_company AS c1, film_company AS c2
WHERE l.film_id = f1.id AND l.linked_id = f2.id AND w1.film_id = f1.id AND w2.film_id = f2.id AND p1.film_id = f1.id
  AND p2.film_id = f2.id AND c1.film_id = f1.id AND c2.film_id = f2.id AND w1.keyword_id = w2.keyword_id
  AND p1.country_id = p2.country_id AND c1.company_id = c2.company_id
ORDER BY f1.title, f2.title;

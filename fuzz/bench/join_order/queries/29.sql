-- Companies whose films are known by other titles and keywords.
SELECT co.name, count(*)
FROM company AS co, film_company AS fc, film AS f, film_alias AS t, film_keyword AS fw, keyword AS w, film_info AS i,
  film_place AS fp, film_score AS s
WHERE fc.company_id = co.id AND fc.film_id = f.id AND t.film_id = f.id AND fw.film_id = f.id AND fw.keyword_id = w.id
  AND i.film_id = f.id AND fp.film_id = f.id AND s.film_id = f.id AND w.word LIKE 'word 3%' AND s.score < 40
GROUP BY co.name ORDER BY co.name;

-- Follow-ups with keywords, genres and companies.
SELECT min(co.name), min(lk.link), min(i.info)
FROM company AS co, company_kind AS ck, keyword AS w, link_kind AS lk, film_company AS fc, film_info AS i,
  film_keyword AS fw, film_link AS l, film AS f
WHERE l.film_id = f.id AND fw.film_id = f.id AND fc.film_id = f.id AND i.film_id = f.id AND l.film_id = fw.film_id
  AND l.film_id = fc.film_id AND l.film_id = i.film_id AND fw.film_id = fc.film_id AND fw.film_id = i.film_id
  AND fc.film_id = i.film_id AND l.kind_id = lk.id AND fw.keyword_id = w.id AND fc.company_id = co.id
  AND fc.kind_id = ck.id AND i.info LIKE '%9%' AND f.year BETWEEN 1950 AND 2000;

-- Follow-ups and who made them.
SELECT min(co.name), min(lk.link), min(f.title)
FROM company AS co, company_kind AS ck, keyword AS w, link_kind AS lk, film_company AS fc, film_keyword AS fw,
  film_link AS l, film AS f
WHERE fc.film_id = f.id AND fw.film_id = f.id AND l.film_id = f.id AND fc.film_id = fw.film_id
  AND fc.film_id = l.film_id AND fw.film_id = l.film_id AND fc.company_id = co.id AND fc.kind_id = ck.id
  AND fw.keyword_id = w.id AND l.kind_id = lk.id AND co.country_id <> 5 AND lk.link LIKE '%follow%'
  AND w.word = 'word 8' AND fc.note IS NULL;

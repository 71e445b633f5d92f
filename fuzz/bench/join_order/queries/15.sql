-- Releases under other titles.
SELECT min(i.info), min(f.title), min(fa.title)
FROM film AS f, film_alias AS fa, film_info AS i, info_kind AS ik, film_company AS fc, company AS co,
  company_kind AS ck, film_keyword AS fw, keyword AS w
WHERE fa.film_id = f.id AND i.film_id = f.id AND fc.film_id = f.id AND fw.film_id = f.id AND fw.film_id = i.film_id
  AND fw.film_id = fc.film_id AND fw.film_id = fa.film_id AND i.film_id = fc.film_id AND i.film_id = fa.film_id
  AND fc.film_id = fa.film_id AND fc.company_id = co.id AND fc.kind_id = ck.id AND i.kind_id = ik.id
  AND fw.keyword_id = w.id AND ik.info = 'release' AND fc.note LIKE '(co%' AND f.year > 2000;

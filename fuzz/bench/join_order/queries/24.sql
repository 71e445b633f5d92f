-- Actresses with a voice, everything about them.
SELECT min(g.name), min(p.name), min(f.title)
FROM person_alias AS pa, figure AS g, credit AS c, credit_role AS r, company AS co, film_company AS fc, film_info AS i,
  info_kind AS ik, keyword AS w, film_keyword AS fw, person AS p, film AS f
WHERE f.id = i.film_id AND f.id = fc.film_id AND f.id = c.film_id AND f.id = fw.film_id AND fc.film_id = c.film_id
  AND fc.film_id = i.film_id AND fc.film_id = fw.film_id AND i.film_id = c.film_id AND i.film_id = fw.film_id
  AND c.film_id = fw.film_id AND pa.person_id = p.id AND c.person_id = p.id AND pa.person_id = c.person_id
  AND c.figure_id = g.id AND c.role_id = r.id AND fc.company_id = co.id AND i.kind_id = ik.id AND fw.keyword_id = w.id
  AND ik.info = 'release' AND r.role = 'actor' AND p.gender = 'f' AND w.word = 'word 5' AND f.year > 2010;

-- Ratings by kind, genre, keyword and company.
SELECT k.kind, min(s.score), min(f.title)
FROM company AS co, company_kind AS ck, info_kind AS ik1, info_kind AS ik2, keyword AS w, film_kind AS k,
  film_company AS fc, film_info AS i, film_score AS s, film_keyword AS fw, film AS f
WHERE f.kind_id = k.id AND i.film_id = f.id AND fw.film_id = f.id AND s.film_id = f.id AND fc.film_id = f.id
  AND fw.film_id = i.film_id AND fw.film_id = s.film_id AND fw.film_id = fc.film_id AND i.film_id = s.film_id
  AND i.film_id = fc.film_id AND s.film_id = fc.film_id AND fw.keyword_id = w.id AND i.kind_id = ik1.id
  AND s.kind_id = ik2.id AND fc.kind_id = ck.id AND fc.company_id = co.id AND ik1.info = 'genre'
  AND ik2.info = 'rating' AND s.score < 70
GROUP BY k.kind ORDER BY k.kind;

-- Budgets and votes of films that men had a part in.
SELECT min(i.info), min(s.score), min(f.title)
FROM credit AS c, person AS p, film AS f, film_info AS i, info_kind AS ik1, film_score AS s, info_kind AS ik2
WHERE c.film_id = f.id AND i.film_id = f.id AND s.film_id = f.id AND c.film_id = i.film_id AND c.film_id = s.film_id
  AND i.film_id = s.film_id AND c.person_id = p.id AND i.kind_id = ik1.id AND s.kind_id = ik2.id
  AND ik1.info = 'budget' AND ik2.info = 'votes' AND p.gender = 'm' AND c.note IS NULL;

-- Where people of linked films were born.
SELECT p.name, pi.info, f1.title, f2.title
FROM person AS p, person_info AS pi, info_kind AS ik, credit AS c1, credit AS c2, film AS f1, film AS f2,
  film_link AS l, link_kind AS lk
WHERE pi.person_id = p.id AND pi.kind_id = ik.id AND c1.person_id = p.id AND c2.person_id = p.id AND c1.film_id = f1.id
  AND c2.film_id = f2.id AND l.film_id = f1.id AND l.linked_id = f2.id AND l.kind_id = lk.id
  AND ik.info = 'birthplace' AND lk.link = 'remake of' AND f1.year > f2.year
ORDER BY p.name, f1.title, f2.title;

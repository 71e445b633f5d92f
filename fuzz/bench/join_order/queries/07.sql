-- People with other names, and the films that refer to theirs.
SELECT min(p.name), min(f.title)
FROM person AS p, person_alias AS pa, person_info AS pi, info_kind AS ik, credit AS c, film AS f, film_link AS l,
  link_kind AS lk
WHERE pa.person_id = p.id AND pi.person_id = p.id AND c.person_id = p.id AND pa.person_id = pi.person_id
  AND pa.person_id = c.person_id AND c.film_id = f.id AND l.linked_id = f.id AND l.linked_id = c.film_id
  AND pi.kind_id = ik.id AND l.kind_id = lk.id AND ik.info = 'biography' AND lk.link = 'features'
  AND p.born BETWEEN 1950 AND 1980;

-- Films of a kind with a keyword and their years.
SELECT min(f.title), max(f.year)
FROM film AS f, film_kind AS k, film_keyword AS fw, keyword AS w
WHERE f.kind_id = k.id AND fw.film_id = f.id AND fw.keyword_id = w.id AND k.kind = 'film' AND w.word = 'word 17';

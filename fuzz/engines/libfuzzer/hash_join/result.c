/*
 * The result of the join, and the one that it should have.
 */
#include "postgres.h"

#include "backend_stubs.h"
#include "hash_join/hash_join.h"

typedef struct Entry
{
	uint32		key;
	int			number;
} Entry;

static Entry *entries;			/* of inner rows, in the order of keys */
static const Row **last_pair;	/* of each inner row, the outer row that it was last returned with */

static int
compare_entries(const void *one, const void *other)
{
	const Entry *a = one;
	const Entry *b = other;

	return a->key != b->key ? (a->key > b->key) - (a->key < b->key) : a->number - b->number;
}

void
index_inner_rows(void)
{
	entries = realloc(entries, Max(inner.nrows, 1) * sizeof(Entry));
	for (int i = 0; i < inner.nrows; i++)
		entries[i] = (Entry) {inner.rows[i].key, i};
	qsort(entries, inner.nrows, sizeof(Entry), compare_entries);
}

/* Return the first entry that has the key or a greater one. */
static const Entry *
find_entry(uint32 key)
{
	int			low = 0;
	int			high = inner.nrows;

	while (low < high)
	{
		int			middle = (low + high) / 2;

		if (entries[middle].key < key)
			low = middle + 1;
		else
			high = middle;
	}
	return entries + low;
}

#define for_each_with(entry, wanted) \
	for (const Entry *entry = find_entry(wanted); \
		 entry < entries + inner.nrows && entry->key == (wanted); \
		 entry++)

int
inner_rows_with(uint32 key)
{
	int			count = 0;

	for_each_with(entry, key)
		count++;
	return count;
}

bool
has_equal_key(const Row *outer_row)
{
	if (!outer_row->null)
		for_each_with(entry, outer_row->key)
			if (is_present(&inner, entry->number) && !inner.rows[entry->number].null)
				return true;
	return false;
}

/* Before a scan: forget the last one's result, and determine the partners of all rows. */
void
forget_result(void)
{
	last_pair = realloc(last_pair, Max(inner.nrows, 1) * sizeof(*last_pair));
	memset(last_pair, 0, inner.nrows * sizeof(*last_pair));
	for (int i = 0; i < inner.nrows; i++)
	{
		inner.rows[i].npairs = inner.rows[i].npartners = 0;
		inner.rows[i].alone = false;
	}
	for (int i = 0; i < outer.nrows; i++)
	{
		Row		   *row = &outer.rows[i];

		row->npairs = row->npartners = 0;
		row->alone = false;
		for_each_with(entry, row->key)
		{
			Row		   *partner = &inner.rows[entry->number];

			if (is_present(&inner, entry->number) && qualify(row, partner))
			{
				row->npartners++;
				partner->npartners++;
			}
		}
	}
}

void
add_to_result(Row *outer_row, Row *inner_row)
{
	Row		   *alone = outer_row ? outer_row : inner_row;

	if (alone == NULL)
		fatal("a row of neither relation is returned");
	if (outer_row == NULL || inner_row == NULL)
	{
		if (alone->alone)
			fatal("a row is returned twice without a partner");
		alone->alone = true;
		return;
	}

	if (!qualify(outer_row, inner_row))
		fatal("two rows are returned that don't match");
	if (last_pair[inner_row - inner.rows] == outer_row)
		fatal("a pair of rows is returned twice");
	last_pair[inner_row - inner.rows] = outer_row;
	outer_row->npairs++;
	inner_row->npairs++;
}

static void
check_row(const char *relation, const Row *row, int npairs, bool alone, bool complete)
{
	if (row->npairs > npairs || (complete && row->npairs < npairs))
		fatal("an %s row with %d partners is in %d pairs, not %d", relation, row->npartners, row->npairs, npairs);
	if (row->alone > alone || (complete && row->alone < alone))
		fatal("an %s row with %d partners is %sreturned alone", relation, row->npartners, alone ? "not " : "");
}

/*
 * After a scan: check that the result has no row that it should not have and, if it is complete, all that it should
 * have.
 */
void
check_result(bool complete)
{
	JoinType	type = planned.type;
	bool		pairs = type != JOIN_ANTI && type != JOIN_RIGHT_ANTI;
	bool		fills_outer = type == JOIN_LEFT || type == JOIN_FULL || type == JOIN_ANTI;
	bool		fills_inner = type == JOIN_RIGHT || type == JOIN_FULL || type == JOIN_RIGHT_ANTI;

	for (int i = 0; i < outer.nrows; i++)
	{
		Row		   *row = &outer.rows[i];
		int			npairs = type == JOIN_SEMI ? Min(row->npartners, 1) : row->npartners;

		check_row("outer", row, pairs ? npairs : 0, fills_outer && row->npartners == 0, complete);
	}
	for (int i = 0; i < inner.nrows; i++)
	{
		Row		   *row = &inner.rows[i];
		bool		alone = fills_inner && row->npartners == 0 && is_present(&inner, i);

		check_row("inner", row, type == JOIN_SEMI ? row->npairs : pairs ? row->npartners : 0, alone, complete);
	}
}

/*
 * The server's shared hash table, and checks of it when it is complete.
 */
#include "postgres.h"

#include "parallel_join/switching_phases.h"
#include "src/backend/executor/nodeHash.c"

#include "backend_stubs.h"
#include "parallel_join/parallel_join.h"

static bool
is_inserted(int number, bool keep_nulls)
{
	return is_present(&inner, number) && (keep_nulls || !inner.rows[number].null);
}

/* Check that the filter excludes no inner row. */
static void
check_filter(HashJoinTable table, bool keep_nulls)
{
	for (int i = 0; i < inner.nrows; i++)
		if (is_inserted(i, keep_nulls) && blockbloom_lacks(&table->bloom->filter, inner.rows[i].key))
			fatal("the filter lacks the hash value of an inner row");
}

/* Check the number of tuples of each batch. */
static void
check_batches(HashJoinTable table, bool keep_nulls)
{
	size_t	   *expected = palloc0_array(size_t, table->nbatch);

	for (int i = 0; i < inner.nrows; i++)
		if (is_inserted(i, keep_nulls))
			expected[ExecHashGetBatch(table, inner.rows[i].key)]++;
	for (int i = 0; i < table->nbatch; i++)
		if (table->batches[i].shared->ntuples != expected[i])
			fatal("batch %d of %d has %zu tuples, not %zu", i, table->nbatch, table->batches[i].shared->ntuples,
				  expected[i]);
	pfree(expected);
}

/* Check a table when all inner rows are there, from the view of one process. */
void
check_built(HashJoinTable table, bool keep_nulls)
{
	int			expected = 0;

	for (int i = 0; i < inner.nrows; i++)
		expected += is_inserted(i, keep_nulls);
	if (table->totalTuples != expected)
		fatal("%.0f inner rows are counted, not %d", table->totalTuples, expected);
	if (table->parallel_state->build_barrier.phase < PHJ_BUILD_FREE)
		check_batches(table, keep_nulls);
	if (table->bloom)
		check_filter(table, keep_nulls);
}

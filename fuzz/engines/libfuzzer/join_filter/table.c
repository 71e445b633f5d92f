/*
 * Checks of the hash table of an executing join: its filter, its memory, and the reasons for more batches.
 */
#include "src/backend/executor/nodeHash.c"

#include "backend_stubs.h"
#include "join_filter/join_filter.h"

#define FIRST_DUMPED_VALUES	(256 * sizeof(uint32))	/* taken before the first dumped tuple is freed */
#define STRANGERS			512

/* The table as it was before the last insertion, and a peak. */
static struct
{
	Size		fixed_skew;		/* memory of the skew hash table without its buckets */
	Size		fixed_hash;		/* allocations in hashCxt that are neither filter nor hash values */
	int			inserted;		/* rows */
	int			next;			/* inner row after the last one that was checked */
	int			nbatch;
	bool		may_grow;		/* may batches be added? */
	bool		may_grow_for_filter;	/* ... for the filter alone, if it may be a reason? */
	Size		filter;			/* size */
	Size		planned;		/* size of a filter that is not started yet */
	int			nskew;			/* buckets */
	size_t		tuples;			/* in memory */
	Size		used;			/* memory in use */
	Size		without;		/* the same without that of the filter */
	Size		peak;			/* at most that much was in use without the filter */
	Size		with_last_tuple;	/* at most that much was in use with the filter, when batches were added */
} seen;

static Size
filter_space(HashJoinTable table)
{
	return (table->bloom ? table->bloom->size : 0) + (table->bloomValues ? HASH_BLOOM_MIN_SIZE : 0);
}

static Size
filter_allocations(HashJoinTable table)
{
	return (table->bloom ? sizeof(HashBloom) + table->bloom->size + BLOCKBLOOM_BLOCK_SIZE : 0) +
		(table->bloomValues ? HASH_BLOOM_MIN_SIZE : 0);
}

/* Space */

static Size
space_of_list(HashJoinTuple tuple, size_t *count)
{
	Size		space = 0;

	for (; tuple != NULL; tuple = tuple->next.unshared)
	{
		space += HJTUPLE_OVERHEAD + HJTUPLE_MINTUPLE(tuple)->t_len;
		(*count)++;
	}
	return space;
}

static Size
space_of_chunks(HashJoinTable table, size_t *count)
{
	Size		space = 0;

	for (HashMemoryChunk chunk = table->chunks; chunk != NULL; chunk = chunk->next.unshared)
	{
		for (size_t at = 0; at < chunk->used;)
		{
			HashJoinTuple tuple = (HashJoinTuple) (HASH_CHUNK_DATA(chunk) + at);
			Size		size = HJTUPLE_OVERHEAD + HJTUPLE_MINTUPLE(tuple)->t_len;

			if (ExecHashGetBatch(table, tuple->hashvalue) != table->curbatch)
				fatal("a tuple of another batch is in memory");
			if (row_of(HJTUPLE_MINTUPLE(tuple), NULL)->key != tuple->hashvalue)
				fatal("a tuple in memory has another hash value");
			space += size;
			(*count)++;
			at += MAXALIGN(size);
		}
	}
	return space;
}

/* Check that the memory in use is the sum of all that is there. Return the number of tuples. */
static size_t
check_space(HashJoinTable table)
{
	size_t		in_chunks = 0;
	size_t		in_skew = 0;
	Size		space = space_of_chunks(table, &in_chunks);

	if (table->batchTuples != in_chunks)
		fatal("%zu tuples are counted, not %zu", table->batchTuples, in_chunks);
	if (table->skewEnabled)
		space += seen.fixed_skew;
	for (int i = 0; i < table->nSkewBuckets; i++)
		space += SKEW_BUCKET_OVERHEAD +
			space_of_list(table->skewBucket[table->skewBucketNums[i]]->tuples, &in_skew);
	if (table->buckets.unshared)
		space += table->nbuckets * sizeof(HashJoinTuple);
	space += filter_space(table);
	if (table->spaceUsed != space)
		fatal("%zu bytes are counted, not %zu", table->spaceUsed, space);
	if (table->spacePeak < space)
		fatal("a peak of %zu bytes, where %zu are in use", table->spacePeak, space);
	if (stub_allocated(table->hashCxt) != seen.fixed_hash + filter_allocations(table))
		fatal("the filter has %zu bytes, not %zu", stub_allocated(table->hashCxt) - seen.fixed_hash,
			  filter_allocations(table));
	return in_chunks + in_skew;
}

/* The filter */

static bool
is_inserted(const Row *row, bool keep_nulls)
{
	return is_present(&inner, row - inner.rows) && (keep_nulls || !row->null);
}

/* Check that no inner row from a number on, up to the one to be read next, is excluded by the filter. */
static void
check_members(HashJoinTable table, int from, bool keep_nulls)
{
	for (int i = from; i < inner.next; i++)
		if (is_inserted(&inner.rows[i], keep_nulls) && blockbloom_lacks(&table->bloom->filter, inner.rows[i].key))
			fatal("the filter lacks the hash value of an inner row");
}

static void
check_shape(HashJoinTable table)
{
	HashBloom  *bloom = table->bloom;
	char	   *words = (char *) bloom->filter.words;

	if ((Size) bloom->filter.nblocks * BLOCKBLOOM_BLOCK_SIZE != bloom->size)
		fatal("a filter of %u blocks is in %zu bytes", bloom->filter.nblocks, bloom->size);
	if (bloom->size < BLOCKBLOOM_MIN_SIZE)
		fatal("a filter of %zu bytes", bloom->size);
	if (words != (char *) TYPEALIGN(BLOCKBLOOM_BLOCK_SIZE, bloom->memory))
		fatal("the filter is not aligned to blocks");
}

/* Check that the filter is not full. */
static void
check_strangers(HashJoinTable table)
{
	int			excluded = 0;

	for (uint32 i = 0; i < STRANGERS; i++)
		excluded += blockbloom_lacks(&table->bloom->filter, murmurhash32(~i));
	if (excluded < STRANGERS / 3)	/* 7 standard deviations */
		fatal("the filter excludes only %d of %d hash values", excluded, STRANGERS);
}

/* The plan */

static void
check_plan(HashJoinTable table, const HashJoinState *join)
{
	const HashState *state = castNode(HashState, join->js.ps.righttree);
	double		rows = inner.plan.plan_rows;
	int			width = inner.plan.plan_width;
	bool		use_skew = OidIsValid(((Hash *) state->ps.plan)->skewTable);
	Size		size = table->bloom ? table->bloom->size : table->bloomPlanned;
	double		tuples = rows / table->nbatch;
	Size		allowed;
	int			nbuckets;
	int			nbatch;
	int			nmcvs;

	ExecChooseHashTableSize(rows, width, use_skew, false, 0, &allowed, &nbuckets, &nbatch, &nmcvs);
	ExecHashChooseBatches(rows, width, use_skew, 0, &allowed, &nbatch, &nmcvs);
	if (table->nbatch < nbatch || table->nbatch > nbatch * 4.0)
		fatal("%d batches are planned, and %d with a filter", nbatch, table->nbatch);
	if (table->nbatch > nbatch && ((size == 0 && !stub_out_of_memory) || nbatch < HASH_BLOOM_SOME_BATCHES))
		fatal("%d batches instead of %d for a filter of %zu bytes", table->nbatch, nbatch, size);
	if (table->bloom && table->bloomPlanned)
		fatal("another filter is planned");
	if (size == 0)
		return;

	if (table->bloomMode == HASHJOIN_BLOOM_OFF || nbatch == 1)
		fatal("a filter is planned for %d batches", nbatch);
	if ((size & (size - 1)) != 0 || size < BLOCKBLOOM_MIN_SIZE || size > allowed / 2)
		fatal("a filter of %zu bytes is planned", size);
	if (table->bloomMode != HASHJOIN_BLOOM_FORCE &&
		tuples * ExecHashTupleSize(width) + ExecHashBucketSpace(tuples) + size > allowed)
		fatal("a filter of %zu bytes is planned where there is no room", size);
}

/* Steps of a join */

static void
look_at(HashJoinTable table, int next, size_t tuples)
{
	seen.next = next;
	seen.nbatch = table->nbatch;
	seen.may_grow = table->growEnabled;
	seen.may_grow_for_filter = table->bloomGrowEnabled;
	seen.filter = table->bloom ? table->bloom->size : 0;
	seen.planned = table->bloomPlanned;
	seen.nskew = table->nSkewBuckets;
	seen.tuples = tuples;
	seen.used = table->spaceUsed;
	seen.without = table->spaceUsed - filter_space(table);
}

/* Called with an empty table. */
void
begin_build(HashJoinTable table, const HashJoinState *join)
{
	memset(&seen, 0, sizeof(seen));
	seen.fixed_hash = stub_allocated(table->hashCxt) - filter_allocations(table);
	seen.fixed_skew = table->spaceUsed - filter_space(table) - table->nSkewBuckets * SKEW_BUCKET_OVERHEAD;
	seen.peak = table->spacePeak;
	check_plan(table, join);
	check_space(table);
	look_at(table, 0, 0);
	saved_inner = saved_outer = 0;
}

/* Might the filter be a reason for the batches that were added? It may be gone, if they divided nothing. */
static bool
filter_may_add_batches(const HashJoinTable table)
{
	bool		too_many_tuples = table->totalTuples > table->bloomTuples;
	bool		gone = !table->bloom && !table->bloomGrowEnabled;

	if (seen.filter + seen.planned == 0 || !seen.may_grow_for_filter)
		return false;
	if (seen.nbatch >= HASH_BLOOM_MANY_BATCHES)
		return true;
	return too_many_tuples &&
		(gone || (table->bloom && table->bloom->size <= table->spaceAllowed / HASH_BLOOM_SMALL_SHARE));
}

/* Check that batches were not added because of the filter, unless it may be a reason, and that others may still be. */
static void
check_growth(HashJoinTable table, Size inserted)
{
	Size		needed = seen.without + inserted + ExecHashBucketSpace(seen.tuples + 1);

	if (table->nbatch != seen.nbatch && table->nbatch != seen.nbatch * 2)
		fatal("%d batches become %d", seen.nbatch, table->nbatch);
	if (table->nbatch > seen.nbatch && needed <= table->spaceAllowed && !filter_may_add_batches(table))
		fatal("batches are added when %zu bytes are needed", needed);
	if (seen.may_grow && !table->growEnabled && needed <= table->spaceAllowed)
		fatal("no batches are added any more, though only %zu bytes are needed", needed);
}

/*
 * A tuple may exceed the memory together with a filter only if batches are added for it. Then the excess may last until
 * the next tuple is inserted, if few tuples of the first batch went to the new ones. When common values are removed,
 * their tuples may show that batches would not help, and the filter makes room for the next tuple.
 */
static void
check_limit_with_filter(HashJoinTable table, Size inserted, bool in_memory)
{
	bool		had_filter = seen.filter + seen.planned > 0;
	bool		may_exceed = had_filter && (table->nbatch > seen.nbatch || table->nSkewBuckets < seen.nskew);
	Size		limit = table->spaceAllowed;

	if (may_exceed)
	{
		limit = Max(limit, seen.used + seen.planned + inserted);
		seen.with_last_tuple = Max(seen.with_last_tuple, limit);
	}
	else if (!in_memory)
		limit = Max(limit, seen.used);
	if (table->bloom && table->spaceUsed > limit)
		fatal("%zu bytes are in use with a filter, of %zu", table->spaceUsed, table->spaceAllowed);
}

static void
check_limit(HashJoinTable table, Size inserted)
{
	Size		limit = Max(table->spaceAllowed, seen.with_last_tuple);

	seen.peak = Max(seen.peak, seen.without + inserted);
	/* Tuples that exceed the memory have some buckets all the same. */
	if (seen.peak > limit)
		limit = seen.peak + (table->buckets.unshared ? table->nbuckets * sizeof(HashJoinTuple) : 0);
	if (table->spacePeak > limit + FIRST_DUMPED_VALUES)
		fatal("a peak of %zu bytes, and of %zu without the filter, of %zu", table->spacePeak, seen.peak,
			  table->spaceAllowed);
}

/* Check what becomes of the last inner row that was read. */
void
check_insertion(HashJoinTable table, bool keep_nulls)
{
	const Row  *row = &inner.rows[inner.next - 1];
	Size		size = HJTUPLE_OVERHEAD + row->length;
	size_t		tuples;
	bool		changed = table->nbatch != seen.nbatch || table->nSkewBuckets != seen.nskew ||
		seen.filter != (table->bloom ? table->bloom->size : 0);

	if (inner.next == seen.next)
		return;
	if (is_inserted(row, keep_nulls))
		seen.inserted++;
	tuples = seen.inserted - saved_inner;
	check_growth(table, size);
	check_limit_with_filter(table, size, tuples > seen.tuples);
	check_limit(table, size);
	if (table->bloomPlanned && table->bloomNumValues != seen.inserted)
		fatal("%d of %d hash values are remembered", table->bloomNumValues, seen.inserted);
	if (table->bloom)
	{
		check_shape(table);
		check_members(table, changed ? 0 : seen.next, keep_nulls);
	}

	if (changed || seen.inserted % 64 == 0 || seen.inserted < 64)
		if (check_space(table) != tuples)
			fatal("not all of %zu inner rows are in memory", tuples);
	look_at(table, inner.next, tuples);
}

/* Check a table whose inner rows are all there, before the first outer row is looked up. */
void
check_built(HashJoinTable table, bool keep_nulls)
{
	HashBloom  *bloom = table->bloom;
	HashBloomInstrumentation *stats = &table->bloomStats;

	check_insertion(table, keep_nulls);
	if (check_space(table) != seen.inserted - saved_inner)
		fatal("not all of %d inner rows are in memory", seen.inserted - saved_inner);
	if (table->bloomPlanned || table->bloomValues)
		fatal("the planned filter is not started");
	if (table->bloomProbed != (bloom != NULL))
		fatal("%s filter will be probed", bloom ? "no" : "a");
	if (stats->nbuilt > 1 || stats->nbuilt - stats->nabandoned != (bloom != NULL))
		fatal("%ld filters are built, and %ld abandoned", (long) stats->nbuilt, (long) stats->nabandoned);
	if (stats->nlate != (stats->nbuilt && table->nbatch_original == 1))
		fatal("%ld filters are built late", (long) stats->nlate);
	if (bloom == NULL)
		return;

	if (table->nbatch == 1)
		fatal("a single batch has a filter");
	if (stats->nbytes != bloom->size)
		fatal("a filter of %zu bytes, not %zu", stats->nbytes, bloom->size);
	if (table->spaceUsed > table->spaceAllowed)
		fatal("%zu bytes are in use with a complete filter, of %zu", table->spaceUsed, table->spaceAllowed);
	check_limit(table, 0);
	check_shape(table);
	check_members(table, 0, keep_nulls);
	if (table->bloomMode != HASHJOIN_BLOOM_FORCE)
		check_strangers(table);
}

/* Check the table of another batch than the first. */
void
check_batch(HashJoinTable table)
{
	if (table->bloom)
		fatal("the filter is still there in batch %d", table->curbatch);
	check_space(table);
}

/*
 * Checks of the number of buckets, for any number of tuples that a double holds, and any memory that a size_t holds.
 */
#include "postgres.h"

#include "executor/hashjoin.h"

#include "buckets/buckets.h"
#include "failure.h"

#define POINTER			sizeof(HashJoinTuple)
#define DRAWN			512
#define STEP			2654435769u	/* consecutive multiples differ in all bits, the lowest included */

static const int loads[] = {1, HASH_BUCKET_LOAD, HASH_BUCKET_OVERFULL_LOAD, HASH_BUCKET_FULL_LOAD};

uint64
fewest_for(double ntuples, int load)
{
	uint64		nbuckets = 1;

	while ((double) nbuckets * load < ntuples && nbuckets * 2 * POINTER <= MaxAllocSize && nbuckets < (1 << 30))
		nbuckets *= 2;
	return nbuckets;
}

void
check_choice(double ntuples, Size used, Size allowed, int nbuckets)
{
	uint64		wanted = Max(fewest_for(ntuples, 1), HASH_BUCKET_MIN);
	uint64		least = fewest_for(ntuples, used > allowed ? HASH_BUCKET_OVERFULL_LOAD : HASH_BUCKET_FULL_LOAD);
	Size		room = used < allowed ? allowed - used : 0;
	Size		space = (Size) nbuckets * POINTER;

	if (nbuckets < 1 || (nbuckets & (nbuckets - 1)) != 0)
		fatal("%d buckets", nbuckets);
	if ((uint64) nbuckets > wanted || space > MaxAllocSize)
		fatal("%d buckets for %.0f tuples", nbuckets, ntuples);
	if ((uint64) nbuckets < Min(least, wanted))
		fatal("only %d buckets for %.0f tuples", nbuckets, ntuples);
	if ((uint64) nbuckets > least && space > room)
		fatal("%d buckets where there is room for %zu bytes", nbuckets, room);
	if ((uint64) nbuckets < wanted && space * 2 <= room)
		fatal("only %d buckets for %.0f tuples where there is room for %zu bytes", nbuckets, ntuples, room);
}

/*
 * Return a number of any magnitude, often at or next to a power of two. It may have a fraction, like an average of
 * tuples per batch.
 */
static double
any_count(Input *input)
{
	uint32		how = byte(input);
	double		count = (double) (UINT64CONST(1) << byte(input) % 63);

	if (how % 4 == 0)
		return word(input);
	if (how % 4 == 1)
		count *= 1 + word(input) / 4294967296.0;
	else
		count += (int) (byte(input) % 5) - 2;
	return Max(count, 0) + (how % 8 == 7 ? 0.5 : 0);
}

static Size
any_space(Input *input)
{
	Size		power = (Size) 1 << byte(input) % 64;

	return power + (power / 256) * byte(input) + byte(input);
}

/*
 * Check that each tuple of a divided batch goes to one of the two resulting batches, and NULL keys, whose hash value is
 * 0, to the first batch.
 */
static void
check_division(HashJoinTableData table, uint32 hashvalue)
{
	for (table.nbatch = 1; table.nbatch < 1 << 28; table.nbatch *= 2)
	{
		int			before = ExecHashGetBatch(&table, hashvalue);
		int			after;

		table.nbatch *= 2;
		after = ExecHashGetBatch(&table, hashvalue);
		table.nbatch /= 2;
		if (before < 0 || before >= table.nbatch)
			fatal("batch %d of %d", before, table.nbatch);
		if (after != before && after != before + table.nbatch)
			fatal("batch %d of %d becomes %d", before, table.nbatch, after);
		if (ExecHashGetBatch(&table, 0) != 0)
			fatal("NULL is in batch %d of %d", ExecHashGetBatch(&table, 0), table.nbatch);
	}
}

static void
expect_half(int number, const char *what)
{
	if (number < DRAWN / 4 || number > DRAWN * 3 / 4)	/* 11 standard deviations */
		fatal("%d of %d tuples of a batch are in %s", number, DRAWN, what);
}

/*
 * Check that the tuples of a batch, whatever their hash values are, use all buckets, and all batches of another join.
 */
static void
check_independence(HashJoinTableData table, HashJoinTableData other, uint32 hashvalue)
{
	int			drawn = 0;
	int			same_batch = 0;
	int			same_bucket = 0;

	table.nbatch = other.nbatch = table.nbuckets = 2;
	for (; drawn < DRAWN; hashvalue += STEP)
	{
		if (ExecHashGetBatch(&table, hashvalue) != 0)
			continue;
		drawn++;
		same_batch += ExecHashGetBatch(&other, hashvalue) == 0;
		same_bucket += ExecHashGetBucket(&table, hashvalue) == 0;
	}
	expect_half(same_batch, "one batch of another join");
	expect_half(same_bucket, "one bucket");
}

static void
check_batches(Input *input)
{
	HashJoinTableData table = {.batch_salt = murmurhash32(byte(input)) | 1};
	HashJoinTableData other = {.batch_salt = murmurhash32(byte(input)) | 1};
	uint32		hashvalue = word(input);

	check_division(table, hashvalue);
	if (table.batch_salt != other.batch_salt)
		check_independence(table, other, hashvalue);
}

void
check_sizing(Input *input)
{
	double		ntuples = any_count(input);
	Size		allowed = any_space(input);
	Size		used = byte(input) % 2 ? any_space(input) : allowed - any_space(input) % (allowed + 1);

	for (int i = 0; i < lengthof(loads); i++)
	{
		int			nbuckets = ExecHashBucketsFor(ntuples, loads[i]);

		if (nbuckets < 1 || (uint64) nbuckets != fewest_for(ntuples, loads[i]))
			fatal("%d buckets for %.1f tuples, %d in each", nbuckets, ntuples, loads[i]);
	}
	if (ExecHashBucketSpace(ntuples) != fewest_for(ntuples, HASH_BUCKET_LOAD) * POINTER)
		fatal("%zu bytes of buckets for %.1f tuples", ExecHashBucketSpace(ntuples), ntuples);
	check_choice(ntuples, used, allowed, ExecHashChooseBuckets(ntuples, used, allowed));
	check_batches(input);
}

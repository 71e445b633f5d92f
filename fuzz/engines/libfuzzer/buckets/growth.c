/*
 * A growing hash table: tuples of any size and hash value are inserted, batches are added when memory is full, and
 * each batch in turn gets its buckets. The functions under test are static, so this file includes nodeHash.c.
 *
 * The model records the place of each tuple. A tuple must be in one place only, in the batch of its hash value, and
 * finally in the bucket of its hash value. The memory in use must be the sum of all allocations.
 */
#include "src/backend/executor/nodeHash.c"

#include "backend_stubs.h"
#include "buckets/buckets.h"
#include "lib/ilist.h"

#define MAX_TUPLES	6000
#define MAX_LENGTH	12000
#define LEAST_LENGTH	(MAXALIGN(SizeofMinimalTupleHeader) + sizeof(int))

typedef enum Place
{
	TO_COME,
	IN_MEMORY,
	IN_FILE,
	DONE
} Place;

typedef struct Modeled
{
	uint32		hashvalue;
	int			length;
	Place		place;
	int			file;			/* batch of its file, if it is in one */
} Modeled;

volatile sig_atomic_t InterruptPending = false;

static Modeled tuples[MAX_TUPLES];
static int	ntuples;
static HashJoinTableData table;
static char fetched[MAX_LENGTH];	/* the tuple in the slot */
static dlist_head hash_pieces;
static dlist_head batch_pieces;
static dlist_head spill_pieces;

static int
number_of(MinimalTuple tuple)
{
	int			number;

	memcpy(&number, (char *) tuple + MAXALIGN(SizeofMinimalTupleHeader), sizeof(int));
	return number;
}

/* execTuples.c, nodeHashjoin.c, tablespace.c */

MinimalTuple
ExecFetchSlotMinimalTuple(TupleTableSlot *slot, bool *shouldFree)
{
	*shouldFree = false;
	return (MinimalTuple) fetched;
}

void
ExecHashJoinSaveTuple(MinimalTuple tuple, uint32 hashvalue, BufFile **fileptr, HashJoinTable hashtable)
{
	Modeled    *saved = &tuples[number_of(tuple)];

	if (saved->place != TO_COME && saved->place != IN_MEMORY)
		fatal("a tuple is saved that is not there");
	if (hashvalue != saved->hashvalue || tuple->t_len != saved->length)
		fatal("a tuple is saved that was changed");
	saved->place = IN_FILE;
	saved->file = fileptr - table.innerBatchFile;
	if (saved->file <= table.curbatch || saved->file >= table.nbatch)
		fatal("a tuple of batch %d of %d is saved for batch %d", table.curbatch, table.nbatch, saved->file);
}

void
PrepareTempTablespaces(void)
{
}

/* The model */

static Size
space_of_tuples(size_t *count)
{
	Size		space = 0;

	*count = 0;
	for (int i = 0; i < ntuples; i++)
	{
		if (tuples[i].place == IN_MEMORY)
		{
			space += HJTUPLE_OVERHEAD + tuples[i].length;
			(*count)++;
		}
	}
	return space;
}

static void
check_space(void)
{
	size_t		count;
	Size		space = space_of_tuples(&count);

	if (table.spaceUsed != space || table.batchTuples != count)
		fatal("%zu tuples take %zu bytes, not %zu in %zu", count, space, table.batchTuples, table.spaceUsed);
	if (count > 0 && table.bucketSpace != fewest_for(count, HASH_BUCKET_LOAD) * sizeof(HashJoinTuple))
		fatal("%zu bytes for the buckets of %zu tuples", table.bucketSpace, count);
	if (table.spacePeak < table.spaceUsed)
		fatal("a peak of %zu bytes, where %zu are used", table.spacePeak, table.spaceUsed);
}

static void
insert(int number)
{
	MinimalTuple tuple = (MinimalTuple) fetched;
	Modeled    *inserted = &tuples[number];
	int			nbatch = table.nbatch;

	memset(fetched, 0, inserted->length);
	tuple->t_len = inserted->length;
	memcpy(fetched + MAXALIGN(SizeofMinimalTupleHeader), &number, sizeof(int));
	inserted->place = ExecHashGetBatch(&table, inserted->hashvalue) == table.curbatch ? IN_MEMORY : TO_COME;
	ExecHashTableInsert(&table, NULL, inserted->hashvalue);
	if (inserted->place == TO_COME)
		fatal("a tuple of a later batch is nowhere");

	/* Only an insertion into memory checks the limit; adding batches may leave more in use. */
	if (inserted->place == IN_MEMORY && table.growEnabled && table.nbatch == nbatch &&
		table.spaceUsed + table.bucketSpace > table.spaceAllowed)
		fatal("tuples and their buckets take more than %zu bytes, and batches are not added", table.spaceAllowed);
}

/* Make the buckets, and find each tuple in its bucket. */
static void
check_buckets(void)
{
	size_t		count;
	size_t		found = 0;
	Size		space;

	check_space();
	space = space_of_tuples(&count);
	ExecHashTableBuildBuckets(&table);
	check_choice(count, space, table.spaceAllowed, table.nbuckets);
	if (table.spaceUsed != space + table.nbuckets * sizeof(HashJoinTuple) || table.spacePeak < table.spaceUsed)
		fatal("%d buckets are not counted", table.nbuckets);

	for (int bucket = 0; bucket < table.nbuckets; bucket++)
	{
		for (HashJoinTuple tuple = table.buckets.unshared[bucket]; tuple != NULL; tuple = tuple->next.unshared)
		{
			Modeled    *modeled = &tuples[number_of(HJTUPLE_MINTUPLE(tuple))];

			if (modeled->place != IN_MEMORY || tuple->hashvalue != modeled->hashvalue)
				fatal("a tuple is in a bucket twice, or not as it was inserted");
			if (tuple->hashvalue % table.nbuckets != bucket)
				fatal("a tuple is not where it is looked for");
			modeled->place = DONE;
			found++;
		}
	}
	if (found != count)
		fatal("%zu of %zu tuples are in buckets", found, count);
}

/* Generate tuples of similar sizes, with hash values that are random, equal, or differ in a few bits. */
static void
draw_tuples(Input *input)
{
	uint32		hashvalue = word(input);
	int			kind = byte(input) % 3;
	int			shift = byte(input) % 32;
	int			length = byte(input) % 8 ? LEAST_LENGTH + byte(input) : LEAST_LENGTH + byte(input) * 40;
	int			count = 1 << byte(input) % 12;

	count += (int) (byte(input) % 3) - 1;
	for (int i = 0; i < count && ntuples < MAX_TUPLES; i++)
	{
		Modeled    *drawn = &tuples[ntuples++];

		if (kind == 0)
			drawn->hashvalue = murmurhash32(hashvalue + i);
		else
			drawn->hashvalue = kind == 1 ? hashvalue : hashvalue ^ (uint32) i << shift;
		drawn->length = length;
		drawn->place = TO_COME;
	}
}

static void
create_table(Input *input)
{
	uint32		choice;

	dlist_init(&hash_pieces);
	dlist_init(&batch_pieces);
	dlist_init(&spill_pieces);
	memset(&table, 0, sizeof(table));
	table.hashCxt = (MemoryContext) &hash_pieces;
	table.batchCxt = (MemoryContext) &batch_pieces;
	table.spillCxt = (MemoryContext) &spill_pieces;
	table.bloomMode = HASHJOIN_BLOOM_OFF;
	table.growEnabled = true;
	table.spaceAllowed = 1024 + (word(input) & 0xFFFFF);
	choice = byte(input);
	table.nbatch = 1 << choice % 4;
	table.batch_salt = murmurhash32(choice / 4) | 1;
	if (table.nbatch > 1)
	{
		table.innerBatchFile = MemoryContextAllocZero(table.spillCxt, table.nbatch * sizeof(BufFile *));
		table.outerBatchFile = MemoryContextAllocZero(table.spillCxt, table.nbatch * sizeof(BufFile *));
	}
}

void
check_growth(Input *input)
{
	create_table(input);
	ntuples = 0;
	while (input->next < input->end)
		draw_tuples(input);

	for (int i = 0; i < ntuples; i++)
		insert(i);
	check_buckets();

	for (table.curbatch = 1; table.curbatch < table.nbatch; table.curbatch++)
	{
		ExecHashTableReset(&table);
		for (int i = 0; i < ntuples; i++)
			if (tuples[i].place == IN_FILE && tuples[i].file == table.curbatch)
				insert(i);
		check_buckets();
	}
	for (int i = 0; i < ntuples; i++)
		if (tuples[i].place != DONE)
			fatal("a tuple has never been in a bucket");

	MemoryContextReset(table.hashCxt);
	MemoryContextReset(table.batchCxt);
	MemoryContextReset(table.spillCxt);
}

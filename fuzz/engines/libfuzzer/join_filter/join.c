/*
 * Execution of the join: plan nodes and expressions, scans that end early, rescans, and the counters of the filter.
 */
#include "src/backend/executor/nodeHashjoin.c"

#include "backend_stubs.h"
#include "catalog/pg_statistic.h"
#include "join_filter/join_filter.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

volatile sig_atomic_t InterruptPending = false;

static const Settings *settings;
static Execution execution;
static HashJoinState *const join = &execution.join;
static Reader inner_reader;
static Reader outer_reader;

/* What happened to the outer rows of a scan until all were read, or it ended */
static struct
{
	bool		noted;
	int			waiting;		/* rows of later batches */
	bool		filtered;		/* is there a filter? */
} pass;

/* Statistics */

HeapTuple
SearchSysCache3(int cacheId, Datum key1, Datum key2, Datum key3)
{
	static HeapTupleData tuple;
	static HeapTupleHeaderData header;

	tuple.t_data = &header;
	return &tuple;
}

void
ReleaseSysCache(HeapTuple tuple)
{
}

bool
get_attstatsslot(AttStatsSlot *sslot, HeapTuple statstuple, int reqkind, Oid reqop, int flags)
{
	static Datum values[lengthof(settings->mcvs)];
	static float4 numbers[lengthof(settings->mcvs)];

	for (int i = 0; i < settings->nmcvs; i++)
	{
		values[i] = UInt32GetDatum(settings->mcvs[i]);
		numbers[i] = 0.02;
	}
	sslot->values = values;
	sslot->numbers = numbers;
	sslot->nvalues = sslot->nnumbers = settings->nmcvs;
	return true;
}

void
free_attstatsslot(AttStatsSlot *sslot)
{
}

/* Plan nodes */

HashJoinTable
current_table(void)
{
	return join->hj_HashTable;
}

/* Count the outer rows that have been read and wait for later batches. */
static void
note_pass(void)
{
	HashJoinTable table = join->hj_HashTable;

	if (pass.noted)
		return;
	pass.noted = true;
	pass.filtered = table->bloom != NULL;
	for (int i = 0; i < outer.next; i++)
	{
		Row		   *row = &outer.rows[i];

		if ((HJ_FILL_OUTER(join) || !row->null) && ExecHashGetBatch(table, row->key) != 0 &&
			ExecHashGetSkewBucket(table, row->key) == INVALID_SKEW_BUCKET_NO)
			pass.waiting++;
	}
}

void
on_read(Reader *reader)
{
	if (reader == &inner_reader)
		check_insertion(join->hj_HashTable, HJ_FILL_INNER(join));
	else if (outer.next == outer.nrows && join->hj_HashTable)
		note_pass();
}

Node *
MultiExecProcNode(PlanState *node)
{
	if (node->chgParam)
		ExecReScan(node);
	begin_build(join->hj_HashTable, join);
	MultiExecHash(castNode(HashState, node));
	check_built(join->hj_HashTable, HJ_FILL_INNER(join));
	return NULL;
}

void
ExecReScan(PlanState *node)
{
	if (node == &execution.hash.ps)
		ExecReScanHash(&execution.hash);
	else
		((Reader *) node)->relation->next = 0;
	node->chgParam = NULL;
}

/* Counters */

/* Return the number of tuples that a filter lets pass unseen if it is switched off so many times. */
static double
most_skipped(int64 nswitchoffs)
{
	double		pause = HASH_BLOOM_FIRST_PAUSE;
	double		skipped = 0;

	for (int64 i = 0; i < nswitchoffs; i++, pause *= 2)
		skipped += pause;
	return skipped;
}

/* Return the number of outer rows of later batches that have no partner by their key. */
static int
count_unmatched(HashJoinTable table)
{
	int			count = 0;

	for (int i = 0; i < outer.next; i++)
		count += !has_equal_key(&outer.rows[i]) && (HJ_FILL_OUTER(join) || !outer.rows[i].null);
	return count;
}

static void
check_counters(HashJoinTable table)
{
	bool		fills = HJ_FILL_OUTER(join);
	bool		pending = table->bloom != NULL && table->bloom->deferred != NULL;
	HashInstrumentation all = {0};
	const HashBloomInstrumentation *stats = &all.bloom;
	int64		excluded;
	int64		looked_up;

	note_pass();
	ExecHashAccumInstrumentation(&all, table);
	excluded = stats->ndiscarded + stats->nemitted;
	looked_up = pass.filtered ? pass.waiting - pending : 0;

	if (stats->nprobes + stats->nskipped != looked_up)
		fatal("%ld + %ld rows are looked up or not, of %ld", (long) stats->nprobes, (long) stats->nskipped,
			  (long) looked_up);
	if (saved_outer + excluded + pending != pass.waiting)
		fatal("%d rows are saved, and %ld excluded, of %d", saved_outer, (long) excluded, pass.waiting);
	if ((fills ? stats->ndiscarded : stats->nemitted) != 0 || excluded > stats->nprobes)
		fatal("%ld rows are discarded, and %ld emitted, of %ld", (long) stats->ndiscarded, (long) stats->nemitted,
			  (long) stats->nprobes);
	if (stats->ndeferred > stats->nprobes)
		fatal("%ld of %ld lookups are deferred", (long) stats->ndeferred, (long) stats->nprobes);
	if (stats->nskipped > most_skipped(stats->nswitchoffs) ||
		(stats->nswitchoffs && (table->bloomMode == HASHJOIN_BLOOM_FORCE ||
								stats->nprobes < HASH_BLOOM_FIRST_PERIOD + stats->nswitchoffs * HASH_BLOOM_PERIOD)))
		fatal("%ld rows are skipped in %ld pauses, after %ld lookups", (long) stats->nskipped,
			  (long) stats->nswitchoffs, (long) stats->nprobes);
	if (stats->nunmatched > (pass.filtered ? count_unmatched(table) - excluded : 0))
		fatal("%ld rows passed the filter in vain", (long) stats->nunmatched);
	if (stats->fp_rate < 0 || stats->fp_rate > 1)
		fatal("a rate of false positives of %f", stats->fp_rate);
}

/* Scans */

/* Return whether the scan ended before the limit. */
static bool
scan(int limit)
{
	TupleTableSlot *slot = NULL;

	forget_result();
	memset(&pass, 0, sizeof(pass));
	saved_inner = saved_outer = 0;
	for (int i = 0; i < limit; i++)
	{
		slot = ExecHashJoin(&join->js.ps);
		if (TupIsNull(slot))
			return true;
	}
	return false;
}

/* Rescan the join, with other inner rows if parameters of the inner relation change. */
static void
rescan(bool changed)
{
	static Bitmapset parameters = {.type = T_Bitmapset};

	if (changed)
	{
		execution.hash.ps.chgParam = inner_reader.state.chgParam = &parameters;
		inner.every = inner.every ? 0 : 3;
	}
	ExecReScanHashJoin(join);
}

void
run_join(const Settings *drawn)
{
	settings = drawn;
	set_up_reader(&inner_reader, &inner);
	set_up_reader(&outer_reader, &outer);
	set_up_execution(&execution, &outer_reader, &inner_reader);
	join->hj_JoinState = HJ_BUILD_HASHTABLE;
	CurrentMemoryContext = (MemoryContext) &execution.query_pieces;

	for (int i = 0; i < settings->nscans; i++)
	{
		HashJoinTable table;
		bool		complete;

		if (i > 0)
			rescan(settings->scans[i].changed);
		complete = scan(settings->scans[i].limit);
		table = join->hj_HashTable;
		check_result(complete);
		if (table && (table->totalTuples > 0 || HJ_FILL_OUTER(join)))
			check_counters(table);
	}

	if (join->hj_HashTable)
		ExecHashTableDestroy(join->hj_HashTable);
	ExecClearTuple(&execution.saved_slot.base);
	ExecClearTuple(&execution.hash_slot.base);
	CurrentMemoryContext = TopMemoryContext;
}

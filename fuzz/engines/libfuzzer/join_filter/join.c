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
static HashJoin plan;
static HashJoinState join;
static HashState hash;
static ProjectionInfo projection;
static ExprState key_of_outer;
static ExprState key_of_inner;
static ExprState equal_keys;
static ExprState condition;
static ExprContext join_context;
static ExprContext hash_context;
static MinimalTupleTableSlot hash_slot;
static MinimalTupleTableSlot saved_slot;
static MinimalTupleTableSlot null_inner_slot;
static MinimalTupleTableSlot null_outer_slot;
static MinimalTupleTableSlot result_slot;

/* What happened to the outer rows of a scan until all were read, or it ended */
static struct
{
	bool		noted;
	int			waiting;		/* rows of later batches */
	bool		filtered;		/* is there a filter? */
	bool		pending;		/* is its answer about one of them still to come? */
} pass;

/* Memory contexts */

static dlist_head query_pieces = DLIST_STATIC_INIT(query_pieces);
static dlist_head expr_pieces = DLIST_STATIC_INIT(expr_pieces);
static dlist_head hash_pieces = DLIST_STATIC_INIT(hash_pieces);
static dlist_head batch_pieces = DLIST_STATIC_INIT(batch_pieces);
static dlist_head spill_pieces = DLIST_STATIC_INIT(spill_pieces);

MemoryContext
AllocSetContextCreateInternal(MemoryContext parent, const char *name, Size minContextSize, Size initBlockSize,
							  Size maxBlockSize)
{
	if (strcmp(name, "HashTableContext") == 0)
		return (MemoryContext) &hash_pieces;
	return (MemoryContext) (strcmp(name, "HashBatchContext") == 0 ? &batch_pieces : &spill_pieces);
}

void
MemoryContextDelete(MemoryContext context)
{
	if (context != (MemoryContext) &hash_pieces)
		fatal("another memory context is deleted than that of the table");
	MemoryContextReset((MemoryContext) &batch_pieces);
	MemoryContextReset((MemoryContext) &spill_pieces);
	MemoryContextReset(context);
}

/* Keys: their hash value is the key itself */

bool
get_op_hash_functions(Oid opno, RegProcedure *lhs_procno, RegProcedure *rhs_procno)
{
	*lhs_procno = *rhs_procno = 1;
	return true;
}

void
fmgr_info(Oid functionId, FmgrInfo *finfo)
{
	memset(finfo, 0, sizeof(*finfo));
}

bool
op_strict(Oid opno)
{
	return true;
}

Datum
FunctionCall1Coll(FmgrInfo *flinfo, Oid collation, Datum arg1)
{
	return arg1;
}

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

/* Expressions */

static Datum
eval_key(ExprState *expression, ExprContext *context, bool *isnull)
{
	Row		   *row = row_in(context->ecxt_outertuple);

	*isnull = row->null;
	return UInt32GetDatum(row->key);
}

static Datum
eval_equal(ExprState *expression, ExprContext *context, bool *isnull)
{
	Row		   *outer_row = row_in(context->ecxt_outertuple);
	Row		   *inner_row = row_in(context->ecxt_innertuple);

	*isnull = false;
	return BoolGetDatum(!outer_row->null && !inner_row->null && outer_row->key == inner_row->key);
}

static Datum
eval_condition(ExprState *expression, ExprContext *context, bool *isnull)
{
	*isnull = false;
	return BoolGetDatum(qualify(settings, row_in(context->ecxt_outertuple), row_in(context->ecxt_innertuple)));
}

static Datum
eval_projection(ExprState *expression, ExprContext *context, bool *isnull)
{
	*isnull = false;
	add_to_result(settings, row_in(context->ecxt_outertuple), row_in(context->ecxt_innertuple));
	return (Datum) 0;
}

/* Plan nodes */

/* Plan nodes */

static void
set_up_expressions(void)
{
	key_of_outer = key_of_inner = (ExprState) {.type = T_ExprState, .evalfunc = eval_key};
	equal_keys = (ExprState) {.type = T_ExprState, .flags = EEO_FLAG_IS_QUAL, .evalfunc = eval_equal};
	condition = (ExprState) {.type = T_ExprState, .flags = EEO_FLAG_IS_QUAL, .evalfunc = eval_condition};
	join_context = (ExprContext) {.type = T_ExprContext, .ecxt_per_tuple_memory = (MemoryContext) &expr_pieces};
	hash_context = join_context;
	projection = (ProjectionInfo) {.type = T_ProjectionInfo, .pi_exprContext = &join_context};
	projection.pi_state = (ExprState) {.type = T_ExprState, .resultslot = &result_slot.base,
	.evalfunc = eval_projection};
	set_up_slot(&hash_slot);
	set_up_slot(&saved_slot);
	set_up_slot(&null_inner_slot);
	set_up_slot(&null_outer_slot);
	set_up_slot(&result_slot);
}

static void
set_up_join(void)
{
	static ListCell outer_cell = {.ptr_value = &key_of_outer};
	static ListCell inner_cell = {.ptr_value = &key_of_inner};
	static ListCell oid_cell = {.oid_value = 1};
	static List outer_keys = {.type = T_List, .length = 1, .max_length = 1, .elements = &outer_cell};
	static List inner_keys = {.type = T_List, .length = 1, .max_length = 1, .elements = &inner_cell};
	static List oids = {.type = T_OidList, .length = 1, .max_length = 1, .elements = &oid_cell};
	static EState estate = {.type = T_EState};
	JoinType	type = settings->jointype;

	plan = (HashJoin) {.join.plan.type = T_HashJoin, .bloom_mode = settings->mode};
	plan.bloom_excluded = settings->excluded;
	plan.bloom_matched = settings->matched;
	hash = (HashState) {.ps.type = T_HashState, .ps.plan = (Plan *) &settings->hash, .ps.state = &estate};
	hash.ps.ps_ExprContext = &hash_context;
	hash.ps.lefttree = &inner.state;
	hash.hashkeys = &inner_keys;

	join = (HashJoinState) {.js.ps.type = T_HashJoinState, .js.ps.plan = (Plan *) &plan, .js.ps.state = &estate};
	join.js.ps.ps_ExprContext = &join_context;
	join.js.ps.ps_ProjInfo = &projection;
	join.js.ps.lefttree = &outer.state;
	join.js.ps.righttree = &hash.ps;
	join.js.jointype = type;
	join.js.single_match = type == JOIN_SEMI;
	join.js.joinqual = settings->conditional ? &condition : NULL;
	join.hashclauses = &equal_keys;
	join.hj_OuterHashKeys = &outer_keys;
	join.hj_HashOperators = join.hj_Collations = &oids;
	join.hj_OuterTupleSlot = &saved_slot.base;
	join.hj_HashTupleSlot = &hash_slot.base;
	if (type == JOIN_LEFT || type == JOIN_ANTI || type == JOIN_FULL)
		join.hj_NullInnerTupleSlot = &null_inner_slot.base;
	if (type == JOIN_RIGHT || type == JOIN_RIGHT_ANTI || type == JOIN_FULL)
		join.hj_NullOuterTupleSlot = &null_outer_slot.base;
	join.hj_JoinState = HJ_BUILD_HASHTABLE;
}

HashJoinTable
current_table(void)
{
	return join.hj_HashTable;
}

/* Count the outer rows that have been read and wait for later batches. */
static void
note_pass(void)
{
	HashJoinTable table = join.hj_HashTable;

	if (pass.noted)
		return;
	pass.noted = true;
	pass.filtered = table->bloom != NULL;
	pass.pending = pass.filtered && table->bloom->deferred != NULL;
	for (int i = 0; i < outer.next; i++)
	{
		Row		   *row = &outer.rows[i];

		if ((HJ_FILL_OUTER(&join) || !row->null) && ExecHashGetBatch(table, row->key) != 0 &&
			ExecHashGetSkewBucket(table, row->key) == INVALID_SKEW_BUCKET_NO)
			pass.waiting++;
	}
}

void
on_read(Joined *relation)
{
	if (relation == &inner)
		check_insertion(join.hj_HashTable, HJ_FILL_INNER(&join));
	else if (outer.next == outer.nrows && join.hj_HashTable)
		note_pass();
}

Node *
MultiExecProcNode(PlanState *node)
{
	if (node->chgParam)
		ExecReScan(node);
	begin_build(join.hj_HashTable, &join);
	MultiExecHash(castNode(HashState, node));
	check_built(join.hj_HashTable, HJ_FILL_INNER(&join));
	return NULL;
}

void
ExecReScan(PlanState *node)
{
	if (node == &hash.ps)
		ExecReScanHash(&hash);
	else
		((Joined *) node)->next = 0;
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
		count += !has_equal_key(&outer.rows[i]) && (HJ_FILL_OUTER(&join) || !outer.rows[i].null);
	return count;
}

static void
check_counters(HashJoinTable table, bool complete)
{
	bool		fills = HJ_FILL_OUTER(&join);
	bool		flushed = table->curbatch > 0 || complete;
	HashInstrumentation all = {0};
	const HashBloomInstrumentation *stats = &all.bloom;
	int64		excluded;
	int64		looked_up;

	note_pass();
	ExecHashAccumInstrumentation(&all, table);
	excluded = stats->ndiscarded + stats->nemitted;
	looked_up = pass.filtered ? pass.waiting - (pass.pending && (fills || !flushed)) : 0;

	if (stats->nprobes + stats->nskipped != looked_up)
		fatal("%ld + %ld rows are looked up or not, of %ld", (long) stats->nprobes, (long) stats->nskipped,
			  (long) looked_up);
	if (saved_outer + excluded + (pass.pending && !flushed) != pass.waiting)
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

	forget_result(settings);
	memset(&pass, 0, sizeof(pass));
	saved_inner = saved_outer = 0;
	for (int i = 0; i < limit; i++)
	{
		slot = ExecHashJoin(&join.js.ps);
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
		hash.ps.chgParam = inner.state.chgParam = &parameters;
		inner.every = inner.every ? 0 : 3;
	}
	ExecReScanHashJoin(&join);
}

void
run_join(const Settings *drawn)
{
	settings = drawn;
	CurrentMemoryContext = (MemoryContext) &query_pieces;
	set_up_expressions();
	set_up_join();

	for (int i = 0; i < settings->nscans; i++)
	{
		HashJoinTable table;
		bool		complete;

		if (i > 0)
			rescan(settings->scans[i].changed);
		complete = scan(settings->scans[i].limit);
		table = join.hj_HashTable;
		if (complete)
			check_result(settings);
		if (table && (table->totalTuples > 0 || HJ_FILL_OUTER(&join)))
			check_counters(table, complete);
	}

	if (join.hj_HashTable)
		ExecHashTableDestroy(join.hj_HashTable);
	ExecClearTuple(&saved_slot.base);
	ExecClearTuple(&hash_slot.base);
	CurrentMemoryContext = TopMemoryContext;
}

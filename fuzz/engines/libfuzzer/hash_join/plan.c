/*
 * The plan of the join: nodes, expressions, the operator of its key, and the memory of each process.
 */
#include "postgres.h"

#include "backend_stubs.h"
#include "executor/executor.h"
#include "hash_join/hash_join.h"
#include "utils/lsyscache.h"

Planned		planned;

/* Memory contexts */

/* Return the owner of a context, whose place in it is given. */
static Execution *
owner_of(MemoryContext context, size_t place)
{
	return (Execution *) ((char *) context - place);
}

MemoryContext
AllocSetContextCreateInternal(MemoryContext parent, const char *name, Size minContextSize, Size initBlockSize,
							  Size maxBlockSize)
{
	if (strcmp(name, "HashTableContext") == 0)
		return (MemoryContext) &owner_of(parent, offsetof(Execution, query_pieces))->hash_pieces;
	if (strcmp(name, "HashBatchContext") == 0)
		return (MemoryContext) &owner_of(parent, offsetof(Execution, hash_pieces))->batch_pieces;
	return (MemoryContext) &owner_of(parent, offsetof(Execution, hash_pieces))->spill_pieces;
}

/* Called with the context of a hash table only. */
void
MemoryContextDelete(MemoryContext context)
{
	Execution  *owner = owner_of(context, offsetof(Execution, hash_pieces));

	MemoryContextReset((MemoryContext) &owner->batch_pieces);
	MemoryContextReset((MemoryContext) &owner->spill_pieces);
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

/* Expressions */

bool
qualify(const Row *outer_row, const Row *inner_row)
{
	return !outer_row->null && !inner_row->null && outer_row->key == inner_row->key &&
		!(planned.conditional && ((outer_row - outer.rows) + (inner_row - inner.rows)) % 3 == 0);
}

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
	return BoolGetDatum(qualify(row_in(context->ecxt_outertuple), row_in(context->ecxt_innertuple)));
}

static Datum
eval_projection(ExprState *expression, ExprContext *context, bool *isnull)
{
	*isnull = false;
	add_to_result(row_in(context->ecxt_outertuple), row_in(context->ecxt_innertuple));
	return (Datum) 0;
}

/* Plan nodes */

static ExprState
qualification(ExprStateEvalFunc function)
{
	return (ExprState) {.type = T_ExprState, .flags = EEO_FLAG_IS_QUAL, .evalfunc = function};
}

static void
set_up_expressions(Execution *execution)
{
	execution->equal_keys = qualification(eval_equal);
	execution->condition = qualification(eval_condition);
	execution->join_context = (ExprContext) {.type = T_ExprContext};
	execution->join_context.ecxt_per_tuple_memory = (MemoryContext) &execution->expr_pieces;
	execution->hash_context = execution->join_context;
	execution->projection = (ProjectionInfo) {.type = T_ProjectionInfo, .pi_exprContext = &execution->join_context};
	execution->projection.pi_state = (ExprState) {.type = T_ExprState, .resultslot = &execution->result_slot.base,
	.evalfunc = eval_projection};
}

static void
set_up_slots(Execution *execution)
{
	set_up_slot(&execution->hash_slot, false);
	set_up_slot(&execution->saved_slot, false);
	set_up_slot(&execution->null_inner_slot, false);
	set_up_slot(&execution->null_outer_slot, false);
	set_up_slot(&execution->result_slot, false);
}

/* Each relation has one key. */
static ExprState key = {.type = T_ExprState, .evalfunc = eval_key};
static ListCell key_cell = {.ptr_value = &key};
static List keys = {.type = T_List, .length = 1, .max_length = 1, .elements = &key_cell};

static void
set_up_hash(Execution *execution, Reader *inner_reader)
{
	execution->hash = (HashState) {.ps.type = T_HashState, .ps.plan = &planned.hash.plan};
	execution->hash.ps.state = &execution->estate;
	execution->hash.ps.ps_ExprContext = &execution->hash_context;
	execution->hash.ps.lefttree = &inner_reader->state;
	execution->hash.hashkeys = &keys;
}

static void
set_up_join(Execution *execution, Reader *outer_reader)
{
	static ListCell oid_cell = {.oid_value = 1};
	static List oids = {.type = T_OidList, .length = 1, .max_length = 1, .elements = &oid_cell};
	HashJoinState *join = &execution->join;
	JoinType	type = planned.type;

	*join = (HashJoinState) {.js.ps.type = T_HashJoinState, .js.ps.plan = &planned.plan.join.plan};
	join->js.ps.state = &execution->estate;
	join->js.ps.ps_ExprContext = &execution->join_context;
	join->js.ps.ps_ProjInfo = &execution->projection;
	join->js.ps.lefttree = &outer_reader->state;
	join->js.ps.righttree = &execution->hash.ps;
	join->js.jointype = type;
	join->js.single_match = type == JOIN_SEMI;
	join->js.joinqual = planned.conditional ? &execution->condition : NULL;
	join->hashclauses = &execution->equal_keys;
	join->hj_OuterHashKeys = &keys;
	join->hj_HashOperators = join->hj_Collations = &oids;
	join->hj_OuterTupleSlot = &execution->saved_slot.base;
	join->hj_HashTupleSlot = &execution->hash_slot.base;
	if (type == JOIN_LEFT || type == JOIN_ANTI || type == JOIN_FULL)
		join->hj_NullInnerTupleSlot = &execution->null_inner_slot.base;
	if (type == JOIN_RIGHT || type == JOIN_RIGHT_ANTI || type == JOIN_FULL)
		join->hj_NullOuterTupleSlot = &execution->null_outer_slot.base;
}

/* Make the plan nodes of a process. The state of its join is for the caller to set. */
void
set_up_execution(Execution *execution, Reader *outer_reader, Reader *inner_reader)
{
	static PlannedStmt query = {.type = T_PlannedStmt, .commandType = CMD_SELECT};

	execution->estate = (EState) {.type = T_EState, .es_plannedstmt = &query};
	dlist_init(&execution->query_pieces);
	dlist_init(&execution->expr_pieces);
	dlist_init(&execution->hash_pieces);
	dlist_init(&execution->batch_pieces);
	dlist_init(&execution->spill_pieces);
	set_up_expressions(execution);
	set_up_slots(execution);
	set_up_hash(execution, inner_reader);
	set_up_join(execution, outer_reader);
}

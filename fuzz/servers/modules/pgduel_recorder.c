/*-------------------------------------------------------------------------
 *
 * pgduel_recorder.c
 *		A record of the outcome of each statement of a client, and of the shape
 *		of its plan, in the same way for all clients.
 *
 * It is preloaded into servers on which fuzzers are compared.  A line is appended to
 * the file pgduel_recorder.file for each
 *
 *	 S shape	statement over the user's tables that succeeded
 *	 N shape	plan of that kind that another statement executed: EXECUTE,
 *				EXPLAIN ANALYZE, a cursor, a function
 *	 U			utility statement, except for those about transactions and settings
 *	 E			statement that failed
 *
 * Statements that read only catalogs and functions are not counted, because
 * they are a fuzzer's own queries about the server.  A shape is a hash of the
 * properties in oracles/explain/nodes.py: the kinds of nodes, their methods,
 * and, below an Append, only different children.
 *
 * fuzz/servers/modules/pgduel_recorder.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "access/transam.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "tcop/utility.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

#if PG_VERSION_NUM < 180000
#define ONCE_PARAMETER	,bool once
#define ONCE			,once
#else
#define ONCE_PARAMETER
#define ONCE
#endif

static char *file_name = "";
static int	file = -1;
static int	depth = 0;			/* of statements under way within others */

static ExecutorRun_hook_type next_run = NULL;
static ExecutorFinish_hook_type next_finish = NULL;
static ExecutorEnd_hook_type next_end = NULL;
static ProcessUtility_hook_type next_utility = NULL;
static emit_log_hook_type next_emit = NULL;

static void
record(const char *line, int length)
{
	if (file < 0)
		file = open(file_name, O_WRONLY | O_APPEND | O_CREAT, 0600);
	if (file < 0 || write(file, line, length) != length)
		fprintf(stderr, "pgduel_recorder: cannot write \"%s\"\n", file_name);
}

/* ----------------------------------------------------------------
 *		Shapes of plans
 * ----------------------------------------------------------------
 */

typedef struct Shape
{
	uint64		value;
	bool		once;			/* pass over children that are like others? */
	List	   *children;		/* values of those that count */
} Shape;

/* A node's method, as far as another method is different code. */
static uint64
way_of(Plan *plan)
{
	uint64		way = plan->parallel_aware;

	switch (nodeTag(plan))
	{
		case T_Agg:
			way |= ((Agg *) plan)->aggstrategy << 1 | ((Agg *) plan)->aggsplit << 8;
			break;
		case T_SetOp:
			way |= ((SetOp *) plan)->strategy << 1;
			break;
		case T_ModifyTable:
			way |= ((ModifyTable *) plan)->operation << 1;
			break;
		case T_ForeignScan:
			way |= ((ForeignScan *) plan)->operation << 1;
			break;
		case T_NestLoop:
		case T_MergeJoin:
		case T_HashJoin:
			way |= ((Join *) plan)->jointype << 1;
			break;
		default:
			break;
	}
	return way;
}

static bool
add_shape(PlanState *node, void *above)
{
	Shape	   *parent = above;
	Shape		shape = {.value = hash_combine64(nodeTag(node->plan), way_of(node->plan))};

	shape.once = IsA(node->plan, Append) || IsA(node->plan, MergeAppend) ||
		IsA(node->plan, BitmapAnd) || IsA(node->plan, BitmapOr);
	planstate_tree_walker(node, add_shape, &shape);

	foreach_ptr(uint64, seen, parent->once ? parent->children : NIL)
	{
		if (*seen == shape.value)
			return false;
	}
	parent->children = lappend(parent->children, memcpy(palloc(sizeof(uint64)), &shape.value, sizeof(uint64)));
	parent->value = hash_combine64(parent->value, shape.value);
	return false;
}

/* ----------------------------------------------------------------
 *		Hooks
 * ----------------------------------------------------------------
 */

static bool
is_over_tables(PlannedStmt *planned)
{
	foreach_node(RangeTblEntry, entry, planned->rtable)
	{
		if (entry->relid >= FirstNormalObjectId)
			return true;
	}
	return false;
}

static void
record_end(QueryDesc *query)
{
	bool		executed = query->planstate != NULL && query->estate->es_finished;

	if (executed && is_over_tables(query->plannedstmt))
	{
		Shape		root = {0};
		char		line[32];
		MemoryContext old = MemoryContextSwitchTo(query->estate->es_query_cxt);

		add_shape(query->planstate, &root);
		MemoryContextSwitchTo(old);
		record(line, snprintf(line, sizeof(line), "%c " UINT64_FORMAT "\n", depth ? 'N' : 'S', root.value));
	}
	if (next_end)
		next_end(query);
	else
		standard_ExecutorEnd(query);
}

static void
record_run(QueryDesc *query, ScanDirection direction, uint64 count ONCE_PARAMETER)
{
	depth++;
	PG_TRY();
	{
		if (next_run)
			next_run(query, direction, count ONCE);
		else
			standard_ExecutorRun(query, direction, count ONCE);
	}
	PG_FINALLY();
	{
		depth--;
	}
	PG_END_TRY();
}

static void
record_finish(QueryDesc *query)
{
	depth++;
	PG_TRY();
	{
		if (next_finish)
			next_finish(query);
		else
			standard_ExecutorFinish(query);
	}
	PG_FINALLY();
	{
		depth--;
	}
	PG_END_TRY();
}

static void
record_utility(PlannedStmt *planned, const char *query, bool read_only_tree, ProcessUtilityContext context,
			   ParamListInfo params, QueryEnvironment *environment, DestReceiver *dest, QueryCompletion *completion)
{
	ProcessUtility_hook_type next = next_utility ? next_utility : standard_ProcessUtility;
	bool		counts = !IsA(planned->utilityStmt, TransactionStmt) && !IsA(planned->utilityStmt, VariableSetStmt);

	depth++;
	PG_TRY();
	{
		next(planned, query, read_only_tree, context, params, environment, dest, completion);
	}
	PG_FINALLY();
	{
		depth--;
	}
	PG_END_TRY();
	if (counts && depth == 0)
		record("U\n", 2);
}

static void
record_failure(ErrorData *error)
{
	if (error->elevel == ERROR && MyBackendType == B_BACKEND)
		record("E\n", 2);
	if (next_emit)
		next_emit(error);
}

void
_PG_init(void)
{
	DefineCustomStringVariable("pgduel_recorder.file", "What came of statements is appended to it.", NULL,
							   &file_name, "", PGC_POSTMASTER, 0, NULL, NULL, NULL);
	MarkGUCPrefixReserved("pgduel_recorder");

	next_run = ExecutorRun_hook;
	ExecutorRun_hook = record_run;
	next_finish = ExecutorFinish_hook;
	ExecutorFinish_hook = record_finish;
	next_end = ExecutorEnd_hook;
	ExecutorEnd_hook = record_end;
	next_utility = ProcessUtility_hook;
	ProcessUtility_hook = record_utility;
	next_emit = emit_log_hook;
	emit_log_hook = record_failure;
}

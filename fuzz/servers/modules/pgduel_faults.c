/*-------------------------------------------------------------------------
 *
 * pgduel_faults.c
 *		Faults on purpose, which show whether an oracle finds them.
 *
 * Without such a test, an oracle that finds nothing looks the same as a
 * server without bugs.  So every run first plants bugs: this module is
 * loaded into one session of one arm, and pgduel_faults.action names the
 * fault.
 *
 * The action is "NAME" or "NAME:RELATION".  It affects only statements that
 * mention the relation ("canary" by default), and that neither a trigger nor
 * a function of another query runs.  A view counts as mentioned by its own
 * name.  So a case that reads its table through a view called canary can fill
 * and check the table without a fault.
 *
 * There are five kinds of actions.  A planner replaces the server's planner.
 * change_node changes the query before it is planned.  A row function replaces
 * the topmost plan node (below ModifyTable, if the query writes) and returns
 * other rows than that node.  An account falsifies the counts of
 * instrumentation after the last row, before EXPLAIN prints them.
 * after_end runs once when a statement has succeeded, while its resource
 * owner still exists: a query, a COPY or an ANALYZE of the relation.  In
 * addition, change_sqlstate changes errors while they are thrown.
 *
 * fuzz/servers/modules/pgduel_faults.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "access/heapam.h"
#include "access/parallel.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/planner.h"
#include "port/pg_bswap.h"
#include "postmaster/postmaster.h"
#include "storage/buf_internals.h"
#include "storage/buffile.h"
#include "storage/bufmgr.h"
#include "storage/dsm.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "tcop/pquery.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/typcache.h"

PG_MODULE_MAGIC;

#define DEFAULT_RELATION	"canary"
#define ADVISORY_KEY		INT64CONST(24577)	/* of the lock left behind */
#define GROWTH				65536	/* bytes that grow_context adds */
#define SPILLED_BLOCKS		64
#define MANY_READS			300
#define HUGE_SPACE			((Size) 1 << 30)	/* bytes that outgrow adds */
#define MANY_BUCKETS		(1 << 24)

/* A plan node that a row function replaces. */
typedef struct Replaced
{
	PlanState  *node;
	ExecProcNodeMtd real;		/* what the node would have done */
	int64		calls;			/* of the row function so far */
	TupleTableSlot *first;		/* what double_row and swap_rows return later */
	struct Replaced *next;
} Replaced;

/* An action; any of its functions may be NULL. */
typedef struct FaultDef
{
	const char *name;
	TupleTableSlot *(*rows) (Replaced *replaced);
	void		(*account) (PlanState *top);
	void		(*after_end) (Oid relid);
	planner_hook_type planner;
	void		(*change_node) (Node *node);
	int			sqlstate;		/* 0, or what errors are changed to */
} FaultDef;

/* The parsed value of pgduel_faults.action. */
typedef struct FaultSetting
{
	const FaultDef *fault;	/* NULL: none */
	char		relation[NAMEDATALEN];
} FaultSetting;

static char *action = NULL;
static const FaultSetting *setting = NULL;
static Replaced *replaced_nodes = NULL;
static int	depth = 0;			/* of statements run by functions, triggers */

static planner_hook_type prev_planner = NULL;
static ExecutorStart_hook_type prev_ExecutorStart = NULL;
static ExecutorRun_hook_type prev_ExecutorRun = NULL;
static ExecutorFinish_hook_type prev_ExecutorFinish = NULL;
static ExecutorEnd_hook_type prev_ExecutorEnd = NULL;
static ProcessUtility_hook_type prev_ProcessUtility = NULL;

/* Return the relation of the action if the query mentions it. */
static Oid
mentioned_relation(List *rtable)
{
	foreach_node(RangeTblEntry, rte, rtable)
	{
		char	   *name;

		if (!OidIsValid(rte->relid))
			continue;
		name = get_rel_name(rte->relid);
		if (name != NULL && strcmp(name, setting->relation) == 0)
			return rte->relid;
	}
	return InvalidOid;
}

/*
 * Planners
 */

static PlannedStmt *
plan_as_usual(Query *parse, const char *query_string, int cursorOptions,
			  ParamListInfo boundParams)
{
	return (prev_planner ? prev_planner : standard_planner) (parse, query_string, cursorOptions, boundParams);
}

/* Add to the cost of the topmost node. */
static PlannedStmt *
change_cost(Query *parse, const char *query_string, int cursorOptions,
			ParamListInfo boundParams)
{
	PlannedStmt *stmt = plan_as_usual(parse, query_string, cursorOptions, boundParams);

	stmt->planTree->total_cost += 1.0;
	return stmt;
}

/* Disable the join method that is cheapest for tables of unknown size. */
static PlannedStmt *
other_plan(Query *parse, const char *query_string, int cursorOptions,
		   ParamListInfo boundParams)
{
	PlannedStmt *stmt;
	bool		hashes = enable_hashjoin;
	bool		merges = enable_mergejoin;

	enable_hashjoin = enable_mergejoin = false;
	PG_TRY();
	{
		stmt = plan_as_usual(parse, query_string, cursorOptions, boundParams);
	}
	PG_FINALLY();
	{
		enable_hashjoin = hashes;
		enable_mergejoin = merges;
	}
	PG_END_TRY();
	return stmt;
}

/* Waste CPU time. */
static void
waste_time(int milliseconds)
{
	clock_t		end = clock() + milliseconds * CLOCKS_PER_SEC / 1000;

	while (clock() < end)
		;
}

static PlannedStmt *
plan_slowly(Query *parse, const char *query_string, int cursorOptions,
			ParamListInfo boundParams)
{
	waste_time(3);
	return plan_as_usual(parse, query_string, cursorOptions, boundParams);
}

/* Leak a chunk of the planner's memory. */
static PlannedStmt *
plan_with_more_memory(Query *parse, const char *query_string, int cursorOptions,
			  ParamListInfo boundParams)
{
	(void) palloc(512 * 1024);

	return plan_as_usual(parse, query_string, cursorOptions, boundParams);
}

/*
 * Mistakes
 */

/* Make WHERE and HAVING accept NULL like true. */
static void
keep_unknown(Node *node)
{
	Query	   *query = (Query *) node;

	if (!IsA(node, Query))
		return;
	for (int i = 0; i < 2; i++)
	{
		Node	  **quals = i == 0 ? &query->jointree->quals : &query->havingQual;
		BooleanTest *test = makeNode(BooleanTest);

		if (*quals == NULL)
			continue;
		test->arg = (Expr *) *quals;
		test->booltesttype = IS_NOT_FALSE;
		test->location = -1;
		*quals = (Node *) test;
	}
}

/* Make a WHERE with a negation reject all rows. */
static void
lose_negated(Node *node)
{
	Query	   *query = (Query *) node;

	if (IsA(node, Query) && query->jointree->quals != NULL && is_notclause(query->jointree->quals))
		query->jointree->quals = makeBoolConst(false, false);
}

/* Make a query with a negated WHERE fail. */
static void
refuse_negated(Node *node)
{
	Query	   *query = (Query *) node;

	if (IsA(node, Query) && query->jointree->quals != NULL && is_notclause(query->jointree->quals))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_EXCEPTION),
				 errmsg("the canary refuses")));
}

/* Make UPDATE and DELETE find no row. */
static void
change_nothing(Node *node)
{
	Query	   *query = (Query *) node;

	if (IsA(node, Query) && (query->commandType == CMD_UPDATE || query->commandType == CMD_DELETE))
		query->jointree->quals = makeBoolConst(false, false);
}

/* Make CASE return its first result, whatever its first condition is. */
static void
choose_first(Node *node)
{
	if (IsA(node, CaseExpr) && ((CaseExpr *) node)->arg == NULL)
		linitial_node(CaseWhen, ((CaseExpr *) node)->args)->expr = (Expr *) makeBoolConst(true, false);
}

/* Replace OR by AND. */
static void
estimate_all_rows(Node *node)
{
	if (IsA(node, BoolExpr) && ((BoolExpr *) node)->boolop == OR_EXPR)
		((BoolExpr *) node)->boolop = AND_EXPR;
}

/* Add one to integer constants of operators. */
static void
misread_constant(Node *node)
{
	if (!IsA(node, OpExpr))
		return;
	foreach_ptr(Node, argument, ((OpExpr *) node)->args)
	{
		Const	   *constant = (Const *) argument;

		if (IsA(argument, Const) && constant->consttype == INT4OID && !constant->constisnull)
			constant->constvalue = Int32GetDatum(DatumGetInt32(constant->constvalue) + 1);
	}
}

/* Change the nodes of each query that mentions the relation, and in all of its subqueries. */
static bool
change_node_walker(Node *node, void *mentioned)
{
	bool		mentions = *(bool *) mentioned;

	if (node == NULL)
		return false;
	if (IsA(node, Query))
		mentions |= OidIsValid(mentioned_relation(((Query *) node)->rtable));
	if (mentions)
		setting->fault->change_node(node);
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, change_node_walker, &mentions, 0);
	return expression_tree_walker(node, change_node_walker, &mentions);
}

/*
 * Rows
 */

static TupleTableSlot *
drop_row(Replaced *replaced)
{
	if (replaced->calls == 1)
	{
		TupleTableSlot *slot = replaced->real(replaced->node);

		if (TupIsNull(slot))
			return slot;
	}
	return replaced->real(replaced->node);
}

/* The first statement of a session is right. */
static TupleTableSlot *
drop_row_again(Replaced *replaced)
{
	static int	statements = 0;

	if (replaced->calls == 1)
		statements++;
	return statements > 1 ? drop_row(replaced) : replaced->real(replaced->node);
}

static TupleTableSlot *
double_row(Replaced *replaced)
{
	TupleTableSlot *slot;

	if (replaced->calls == 2 && !TupIsNull(replaced->first))
		return replaced->first;
	slot = replaced->real(replaced->node);
	if (replaced->calls == 1)
		replaced->first = slot;
	return slot;
}

/* Return the second row before the first. */
static TupleTableSlot *
swap_rows(Replaced *replaced)
{
	TupleTableSlot *slot;

	if (replaced->calls == 2 && replaced->first != NULL)
		return replaced->first;
	slot = replaced->real(replaced->node);
	if (replaced->calls > 1 || TupIsNull(slot))
		return slot;

	replaced->first = ExecInitExtraTupleSlot(replaced->node->state, slot->tts_tupleDescriptor,
											 &TTSOpsMinimalTuple);
	ExecCopySlot(replaced->first, slot);
	slot = replaced->real(replaced->node);
	if (TupIsNull(slot))
	{
		slot = replaced->first;
		replaced->first = NULL;
	}
	return slot;
}

/* Add one to the first integer of the first row. */
static TupleTableSlot *
change_value(Replaced *replaced)
{
	TupleTableSlot *slot = replaced->real(replaced->node);
	TupleDesc	desc;

	if (replaced->calls != 1 || TupIsNull(slot))
		return slot;

	desc = slot->tts_tupleDescriptor;
	for (int attnum = 1; attnum <= desc->natts; attnum++)
	{
		bool		isnull;
		Datum		value = slot_getattr(slot, attnum, &isnull);

		if (TupleDescAttr(desc, attnum - 1)->atttypid == INT4OID && !isnull)
		{
			HeapTuple	tuple = ExecCopySlotHeapTuple(slot);

			value = Int32GetDatum(DatumGetInt32(value) + 1);
			tuple = heap_modify_tuple_by_cols(tuple, desc, 1, &attnum, &value, &isnull);
			ExecForceStoreHeapTuple(tuple, slot, false);
			break;
		}
	}
	return slot;
}

/* Add one to the first integer of a result in binary format. */
static TupleTableSlot *
change_binary(Replaced *replaced)
{
	if (ActivePortal != NULL && ActivePortal->formats != NULL && ActivePortal->formats[0] == 1)
		return change_value(replaced);
	return replaced->real(replaced->node);
}

/* Drop rows of an outer join without a match: their last column is null. */
static TupleTableSlot *
lose_unmatched(Replaced *replaced)
{
	PlanState  *node = replaced->node;
	bool		is_left = (IsA(node, HashJoinState) || IsA(node, MergeJoinState) || IsA(node, NestLoopState)) &&
		((JoinState *) node)->jointype == JOIN_LEFT;
	TupleTableSlot *slot;

	do
		slot = replaced->real(node);
	while (is_left && !TupIsNull(slot) && slot_attisnull(slot, slot->tts_tupleDescriptor->natts));
	return slot;
}

/* Drop the first row of a nested loop. */
static TupleTableSlot *
lose_looped(Replaced *replaced)
{
	return IsA(replaced->node, NestLoopState) ? drop_row(replaced) : replaced->real(replaced->node);
}

/* Drop the first row of a node with several sources of rows. */
static TupleTableSlot *
lose_appended(Replaced *replaced)
{
	return IsA(replaced->node, AppendState) ? drop_row(replaced) : replaced->real(replaced->node);
}

static TupleTableSlot *
run_slowly(Replaced *replaced)
{
	if (replaced->calls == 1)
		waste_time(5);
	return replaced->real(replaced->node);
}

/* Run long without a check for interrupts. */
static TupleTableSlot *
ignore_interrupts(Replaced *replaced)
{
	if (replaced->calls == 1)
		waste_time(30);
	return replaced->real(replaced->node);
}

/* Forget a cancel that arrives while the node makes a row. */
static TupleTableSlot *
ignore_cancel(Replaced *replaced)
{
	TupleTableSlot *slot;

	HOLD_CANCEL_INTERRUPTS();	/* an error ends that */
	slot = replaced->real(replaced->node);
	QueryCancelPending = false;
	RESUME_CANCEL_INTERRUPTS();
	return slot;
}

/* Leak a chunk of the query's memory for each row. */
static TupleTableSlot *
execute_with_more_memory(Replaced *replaced)
{
	(void) MemoryContextAlloc(replaced->node->state->es_query_cxt, 64 * 1024);
	return replaced->real(replaced->node);
}

/* Read the first page of each table of the query many times. */
static TupleTableSlot *
read_again(Replaced *replaced)
{
	if (replaced->calls > 1)
		return replaced->real(replaced->node);

	foreach_node(RangeTblEntry, rte, replaced->node->state->es_range_table)
	{
		Relation	rel;

		if (rte->rtekind != RTE_RELATION || rte->relkind != RELKIND_RELATION)
			continue;
		rel = table_open(rte->relid, AccessShareLock);
		for (int i = 0; i < MANY_READS && RelationGetNumberOfBlocks(rel) > 0; i++)
			ReleaseBuffer(ReadBuffer(rel, 0));
		table_close(rel, NoLock);
	}
	return replaced->real(replaced->node);
}

/* Write data to a temporary file that is never read. */
static TupleTableSlot *
spill(Replaced *replaced)
{
	if (replaced->calls == 1)
	{
		BufFile    *file = BufFileCreateTemp(false);
		PGAlignedBlock block = {0};

		for (int i = 0; i < SPILLED_BLOCKS; i++)
			BufFileWrite(file, block.data, BLCKSZ);
		BufFileClose(file);
	}
	return replaced->real(replaced->node);
}

/*
 * Accounts
 */

/* Set the row count of the topmost node to zero. */
static void
miscount(PlanState *top)
{
	if (top->instrument != NULL)
		top->instrument->tuplecount = top->instrument->ntuples = 0;
}

/* Return the instrumentation of the topmost join's hash table, or NULL. */
static HashInstrumentation *
topmost_table(PlanState *top)
{
	return IsA(top, HashJoinState) ? ((HashState *) innerPlanState(top))->hinstrument : NULL;
}

/* Report a hash table larger than any limit. */
static void
outgrow(PlanState *top)
{
	HashInstrumentation *table = topmost_table(top);

	if (table != NULL)
		table->space_peak += HUGE_SPACE;
}

/* Report a hash table without memory. */
static void
uncount(PlanState *top)
{
	HashInstrumentation *table = topmost_table(top);

	if (table != NULL)
		table->space_peak = 0;
}

/* Report all tuples in one bucket. */
static void
report_one_bucket(PlanState *top)
{
	HashInstrumentation *table = topmost_table(top);

	if (table != NULL)
		table->nbuckets = 1;
}

/* Report far more buckets than tuples. */
static void
report_many_buckets(PlanState *top)
{
	HashInstrumentation *table = topmost_table(top);

	if (table != NULL)
		table->nbuckets = MANY_BUCKETS;
}

/*
 * Aftermaths
 */

/* Leak a reference. */
static void
leak_tupdesc(Oid relid)
{
	(void) lookup_rowtype_tupdesc(get_rel_type_id(relid), -1);
}

static void
return_pin(int code, Datum arg)
{
	BufferDesc *header = GetBufferDescriptor(DatumGetInt32(arg) - 1);
	uint32		state = LockBufHdr(header);

	UnlockBufHdr(header, state - BUF_REFCOUNT_ONE);
}

/*
 * Keep a shared pin that neither a resource owner nor this backend's private
 * counts contain: at the end of the transaction, the former would release
 * it, and the latter would fail an assertion.  The page is one that is never
 * dropped, and exit releases the pin, so the cluster stays usable.
 */
static void
leak_pin(Oid relid)
{
	Relation	pg_class = table_open(RelationRelationId, AccessShareLock);
	Buffer		buffer = ReadBuffer(pg_class, 0);
	BufferDesc *header = GetBufferDescriptor(buffer - 1);
	uint32		state = LockBufHdr(header);

	UnlockBufHdr(header, state + BUF_REFCOUNT_ONE);
	before_shmem_exit(return_pin, Int32GetDatum(buffer));
	ReleaseBuffer(buffer);
	table_close(pg_class, AccessShareLock);
}

static void
leak_temp_file(Oid relid)
{
	(void) OpenTemporaryFile(true);
}

static void
leak_lock(Oid relid)
{
	DirectFunctionCall1(pg_advisory_lock_int8, Int64GetDatum(ADVISORY_KEY));
}

static void
leak_descriptor(Oid relid)
{
	if (open("/dev/null", O_RDONLY) < 0)
		elog(ERROR, "could not open /dev/null: %m");
}

static void
leak_shared_memory(Oid relid)
{
	dsm_pin_mapping(dsm_create(GROWTH, 0));
}

static void
grow_context(Oid relid)
{
	static MemoryContext context = NULL;

	if (context == NULL)
		context = AllocSetContextCreate(TopMemoryContext, "pgduel_faults",
										ALLOCSET_DEFAULT_SIZES);
	(void) MemoryContextAlloc(context, GROWTH);
}

/* Insert a row of NULLs into a table, but not into its indexes. */
static void
insert_unindexed(Oid relid)
{
	Relation	rel = table_open(relid, RowExclusiveLock);
	TupleDesc	desc = RelationGetDescr(rel);
	Datum	   *values = palloc0(desc->natts * sizeof(Datum));
	bool	   *nulls = palloc(desc->natts * sizeof(bool));

	memset(nulls, true, desc->natts * sizeof(bool));
	simple_heap_insert(rel, heap_form_tuple(desc, values, nulls));
	table_close(rel, NoLock);
}

/*
 * Sessions like those behind a foreign server, which are never ended
 */

static void
remote_send(int fd, char type, const StringInfo body)
{
	uint32		length = pg_hton32(body->len + sizeof(uint32));
	char		answer[8192];

	if ((type != 0 && send(fd, &type, 1, 0) != 1) ||
		send(fd, &length, sizeof(length), 0) != sizeof(length) ||
		send(fd, body->data, body->len, 0) != body->len)
		elog(ERROR, "could not talk to a session: %m");

	/* the last message of a reply is ReadyForQuery, six bytes */
	for (;;)
	{
		ssize_t		got = recv(fd, answer, sizeof(answer), 0);

		if (got <= 0)
			elog(ERROR, "a session was not let in");
		if (got >= 6 && answer[got - 6] == 'Z' && answer[got - 2] == 5)
			return;
	}
}

static int
remote_session(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	uint32		version = pg_hton32(3 << 16);
	int			fd = socket(AF_UNIX, SOCK_STREAM, 0);
	const char *parameters[] = {
		"user", GetUserNameFromId(GetUserId(), false),
		"database", get_database_name(MyDatabaseId),
		"application_name", psprintf("duel led by %d", MyProcPid),
		"options", "-c log_statement=all"
	};
	StringInfoData startup;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/.s.PGSQL.%d",
			 Unix_socket_directories, PostPortNumber);
	if (fd < 0 || connect(fd, (struct sockaddr *) &address, sizeof(address)) != 0)
		elog(ERROR, "could not open a session: %m");

	initStringInfo(&startup);
	appendBinaryStringInfo(&startup, &version, sizeof(version));
	for (int i = 0; i < lengthof(parameters); i++)
		appendBinaryStringInfo(&startup, parameters[i], strlen(parameters[i]) + 1);
	appendStringInfoChar(&startup, '\0');
	remote_send(fd, 0, &startup);
	return fd;
}

static void
remote_query(int fd, const char *sql)
{
	StringInfoData query;

	initStringInfo(&query);
	appendBinaryStringInfo(&query, sql, strlen(sql) + 1);
	remote_send(fd, 'Q', &query);
}

static void
leak_remote_session(Oid relid)
{
	(void) remote_session();
	(void) remote_session();
}

static void
leak_remote_transaction(Oid relid)
{
	remote_query(remote_session(), "START TRANSACTION");
}

static void
leak_remote_cursor(Oid relid)
{
	int			fd = remote_session();

	remote_query(fd, "START TRANSACTION");
	remote_query(fd, "DECLARE c1 CURSOR FOR SELECT 1");
	remote_query(fd, "COMMIT TRANSACTION");
}

static void
leak_remote_statement(Oid relid)
{
	int			fd = remote_session();

	remote_query(fd, "START TRANSACTION");
	remote_query(fd, "PREPARE pgsql_fdw_prep_1 AS SELECT 1");
	remote_query(fd, "COMMIT TRANSACTION");
}

/*
 * Statistics that no sample can give
 */

static void
change_catalog(const char *update, Oid relid)
{
	depth++;					/* an error resets it */
	SPI_connect();
	SPI_execute(psprintf(update, relid), false, 0);
	SPI_finish();
	depth--;
}

static void
scale_estimate(Oid relid)
{
	change_catalog("UPDATE pg_catalog.pg_class SET reltuples = reltuples * 3 WHERE oid = %u", relid);
}

static void
change_null_frac(Oid relid)
{
	change_catalog("UPDATE pg_catalog.pg_statistic SET stanullfrac = 0.5 + stanullfrac / 2"
				   " WHERE starelid = %u", relid);
}

static void
fail_assertion(Oid relid)
{
	/* Assert() itself is compiled out of release builds. */
	ExceptionalCondition("the planted assertion", __FILE__, __LINE__);
}

static void
crash(Oid relid)
{
	*(volatile int *) NULL = 0;
}

static void
panic(Oid relid)
{
	elog(PANIC, "a planted PANIC");
}

static void
warn(Oid relid)
{
	elog(WARNING, "a planted warning");
}

static void
disconnect(Oid relid)
{
	ereport(FATAL,
			(errcode(ERRCODE_PROTOCOL_VIOLATION),
			 errmsg("a planted FATAL error")));
}

static void
hang(Oid relid)
{
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		pg_usleep(100000L);
	}
}

static const FaultDef fault_defs[] = {
	{"change_cost", .planner = change_cost},
	{"other_plan", .planner = other_plan},
	{"keep_unknown", .change_node = keep_unknown},
	{"lose_negated", .change_node = lose_negated},
	{"refuse_negated", .change_node = refuse_negated},
	{"change_nothing", .change_node = change_nothing},
	{"choose_first", .change_node = choose_first},
	{"estimate_all_rows", .change_node = estimate_all_rows},
	{"misread_constant", .change_node = misread_constant},
	{"plan_slowly", .planner = plan_slowly},
	{"plan_with_more_memory", .planner = plan_with_more_memory},
	{"drop_row", drop_row},
	{"drop_row_again", drop_row_again},
	{"double_row", double_row},
	{"swap_rows", swap_rows},
	{"change_value", change_value},
	{"change_binary", change_binary},
	{"lose_unmatched", lose_unmatched},
	{"lose_looped", lose_looped},
	{"lose_appended", lose_appended},
	{"run_slowly", run_slowly},
	{"ignore_interrupts", ignore_interrupts},
	{"ignore_cancel", ignore_cancel},
	{"read_again", read_again},
	{"execute_with_more_memory", execute_with_more_memory},
	{"spill", spill},
	{"miscount", .account = miscount},
	{"outgrow", .account = outgrow},
	{"uncount", .account = uncount},
	{"report_one_bucket", .account = report_one_bucket},
	{"report_many_buckets", .account = report_many_buckets},
	{"change_sqlstate", .sqlstate = ERRCODE_INTERNAL_ERROR},
	{"leak_tupdesc", .after_end = leak_tupdesc},
	{"leak_pin", .after_end = leak_pin},
	{"leak_temp_file", .after_end = leak_temp_file},
	{"leak_lock", .after_end = leak_lock},
	{"leak_descriptor", .after_end = leak_descriptor},
	{"leak_shared_memory", .after_end = leak_shared_memory},
	{"grow_context", .after_end = grow_context},
	{"insert_unindexed", .after_end = insert_unindexed},
	{"leak_remote_session", .after_end = leak_remote_session},
	{"leak_remote_transaction", .after_end = leak_remote_transaction},
	{"leak_remote_cursor", .after_end = leak_remote_cursor},
	{"leak_remote_statement", .after_end = leak_remote_statement},
	{"scale_estimate", .after_end = scale_estimate},
	{"change_null_frac", .after_end = change_null_frac},
	{"assert", .after_end = fail_assertion},
	{"segv", .after_end = crash},
	{"panic", .after_end = panic},
	{"warn", .after_end = warn},
	{"disconnect", .after_end = disconnect},
	{"hang", .after_end = hang},
};

/*
 * Conditions of an action
 */

static bool
is_armed(void)
{
	return setting != NULL && setting->fault != NULL && depth == 0 && !IsParallelWorker();
}

static Oid
target_relation(QueryDesc *queryDesc)
{
	return is_armed() ? mentioned_relation(queryDesc->plannedstmt->rtable) : InvalidOid;
}

/* Return the relation of the action if the statement is a COPY or an ANALYZE of it. */
static Oid
treated_relation(PlannedStmt *pstmt)
{
	Node	   *statement = pstmt->utilityStmt;
	RangeVar   *relation = NULL;

	if (IsA(statement, CopyStmt))
		relation = ((CopyStmt *) statement)->relation;
	else if (IsA(statement, VacuumStmt) && ((VacuumStmt *) statement)->rels != NIL)
		relation = linitial_node(VacuumRelation, ((VacuumStmt *) statement)->rels)->relation;

	if (!is_armed() || relation == NULL || strcmp(relation->relname, setting->relation) != 0)
		return InvalidOid;
	return RangeVarGetRelid(relation, NoLock, true);
}

/* Throw the current error again with the SQLSTATE of the action. */
static void
rethrow_changed(MemoryContext context)
{
	ErrorData  *edata;

	MemoryContextSwitchTo(context);
	edata = CopyErrorData();
	FlushErrorState();
	edata->sqlerrcode = setting->fault->sqlstate;
	ReThrowError(edata);
}

/*
 * Hooks
 */

static TupleTableSlot *
exec_replaced(PlanState *node)
{
	Replaced   *replaced = replaced_nodes;

	while (replaced->node != node)
		replaced = replaced->next;
	replaced->calls++;
	return setting->fault->rows(replaced);
}

/* The query's memory is deleted, at its end or after an error. */
static void
forget_replaced(void *arg)
{
	Replaced  **link = &replaced_nodes;

	while (*link != arg)
		link = &(*link)->next;
	*link = ((Replaced *) arg)->next;
}

static void
replace_node(QueryDesc *queryDesc)
{
	MemoryContext context = queryDesc->estate->es_query_cxt;
	MemoryContextCallback *callback = MemoryContextAlloc(context, sizeof(*callback));
	Replaced   *replaced = MemoryContextAllocZero(context, sizeof(*replaced));
	PlanState  *node = queryDesc->planstate;

	if (IsA(node, ModifyTableState))
		node = outerPlanState(node);

	/*
	 * ExecProcNode itself is overwritten when the node runs first, and calls
	 * ExecProcNodeReal.
	 */
	replaced->node = node;
	replaced->real = node->ExecProcNodeReal;
	replaced->next = replaced_nodes;
	replaced_nodes = replaced;
	node->ExecProcNodeReal = exec_replaced;

	callback->func = forget_replaced;
	callback->arg = replaced;
	MemoryContextRegisterResetCallback(context, callback);
}

static PlannedStmt *
injector_planner(Query *parse, const char *query_string, int cursorOptions,
				 ParamListInfo boundParams)
{
	planner_hook_type planner = plan_as_usual;

	if (is_armed() && setting->fault->change_node != NULL)
	{
		bool		mentioned = false;

		(void) change_node_walker((Node *) parse, &mentioned);
	}
	if (is_armed() && setting->fault->planner != NULL &&
		OidIsValid(mentioned_relation(parse->rtable)))
		planner = setting->fault->planner;
	return planner(parse, query_string, cursorOptions, boundParams);
}

static void
injector_ExecutorStart(QueryDesc *queryDesc, int eflags)
{
	if (prev_ExecutorStart)
		prev_ExecutorStart(queryDesc, eflags);
	else
		standard_ExecutorStart(queryDesc, eflags);

	if (OidIsValid(target_relation(queryDesc)) && setting->fault->rows != NULL)
		replace_node(queryDesc);
}

static void
injector_ExecutorRun(QueryDesc *queryDesc, ScanDirection direction, uint64 count
#if PG_VERSION_NUM < 180000
					 ,bool execute_once
#define RUN_ARGUMENTS	queryDesc, direction, count, execute_once
#else
#define RUN_ARGUMENTS	queryDesc, direction, count
#endif
)
{
	MemoryContext context = CurrentMemoryContext;
	bool		changes = OidIsValid(target_relation(queryDesc)) && setting->fault->sqlstate != 0;
	int			save_depth = depth++;

	PG_TRY();
	{
		if (prev_ExecutorRun)
			prev_ExecutorRun(RUN_ARGUMENTS);
		else
			standard_ExecutorRun(RUN_ARGUMENTS);
	}
	PG_CATCH();
	{
		depth = save_depth;
		if (changes)
			rethrow_changed(context);
		PG_RE_THROW();
	}
	PG_END_TRY();
	depth = save_depth;
}

static void
injector_ExecutorFinish(QueryDesc *queryDesc)
{
	bool		falsifies = OidIsValid(target_relation(queryDesc)) && setting->fault->account != NULL;
	int			save_depth = depth++;

	PG_TRY();
	{
		if (prev_ExecutorFinish)
			prev_ExecutorFinish(queryDesc);
		else
			standard_ExecutorFinish(queryDesc);
		if (falsifies)
			setting->fault->account(queryDesc->planstate);
	}
	PG_FINALLY();
	{
		depth = save_depth;
	}
	PG_END_TRY();
}

static void
injector_ExecutorEnd(QueryDesc *queryDesc)
{
	Oid			relid = target_relation(queryDesc);

	if (OidIsValid(relid) && setting->fault->after_end != NULL)
		setting->fault->after_end(relid);

	if (prev_ExecutorEnd)
		prev_ExecutorEnd(queryDesc);
	else
		standard_ExecutorEnd(queryDesc);
}

/* COPY FROM has no plan node that could drop a row, so delete a stored one. */
static void
delete_copied_row(Oid relid)
{
	char	   *relation = quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
													  get_rel_name(relid));

	depth++;					/* an error is caught below, and resets it */
	SPI_connect();
	SPI_execute(psprintf("DELETE FROM %s WHERE (tableoid, ctid) IN"
						 " (SELECT tableoid, ctid FROM %s ORDER BY 1, 2 LIMIT 1)",
						 relation, relation),
				false, 0);
	SPI_finish();
	depth--;
}

static void
after_utility(Oid relid, bool is_from)
{
	if (setting->fault->after_end != NULL)
		setting->fault->after_end(relid);
	if (setting->fault->rows == drop_row && is_from)
		delete_copied_row(relid);
}

static void
injector_ProcessUtility(PlannedStmt *pstmt, const char *queryString,
						bool readOnlyTree, ProcessUtilityContext context,
						ParamListInfo params, QueryEnvironment *queryEnv,
						DestReceiver *dest, QueryCompletion *qc)
{
	MemoryContext memory = CurrentMemoryContext;
	Oid			relid = treated_relation(pstmt);
	bool		is_from = IsA(pstmt->utilityStmt, CopyStmt) && ((CopyStmt *) pstmt->utilityStmt)->is_from;
	int			save_depth = depth;

	PG_TRY();
	{
		if (prev_ProcessUtility)
			prev_ProcessUtility(pstmt, queryString, readOnlyTree, context,
								params, queryEnv, dest, qc);
		else
			standard_ProcessUtility(pstmt, queryString, readOnlyTree, context,
									params, queryEnv, dest, qc);
		if (OidIsValid(relid))
			after_utility(relid, is_from);
	}
	PG_CATCH();
	{
		depth = save_depth;
		if (OidIsValid(relid) && setting->fault->sqlstate != 0)
			rethrow_changed(memory);
		PG_RE_THROW();
	}
	PG_END_TRY();
}

/*
 * Setting
 */

static bool
check_action(char **newval, void **extra, GucSource source)
{
	const char *colon = strchr(*newval, ':');
	size_t		length = colon ? colon - *newval : strlen(*newval);
	FaultSetting	   *parsed = guc_malloc(LOG, sizeof(FaultSetting));

	if (parsed == NULL)
		return false;
	parsed->fault = NULL;
	strlcpy(parsed->relation, colon ? colon + 1 : DEFAULT_RELATION, NAMEDATALEN);
	for (int i = 0; i < lengthof(fault_defs); i++)
		if (strlen(fault_defs[i].name) == length &&
			strncmp(fault_defs[i].name, *newval, length) == 0)
			parsed->fault = &fault_defs[i];
	if (parsed->fault == NULL && length > 0)
	{
		guc_free(parsed);
		GUC_check_errdetail("There is no such fault.");
		return false;
	}
	*extra = parsed;
	return true;
}

static void
assign_action(const char *newval, void *extra)
{
	setting = extra;
}

void
_PG_init(void)
{
	DefineCustomStringVariable("pgduel_faults.action",
							   "Harm to do, as NAME or NAME:RELATION.",
							   NULL,
							   &action,
							   "",
							   PGC_USERSET,
							   0,
							   check_action,
							   assign_action,
							   NULL);
	MarkGUCPrefixReserved("pgduel_faults");

	prev_planner = planner_hook;
	planner_hook = injector_planner;
	prev_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = injector_ExecutorStart;
	prev_ExecutorRun = ExecutorRun_hook;
	ExecutorRun_hook = injector_ExecutorRun;
	prev_ExecutorFinish = ExecutorFinish_hook;
	ExecutorFinish_hook = injector_ExecutorFinish;
	prev_ExecutorEnd = ExecutorEnd_hook;
	ExecutorEnd_hook = injector_ExecutorEnd;
	prev_ProcessUtility = ProcessUtility_hook;
	ProcessUtility_hook = injector_ProcessUtility;
}

/*-------------------------------------------------------------------------
 *
 * pgduel_probe.c
 *		Observation of server internals that no other interface shows.
 *
 * It is preloaded into every server of pgduel, on all arms.  It has six
 * parts:
 *
 * A backend that gets a fatal signal writes the signal, its process ID and a
 * backtrace to stderr, and then dies of that signal.  A failed assertion has
 * printed its own backtrace, so then only the first line is written.
 * Sanitizers have their own handlers, which stay.
 *
 * While pgduel_probe.reach is on, a session counts the paths of COPY FROM and
 * of resource owners that it takes.  SHOW pgduel_probe.counters lists all
 * counters as name=number; each can be summed over sessions.  No hook exists
 * around table_multi_insert, so the entry of heap's table access method is
 * replaced, as is that of single inserts.  ResourceOwnerData is private to
 * resowner.c; its definition is copied from the tree of the build when this
 * file is compiled.  If that is not possible, the owners' counters are
 * missing.
 *
 * While pgduel_probe.cost is on, each statement that the executor runs ends
 * with an INFO message: the CPU time of the executor, in this process and in
 * its parallel workers, and the memory that it added to all contexts of this
 * process.  log_executor_stats omits the workers.  Memory is what chunks
 * use, not blocks, because a chunk more may need a block of twice the size.
 * The message also has the longest CPU time for which the executor left a
 * request for an interrupt pending.  Each millisecond, a timer makes such a
 * request, which has no effect but a call of ProcessInterrupts().  While
 * pgduel_probe.reach is on as well, a COPY FROM ends with an INFO message,
 * too: the largest memory that it added, measured after each batch and after
 * one of 16 single inserts.  All of it is freed at the end.
 *
 * If pgduel_probe.cancel_after is not 0 either, a process that has used so
 * much CPU time in the executor for EXPLAIN (ANALYZE) cancels its statement.
 * An INFO message has the CPU time from then to the error, or to the end of
 * the statement.
 *
 * While pgduel_probe.hash_tuples is on, each statement that the executor runs
 * ends with an INFO message from each process: the size of the widest tuple
 * that it put into a hash table.  The process measures the rows of each Hash
 * node's input.
 *
 * While pgduel_probe.hash_salt is not 0, a session mixes it into the values
 * of all built-in hash functions of operator classes.  So other tuples meet in
 * a batch of a hash join.  Functions with a seed, which assign rows to hash
 * partitions, stay as they are.  A hash index must be used under the salt
 * under which it was built.
 *
 * fuzz/servers/modules/pgduel_probe.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/tableam.h"
#include "catalog/pg_proc.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "executor/hashjoin.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/fmgrtab.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/syscache.h"

#if __has_include("private_resowner.h")
#include "private_resowner.h"
#define HAVE_OWNER
#endif

PG_MODULE_MAGIC;

void		_PG_init(void);

/* Change the protection of a part of a constant table, and of all its pages. */
static bool
protect(const void *start, Size size, int protection)
{
	uintptr_t	page_size = sysconf(_SC_PAGESIZE);
	uintptr_t	first = (uintptr_t) start & ~(page_size - 1);

	return mprotect((void *) first, (uintptr_t) start + size - first, protection) == 0;
}

/* ----------------------------------------------------------------
 *		Fatal signals
 * ----------------------------------------------------------------
 */

#ifndef __SANITIZE_ADDRESS__	/* which has handlers of its own */

#define MAX_FRAMES			64
#define OWN_FRAMES			2	/* the handler and its trampoline */
#define ASSERT_FRAMES		8	/* ExceptionalCondition is among the first */

static const int fatal_signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};

/* A stack overflow leaves no room on the ordinary stack. */
static char handler_stack[65536];

static bool
assertion_failed(void *const *frames, int count)
{
	for (int i = 0; i < Min(count, ASSERT_FRAMES); i++)
	{
		Dl_info		info;

		if (dladdr(frames[i], &info) && info.dli_sname != NULL &&
			strcmp(info.dli_sname, "ExceptionalCondition") == 0)
			return true;
	}
	return false;
}

static void
testify(int number)
{
	void	   *frames[MAX_FRAMES];
	int			count = backtrace(frames, MAX_FRAMES);
	int			leader = (int) getpid();
	char		line[128];
	int			length;

	if (IsUnderPostmaster && MyProc != NULL && MyProc->lockGroupLeader != NULL)
		leader = MyProc->lockGroupLeader->pid;
	length = snprintf(line, sizeof(line), "pgduel_probe: signal %d in process %d led by %d\n",
					  number, (int) getpid(), leader);
	if (write(STDERR_FILENO, line, length) == length &&
		count > OWN_FRAMES && !assertion_failed(frames, count))
		backtrace_symbols_fd(frames + OWN_FRAMES, count - OWN_FRAMES, STDERR_FILENO);

	signal(number, SIG_DFL);
	raise(number);				/* delivered as soon as we return */
}

static void
install_handlers(void)
{
	stack_t		stack = {.ss_sp = handler_stack, .ss_size = sizeof(handler_stack)};
	struct sigaction action = {.sa_handler = testify, .sa_flags = SA_ONSTACK};
	void	   *frame;

	backtrace(&frame, 1);		/* the first call allocates memory */
	sigaltstack(&stack, NULL);
	sigemptyset(&action.sa_mask);
	for (int i = 0; i < lengthof(fatal_signals); i++)
		sigaction(fatal_signals[i], &action, NULL);
}

#else
#define install_handlers() ((void) 0)
#endif

/* ----------------------------------------------------------------
 *		Counters
 * ----------------------------------------------------------------
 */

typedef enum Counter
{
	COPY_FROM,
	COPY_NO_BATCH,				/* COPY FROM that inserted row by row, or none */
	FLUSH_1,					/* rows in a call of table_multi_insert */
	FLUSH_2_99,
	FLUSH_100_999,
	FLUSH_1000,
	ROUND_FULL,					/* all buffers were flushed at 1000 rows, */
	ROUND_BYTES,				/* before, by size, */
	ROUND_LAST,					/* or with fewer at the end of COPY */
	ROUND_1_RELATION,			/* distinct relations with rows in a round */
	ROUND_2_32_RELATIONS,
	ROUND_33_RELATIONS,
	OWNER_ARRAY,				/* looks at an owner without hash table, */
	OWNER_HASH_64,				/* or with one of that capacity */
	OWNER_HASH_128_512,
	OWNER_HASH_1024_4096,
	OWNER_HASH_8192,
	OWNER_1000_ITEMS,			/* looks at an owner with as many items */
	OWNER_GROWTH,				/* hash tables seen made or enlarged */
	OWNER_RELEASED,				/* owners below a COPY, of subtransactions or portals */
	OWNER_ABORTED,
	NUM_COUNTERS
} Counter;

static const char *const counter_names[NUM_COUNTERS] = {
	"copy.statements", "copy.without_batch",
	"copy.flush_1", "copy.flush_2_99", "copy.flush_100_999", "copy.flush_1000",
	"copy.round_full", "copy.round_bytes", "copy.round_last",
	"copy.round_1_relation", "copy.round_2_32_relations", "copy.round_33_relations",
	"owner.array", "owner.hash_64", "owner.hash_128_512", "owner.hash_1024_4096", "owner.hash_8192",
	"owner.1000_items", "owner.growths", "owner.released_in_copy", "owner.aborted_in_copy",
};

static uint64 counters[NUM_COUNTERS];
static bool reach = false;
static char *counters_value = "";

#define MAX_TRACKED			1024	/* relations in a round; more are taken for one */

/* COPY's current flush.  A round flushes each relation's buffer once. */
typedef struct Round
{
	int			copies;			/* depth of COPY FROM under way */
	int			rows;
	Size		bytes;
	int			relations;		/* with rows */
	int			tracked;
	Oid			seen[MAX_TRACKED];
	bool		any;			/* has this COPY flushed anything? */
} Round;

static Round current;

/*
 * COPY counts the bytes of its input, this module those of tuples.  So a flush
 * by size is recognized only roughly: 65535 bytes of input are hardly less
 * than this as tuples.  Rounds are also short if a row cannot be batched.
 */
#define MUCH_INPUT			32768
#define FULL_ROUND			1000

#ifdef HAVE_OWNER
static ResourceOwner last_owner = NULL;
static uint32 last_capacity = 0;

static void
look_at_owner(void)
{
	ResourceOwner largest = CurrentResourceOwner;
	uint32		capacity;

	if (largest == NULL)
		return;
	for (ResourceOwner owner = largest->parent; owner != NULL; owner = owner->parent)
		if (owner->capacity > largest->capacity)
			largest = owner;

	capacity = largest->capacity;
	counters[capacity == 0 ? OWNER_ARRAY :
			 capacity <= 64 ? OWNER_HASH_64 :
			 capacity <= 512 ? OWNER_HASH_128_512 :
			 capacity <= 4096 ? OWNER_HASH_1024_4096 : OWNER_HASH_8192]++;
	if (largest->narr + largest->nhash >= 1000)
		counters[OWNER_1000_ITEMS]++;

	if (largest != last_owner || capacity < last_capacity)
		last_capacity = 0;
	for (uint32 size = Max(last_capacity * 2, RESOWNER_HASH_INIT_SIZE); size <= capacity; size *= 2)
		counters[OWNER_GROWTH]++;
	last_owner = largest;
	last_capacity = capacity;
}
#else
#define look_at_owner() ((void) 0)
#endif

/* Registered during COPY, so that callbacks of extensions run as well. */
static void
count_release(ResourceReleasePhase phase, bool isCommit, bool isTopLevel, void *arg)
{
	if (phase == RESOURCE_RELEASE_AFTER_LOCKS)
		counters[isCommit ? OWNER_RELEASED : OWNER_ABORTED]++;
}

static void
end_round(bool last)
{
	if (current.rows > 0)
	{
		if (current.rows >= FULL_ROUND)
			counters[ROUND_FULL]++;
		else if (last)
			counters[ROUND_LAST]++;
		else if (current.bytes >= MUCH_INPUT)
			counters[ROUND_BYTES]++;
		counters[current.relations == 1 ? ROUND_1_RELATION :
				 current.relations <= 32 ? ROUND_2_32_RELATIONS : ROUND_33_RELATIONS]++;
	}
	current.rows = 0;
	current.bytes = 0;
	current.relations = 0;
	current.tracked = 0;
}

static bool
seen_in_round(Oid relid)
{
	for (int i = 0; i < current.tracked; i++)
		if (current.seen[i] == relid)
			return true;
	return false;
}

static void
count_flush(Relation rel, TupleTableSlot **slots, int nslots)
{
	Oid			relid = RelationGetRelid(rel);

	if (seen_in_round(relid))
		end_round(false);
	if (current.tracked < MAX_TRACKED)
		current.seen[current.tracked++] = relid;
	if (nslots == 0)
		return;

	current.any = true;
	current.rows += nslots;
	current.relations++;
	for (int i = 0; i < nslots; i++)
	{
		bool		should_free;
		HeapTuple	tuple = ExecFetchSlotHeapTuple(slots[i], false, &should_free);

		current.bytes += tuple->t_len;
		if (should_free)
			heap_freetuple(tuple);
	}
	counters[nslots == 1 ? FLUSH_1 :
			 nslots < 100 ? FLUSH_2_99 :
			 nslots < 1000 ? FLUSH_100_999 : FLUSH_1000]++;
}

/*
 * COPY's memory
 */

#define BETWEEN_LOOKS	16		/* single inserts */

static bool cost = false;
static Size copy_before;		/* bytes when the COPY FROM under way began */
static Size copy_most;			/* bytes at any look since then */
static int	single_inserts;

/* The bytes that chunks of a context and its children use. */
static Size
memory_used(MemoryContext context)
{
	MemoryContextCounters found = {0};
	Size		used;

	context->methods->stats(context, NULL, NULL, &found, false);
	used = found.totalspace - found.freespace;
	for (MemoryContext child = context->firstchild; child != NULL; child = child->nextchild)
		used += memory_used(child);
	return used;
}

static void
look_at_memory(void)
{
	if (cost && current.copies > 0)
		copy_most = Max(copy_most, memory_used(TopMemoryContext));
}

static void (*real_tuple_insert) (Relation rel, TupleTableSlot *slot, CommandId cid, int options,
								  struct BulkInsertStateData *bistate);

static void
looking_tuple_insert(Relation rel, TupleTableSlot *slot, CommandId cid, int options,
					 struct BulkInsertStateData *bistate)
{
	real_tuple_insert(rel, slot, cid, options, bistate);
	if (single_inserts++ % BETWEEN_LOOKS == 0)
		look_at_memory();
}

static void (*real_multi_insert) (Relation rel, TupleTableSlot **slots, int nslots, CommandId cid,
								  int options, struct BulkInsertStateData *bistate);

static void
counting_multi_insert(Relation rel, TupleTableSlot **slots, int nslots, CommandId cid,
					  int options, struct BulkInsertStateData *bistate)
{
	real_multi_insert(rel, slots, nslots, cid, options, bistate);
	look_at_memory();
	if (reach && current.copies > 0)
	{
		look_at_owner();
		count_flush(rel, slots, nslots);
	}
}

static void
replace_inserts(void)
{
	TableAmRoutine *heap = (TableAmRoutine *) GetHeapamTableAmRoutine();

	if (!protect(heap, sizeof(TableAmRoutine), PROT_READ | PROT_WRITE))
	{
		elog(LOG, "pgduel_probe cannot watch inserts: mprotect failed: %m");
		return;
	}
	real_tuple_insert = heap->tuple_insert;
	heap->tuple_insert = looking_tuple_insert;
	real_multi_insert = heap->multi_insert;
	heap->multi_insert = counting_multi_insert;
	protect(heap, sizeof(TableAmRoutine), PROT_READ);
}

static ProcessUtility_hook_type next_utility = NULL;

static void
watch_utility(PlannedStmt *pstmt, const char *query, bool read_only_tree, ProcessUtilityContext context,
			  ParamListInfo params, QueryEnvironment *environment, DestReceiver *dest, QueryCompletion *completion)
{
	ProcessUtility_hook_type next = next_utility ? next_utility : standard_ProcessUtility;
	bool		counted = reach && IsA(pstmt->utilityStmt, CopyStmt) && ((CopyStmt *) pstmt->utilityStmt)->is_from;

	if (!counted)
	{
		next(pstmt, query, read_only_tree, context, params, environment, dest, completion);
		return;
	}

	counters[COPY_FROM]++;
	current.any = false;
	if (current.copies++ == 0)
	{
		RegisterResourceReleaseCallback(count_release, NULL);
		if (cost)
			copy_before = copy_most = memory_used(TopMemoryContext);
		single_inserts = 0;
	}
	PG_TRY();
	{
		next(pstmt, query, read_only_tree, context, params, environment, dest, completion);
	}
	PG_FINALLY();
	{
		if (--current.copies == 0)
			UnregisterResourceReleaseCallback(count_release, NULL);
		end_round(true);
		if (!current.any)
			counters[COPY_NO_BATCH]++;
	}
	PG_END_TRY();
	if (cost && current.copies == 0)
		ereport(INFO, (errmsg("pgduel_probe: COPY used %.3f kB of memory", (copy_most - copy_before) / 1024.0)));
}

static const char *
show_counters(void)
{
	StringInfoData text;

	initStringInfo(&text);
	for (int i = 0; i < NUM_COUNTERS; i++)
		if (counters[i] > 0)
			appendStringInfo(&text, "%s%s=" UINT64_FORMAT, text.len > 0 ? " " : "", counter_names[i], counters[i]);
	return text.data;
}

/* ----------------------------------------------------------------
 *		The widest tuple of hash tables
 * ----------------------------------------------------------------
 */

/* A plan node whose rows are measured. */
typedef struct Measured
{
	PlanState  *node;
	ExecProcNodeMtd real;		/* what the node would have done */
	struct Measured *next;
	MemoryContextCallback forget;
} Measured;

static bool hash_tuples = false;
static Measured *measured = NULL;
static Size widest;				/* bytes in the table, since the outermost statement started */

static TupleTableSlot *
measure_row(PlanState *node)
{
	Measured   *found = measured;
	TupleTableSlot *slot;

	while (found->node != node)
		found = found->next;
	slot = found->real(node);
	if (!TupIsNull(slot))
	{
		bool		should_free;
		MinimalTuple tuple = ExecFetchSlotMinimalTuple(slot, &should_free);

		widest = Max(widest, MAXALIGN(HJTUPLE_OVERHEAD + tuple->t_len));
		if (should_free)
			heap_free_minimal_tuple(tuple);
	}
	return slot;
}

/* The node's memory is about to be freed, perhaps after an error. */
static void
forget_measured(void *entry)
{
	Measured  **link = &measured;

	while (*link != entry)
		link = &(*link)->next;
	*link = ((Measured *) entry)->next;
}

/*
 * To be called after a worker's nodes are initialized for parallel execution,
 * since a parallel-aware join then replaces its function.  In the leader, that
 * happens later.  So there the rows of such a join are not measured.
 */
static bool
measure_inputs(PlanState *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, HashState) && outerPlanState(node)->ExecProcNodeReal != measure_row)
	{
		PlanState  *input = outerPlanState(node);
		Measured   *entry = MemoryContextAlloc(node->state->es_query_cxt, sizeof(Measured));

		entry->node = input;
		entry->real = input->ExecProcNodeReal;
		entry->next = measured;
		measured = entry;
		entry->forget.func = forget_measured;
		entry->forget.arg = entry;
		MemoryContextRegisterResetCallback(node->state->es_query_cxt, &entry->forget);
		ExecSetExecProcNode(input, measure_row);
	}
	return planstate_tree_walker(node, measure_inputs, context);
}

/* ----------------------------------------------------------------
 *		Salted hash values
 * ----------------------------------------------------------------
 */

static int	hash_salt = 0;
static PGFunction *unsalted = NULL; /* by position in fmgr_builtins; NULL for other functions */

/* Is it a hash function of an operator class, without a seed? */
static bool
is_hash_function(const FmgrBuiltin *function)
{
	return function->nargs == 1 && strstr(function->funcName, "hash") != NULL &&
		strcmp(function->funcName, "hashhandler") != 0;
}

/* A function that a user made of a built-in one has its source, but another OID. */
static Oid
built_in(Oid function)
{
	bool		isnull;
	HeapTuple	tuple;

	if (function <= fmgr_last_builtin_oid)
		return function;
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", function);
	function = fmgr_internal_function(TextDatumGetCString(SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull)));
	ReleaseSysCache(tuple);
	return function;
}

static Datum
salted_hash(PG_FUNCTION_ARGS)
{
	Datum		value = unsalted[fmgr_builtin_oid_index[built_in(fcinfo->flinfo->fn_oid)]] (fcinfo);

	return hash_salt == 0 ? value : UInt32GetDatum(murmurhash32(DatumGetUInt32(value) ^ (uint32) hash_salt));
}

/*
 * No hook exists around hash functions, so their entries in the table of built-in functions are replaced, before the
 * first salt is set.  A compiler that knows the table by name removes stores to it, because it is constant.
 */
static bool
replace_hash_functions(int *salt, void **extra, GucSource source)
{
	const FmgrBuiltin *volatile table = fmgr_builtins;
	FmgrBuiltin *functions = (FmgrBuiltin *) table;
	Size		size = fmgr_nbuiltins * sizeof(FmgrBuiltin);

	if (*salt == 0 || unsalted != NULL)
		return true;
	if (!protect(functions, size, PROT_READ | PROT_WRITE))
	{
		GUC_check_errdetail("The table of functions cannot be changed: %m.");
		return false;
	}
	unsalted = MemoryContextAllocZero(TopMemoryContext, fmgr_nbuiltins * sizeof(PGFunction));
	for (int i = 0; i < fmgr_nbuiltins; i++)
		if (is_hash_function(&functions[i]))
		{
			unsalted[i] = functions[i].func;
			functions[i].func = salted_hash;
		}
	protect(functions, size, PROT_READ);
	return true;
}

/* ----------------------------------------------------------------
 *		CPU time, memory and pending interrupts of the executor
 * ----------------------------------------------------------------
 */

#define BETWEEN_REQUESTS	1000000 /* nanoseconds */

static int	cancel_after = 0;	/* milliseconds of CPU time, or 0 */
static int	depth = 0;			/* of calls of the executor under way */
static uint64 started;			/* when the outermost began */
static uint64 spent;			/* nanoseconds of all calls for the statement */
static Size memory_before;		/* bytes when the outermost started */
static Size memory_most;		/* bytes at the end of any since then */

static timer_t timer;
static bool has_timer = false;
static bool cancelable = false; /* the outermost statement */
static volatile uint64 requested_at;	/* CPU time of the last request that was pending; 0: none yet */
static volatile uint64 ignored; /* nanoseconds for which a request was pending, at most */
static volatile uint64 canceled_at; /* CPU time of the cancel; 0: none */

/* Costs of the workers of a process in nanoseconds, which are 0 between statements. */
typedef struct Workers
{
	pg_atomic_uint64 spent;		/* the sum */
	pg_atomic_uint64 ignored;	/* the maximum */
} Workers;

static Workers *workers_costs = NULL;	/* for each process */

static shmem_request_hook_type next_shmem_request = NULL;
static shmem_startup_hook_type next_shmem_startup = NULL;
static ExecutorStart_hook_type next_executor_start = NULL;
static ExecutorRun_hook_type next_executor_run = NULL;
static ExecutorFinish_hook_type next_executor_finish = NULL;
static ExecutorEnd_hook_type next_executor_end = NULL;

static void
request_shmem(void)
{
	if (next_shmem_request)
		next_shmem_request();
	RequestAddinShmemSpace(mul_size(MaxBackends, sizeof(Workers)));
}

static void
start_shmem(void)
{
	bool		found;

	if (next_shmem_startup)
		next_shmem_startup();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	workers_costs = ShmemInitStruct("pgduel_probe", mul_size(MaxBackends, sizeof(Workers)), &found);
	for (int i = 0; i < MaxBackends && !found; i++)
	{
		pg_atomic_init_u64(&workers_costs[i].spent, 0);
		pg_atomic_init_u64(&workers_costs[i].ignored, 0);
	}
	LWLockRelease(AddinShmemInitLock);
}

/* The costs of a process's workers, or those that a worker adds to; NULL for a process without any. */
static Workers *
costs_of_workers(void)
{
	PGPROC	   *leader = MyProc->lockGroupLeader ? MyProc->lockGroupLeader : MyProc;
	ptrdiff_t	number = leader - ProcGlobal->allProcs;

	return workers_costs != NULL && number < MaxBackends ? &workers_costs[number] : NULL;
}

/* Workers of a statement that failed may have left something. */
static void
forget_cost(void)
{
	Workers    *workers = costs_of_workers();

	spent = ignored = canceled_at = 0;
	if (workers && !IsParallelWorker())
	{
		pg_atomic_write_u64(&workers->spent, 0);
		pg_atomic_write_u64(&workers->ignored, 0);
	}
}

static void
add_to_workers(Workers *workers)
{
	uint64		most = pg_atomic_read_u64(&workers->ignored);

	pg_atomic_fetch_add_u64(&workers->spent, spent);
	while (most < ignored && !pg_atomic_compare_exchange_u64(&workers->ignored, &most, ignored))
		;
}

static uint64
cpu_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64) now.tv_sec * 1000000000 + now.tv_nsec;
}

/*
 * The handler of the timer.  ProcessInterrupts() clears InterruptPending, so
 * if that is still set, the last request has not been processed.  Requests of
 * others cannot be told apart, but the next check clears them all.
 */
static void
request_interrupt(int number)
{
	int			saved_errno = errno;
	uint64		now;

	if (depth == 0)				/* the last call has just ended */
		return;
	now = cpu_time();
	if (requested_at != 0 && InterruptPending)
		ignored = Max(ignored, now - requested_at);
	else
		requested_at = now;
	InterruptPending = true;

	if (cancelable && canceled_at == 0 && spent + now - started >= (uint64) cancel_after * 1000000)
	{
		canceled_at = now;
		raise(SIGINT);			/* as pg_cancel_backend() */
	}
	errno = saved_errno;
}

static void
set_timer(long nanoseconds)
{
	struct itimerspec each = {{0, nanoseconds}, {0, nanoseconds}};

	timer_settime(timer, 0, &each, NULL);
}

/* The timer measures elapsed time, because one of CPU time would be as coarse as the kernel's tick. */
static void
make_timer(void)
{
	struct sigaction action = {.sa_handler = request_interrupt, .sa_flags = SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};

	sigemptyset(&action.sa_mask);
	sigaction(SIGPROF, &action, NULL);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
		elog(ERROR, "pgduel_probe cannot create a timer: %m");
	has_timer = true;
}

static void
enter_executor(void)
{
	if (cost && !has_timer)
		make_timer();
	if (depth++ > 0 || !cost)
		return;
	started = cpu_time();
	requested_at = 0;
	set_timer(BETWEEN_REQUESTS);
}

static void
leave_executor(void)
{
	uint64		now;

	if (--depth > 0 || !cost)
		return;
	set_timer(0);
	now = cpu_time();
	spent += now - started;
	if (requested_at != 0 && InterruptPending)
		ignored = Max(ignored, now - requested_at);
}

/* Report how long a cancel took, when it raised its error, or the statement has ended nevertheless. */
static void
report_cancel(void)
{
	uint64		since = canceled_at;

	if (depth > 0 || since == 0)
		return;
	canceled_at = 0;
	ereport(INFO, (errmsg("pgduel_probe: the cancel took %.6f ms of CPU time", (cpu_time() - since) / 1e6)));
}

static void
watch_executor_start(QueryDesc *queryDesc, int eflags)
{
	if (depth == 0)
	{
		forget_cost();
		widest = 0;
	}
	if (depth == 0 && cost)
		memory_before = memory_most = memory_used(TopMemoryContext);
	if (depth == 0)
		cancelable = cancel_after > 0 && queryDesc->instrument_options != 0;
	enter_executor();
	PG_TRY();
	{
		if (next_executor_start)
			next_executor_start(queryDesc, eflags);
		else
			standard_ExecutorStart(queryDesc, eflags);
	}
	PG_FINALLY();
	{
		leave_executor();
	}
	PG_END_TRY();
}

static void
#if PG_VERSION_NUM >= 180000
watch_executor_run(QueryDesc *queryDesc, ScanDirection direction, uint64 count)
#define RUN_ARGUMENTS queryDesc, direction, count
#else
watch_executor_run(QueryDesc *queryDesc, ScanDirection direction, uint64 count, bool once)
#define RUN_ARGUMENTS queryDesc, direction, count, once
#endif
{
	if (hash_tuples)
		measure_inputs(queryDesc->planstate, NULL);
	enter_executor();
	PG_TRY();
	{
		if (next_executor_run)
			next_executor_run(RUN_ARGUMENTS);
		else
			standard_ExecutorRun(RUN_ARGUMENTS);
	}
	PG_CATCH();
	{
		leave_executor();
		report_cancel();
		PG_RE_THROW();
	}
	PG_END_TRY();
	leave_executor();
}

static void
watch_executor_finish(QueryDesc *queryDesc)
{
	enter_executor();
	PG_TRY();
	{
		if (next_executor_finish)
			next_executor_finish(queryDesc);
		else
			standard_ExecutorFinish(queryDesc);
		if (cost)				/* ExecutorEnd frees the memory */
			memory_most = Max(memory_most, memory_used(TopMemoryContext));
	}
	PG_FINALLY();
	{
		leave_executor();
	}
	PG_END_TRY();
}

/*
 * Report the statement's cost, or add a worker's to its leader's.  A
 * worker's message that it has ended follows its ExecutorEnd, and a leader
 * waits for that message before its own ExecutorEnd returns.
 */
static void
report_cost(void)
{
	Workers    *workers = costs_of_workers();
	uint64		of_workers = 0;

	if (IsParallelWorker())
	{
		if (workers)
			add_to_workers(workers);
		return;
	}
	if (workers)
	{
		spent += pg_atomic_exchange_u64(&workers->spent, 0);
		of_workers = pg_atomic_exchange_u64(&workers->ignored, 0);
	}
	ereport(INFO, (errmsg("pgduel_probe: executor used %.6f ms of CPU time and %.3f kB of memory,"
						  " and left interrupts pending for %.6f ms of CPU time",
						  spent / 1e6, (memory_most - memory_before) / 1024.0, Max(ignored, of_workers) / 1e6)));
}

static void
watch_executor_end(QueryDesc *queryDesc)
{
	if (reach)
		look_at_owner();
	enter_executor();
	PG_TRY();
	{
		if (next_executor_end)
			next_executor_end(queryDesc);
		else
			standard_ExecutorEnd(queryDesc);
	}
	PG_FINALLY();
	{
		leave_executor();
	}
	PG_END_TRY();
	report_cancel();
	if (cost && depth == 0)
		report_cost();
	if (hash_tuples && depth == 0)
		ereport(INFO, (errmsg("pgduel_probe: widest tuple of hash tables has %zu bytes", widest)));
}

static void
install_executor_hooks(void)
{
	next_shmem_request = shmem_request_hook;
	shmem_request_hook = request_shmem;
	next_shmem_startup = shmem_startup_hook;
	shmem_startup_hook = start_shmem;
	next_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = watch_executor_start;
	next_executor_run = ExecutorRun_hook;
	ExecutorRun_hook = watch_executor_run;
	next_executor_finish = ExecutorFinish_hook;
	ExecutorFinish_hook = watch_executor_finish;
	next_executor_end = ExecutorEnd_hook;
	ExecutorEnd_hook = watch_executor_end;
}

void
_PG_init(void)
{
	DefineCustomBoolVariable("pgduel_probe.reach", "Counts paths taken in this session.", NULL,
							 &reach, false, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("pgduel_probe.counters", "Shows the counters as name=number.", NULL,
							   &counters_value, "", PGC_INTERNAL, GUC_NOT_IN_SAMPLE | GUC_DISALLOW_IN_FILE,
							   NULL, NULL, show_counters);
	DefineCustomBoolVariable("pgduel_probe.cost", "Reports the executor's CPU time and memory of each statement.", NULL,
							 &cost, false, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pgduel_probe.cancel_after", "Cancels EXPLAIN (ANALYZE) after this CPU time, if not 0.", NULL,
							&cancel_after, 0, 0, INT_MAX, PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomBoolVariable("pgduel_probe.hash_tuples", "Reports the widest tuple of each statement's hash tables.", NULL,
							 &hash_tuples, false, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pgduel_probe.hash_salt", "Is mixed into the values of hash functions, unless it is 0.", NULL,
							&hash_salt, 0, 0, INT_MAX, PGC_USERSET, 0, replace_hash_functions, NULL, NULL);
	MarkGUCPrefixReserved("pgduel_probe");

	install_handlers();
	replace_inserts();
	next_utility = ProcessUtility_hook;
	ProcessUtility_hook = watch_utility;
	install_executor_hooks();
}

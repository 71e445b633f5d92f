/*
 * Execution of the join by several processes, which begin, pause and leave as the input says.
 */
#include "postgres.h"

#include "parallel_join/switching_phases.h"
#include "src/backend/executor/nodeHashjoin.c"

#include "backend_stubs.h"
#include "parallel_join/files.h"
#include "parallel_join/memory.h"
#include "parallel_join/parallel_join.h"
#include "parallel_join/processes.h"

typedef struct Participant
{
	Execution	execution;
	Reader		inner_reader;
	Reader		outer_reader;
	HashInstrumentation instrumentation;
	bool		left_early;
} Participant;

static const Settings *settings;
static bool is_last_scan;
static ParallelHashJoinState shared_state;
static Participant participants[MAX_PROCESSES];

/* shm_toc.c: there is one entry only */

void *
shm_toc_allocate(shm_toc *toc, Size nbytes)
{
	if (nbytes != sizeof(shared_state))
		fatal("%zu bytes of shared memory are wanted", nbytes);
	memset(&shared_state, 0x55, sizeof(shared_state));
	return &shared_state;
}

void
shm_toc_insert(shm_toc *toc, uint64 key, void *address)
{
}

void *
shm_toc_lookup(shm_toc *toc, uint64 key, bool noError)
{
	return &shared_state;
}

/* execProcnode.c, execAmi.c */

void
ExecSetExecProcNode(PlanState *node, ExecProcNodeMtd function)
{
	node->ExecProcNode = function;
}

Node *
MultiExecProcNode(PlanState *node)
{
	HashState  *hash = castNode(HashState, node);
	HashJoinState *join = &participants[running_process()].execution.join;

	if (node->chgParam)
		ExecReScan(node);
	MultiExecHash(hash);
	check_built(hash->hashtable, HJ_FILL_INNER(join));
	return NULL;
}

/* Shared positions of scans are reset elsewhere. */
void
ExecReScan(PlanState *node)
{
	if (IsA(node, HashJoinState))
		ExecReScanHashJoin(castNode(HashJoinState, node));
	node->chgParam = NULL;
}

void
on_read(Reader *reader)
{
	maybe_switch();
}

/* Processes */

static void
set_up_participant(int number)
{
	Participant *participant = &participants[number];
	Execution  *execution = &participant->execution;

	set_up_reader(&participant->inner_reader, &inner);
	set_up_reader(&participant->outer_reader, &outer);
	set_up_execution(execution, &participant->outer_reader, &participant->inner_reader);
	memset(&participant->instrumentation, 0, sizeof(participant->instrumentation));
	execution->hash.hinstrument = &participant->instrumentation;
	execution->join.hj_JoinState = HJ_BUILD_HASHTABLE;
}

static bool
is_due(int number)
{
	const Behavior *behavior = &settings->behaviors[number];

	switch (behavior->beginning)
	{
		case AFTER_POINTS:
			return passed_points() >= behavior->when;
		case IN_BUILD_PHASE:
			return shared_state.build_barrier.phase >= behavior->when;
		case IN_GROWTH_PHASE:
			return shared_state.grow_batches_barrier.phase >= behavior->when;
		case IN_SHRINK_PHASE:
			return shared_state.shrink_bloom_barrier.phase >= behavior->when;
		case AT_ONCE:
		case NEVER:
			break;
	}
	return true;
}

/* Return rows until there are no more, or no more are wanted. */
static void
read_rows(Participant *participant, const Behavior *behavior)
{
	PlanState  *join = &participant->execution.join.js.ps;

	for (int i = 0; i < behavior->limit; i++)
	{
		TupleTableSlot *slot;

		if (i == behavior->pause)
			wait_for_others();
		slot = ExecProcNode(join);
		if (TupIsNull(slot))
			return;
		maybe_switch();
	}
	participant->left_early = true;
}

static void
detach(Participant *participant)
{
	Execution  *execution = &participant->execution;

	ExecShutdownHash(&execution->hash);
	ExecShutdownHashJoin(&execution->join);
}

/* Between two scans, the leader stays attached. */
static void
run_process(int number)
{
	Participant *participant = &participants[number];
	const Behavior *behavior = &settings->behaviors[number];

	participant->left_early = false;
	if (behavior->beginning == NEVER)
		return;
	CurrentMemoryContext = (MemoryContext) &participant->execution.query_pieces;
	read_rows(participant, behavior);
	if (behavior->stays)
		wait_for_others();
	if (is_last_scan || number != LEADER)
		detach(participant);
	CurrentMemoryContext = TopMemoryContext;
}

/* Free what the process has at the end of its planned. */
static void
clean_up_participant(int number)
{
	Execution  *execution = &participants[number].execution;

	if (execution->join.hj_HashTable)
		ExecHashTableDestroy(execution->join.hj_HashTable);
	ExecClearTuple(&execution->saved_slot.base);
	ExecClearTuple(&execution->hash_slot.base);
	MemoryContextReset((MemoryContext) &execution->query_pieces);
}

/* Scans */

static void
begin_first_scan(ParallelContext *context)
{
	set_up_participant(LEADER);
	ExecHashJoinInitializeDSM(&participants[LEADER].execution.join, context);
}

static void
begin_next_scan(ParallelContext *context)
{
	static Bitmapset parameters = {.type = T_Bitmapset};
	Participant *leader = &participants[LEADER];
	Execution  *execution = &leader->execution;

	execution->join.js.ps.chgParam = execution->hash.ps.chgParam = &parameters;
	leader->inner_reader.state.chgParam = leader->outer_reader.state.chgParam = &parameters;
	enter_process(LEADER);
	ExecHashJoinReInitializeDSM(&execution->join, context);
	leave_process(LEADER);
}

static void
begin_workers(void)
{
	ParallelWorkerContext context = {0};

	for (int i = LEADER + 1; i < settings->nprocesses; i++)
	{
		set_up_participant(i);
		ExecHashJoinInitializeWorker(&participants[i].execution.join, &context);
	}
}

/* Return whether each row of the result was returned. */
static bool
is_complete(void)
{
	bool		anyone = false;

	for (int i = 0; i < settings->nprocesses; i++)
	{
		if (participants[i].left_early)
			return false;
		if (settings->behaviors[i].beginning != NEVER)
			anyone = true;
	}
	return anyone;
}

/*
 * Check that no shared memory is left after a complete scan. Without an inner row, the first batch's buckets are left
 * if nobody attached to that batch.
 */
static void
check_memory(bool complete)
{
	if (complete && (shared_state.total_tuples > 0 || HJ_FILL_OUTER(&participants[LEADER].execution.join)) &&
		shared_memory() > 0)
		fatal("%zu bytes of shared memory are left", shared_memory());
	free_shared_memory();
}

void
run_join(const Settings *drawn, const uint8_t *choices, size_t nchoices)
{
	ParallelContext context = {.nworkers = drawn->nprocesses - 1, .seg = (dsm_segment *) &shared_state};
	Schedule	schedule = {drawn->nprocesses, run_process, is_due, choices, nchoices};
	bool		complete = false;

	settings = drawn;
	set_up_processes();
	for (int i = 0; i < settings->nscans; i++)
	{
		is_last_scan = i == settings->nscans - 1;
		if (i == 0)
			begin_first_scan(&context);
		else
		{
			begin_next_scan(&context);
			check_memory(complete);
		}
		begin_workers();
		inner.next = outer.next = 0;
		forget_result();
		run_processes(&schedule);
		complete = is_complete();
		check_result(complete);
		for (int j = LEADER + 1; j < settings->nprocesses; j++)
			clean_up_participant(j);
	}
	clean_up_participant(LEADER);
	check_memory(complete);
	check_processes();
	check_files();
}

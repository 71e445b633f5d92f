/*
 * Global variables of processes, latches and lightweight locks. Where these functions let another process run, the
 * server does so, too.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "failure.h"
#include "miscadmin.h"
#include "parallel_join/processes.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/memutils.h"

/* What the server keeps in global variables of a process, while it does not run */
typedef struct Globals
{
	MemoryContext context;
	ConditionVariable *sleep_target;
	int			nlocks;			/* held by it */
} Globals;

static Globals globals[MAX_PROCESSES];
static PGPROC procs[MAX_PROCESSES];
static PROC_HDR header = {.allProcs = procs};

PROC_HDR   *ProcGlobal = &header;
PGPROC	   *MyProc;
ProcNumber	MyProcNumber;
struct Latch *MyLatch;
int			ParallelWorkerNumber;

/* If an interrupt is pending, CHECK_FOR_INTERRUPTS() calls a function, where another process may run. */
volatile sig_atomic_t InterruptPending = true;

void
ProcessInterrupts(void)
{
	maybe_switch();
}

void
set_up_processes(void)
{
	memset(procs, 0, sizeof(procs));
	for (int i = 0; i < MAX_PROCESSES; i++)
		globals[i] = (Globals) {.context = TopMemoryContext};
}

void
check_processes(void)
{
	for (int i = 0; i < MAX_PROCESSES; i++)
	{
		if (globals[i].nlocks != 0)
			fatal("a process ends with %d locks", globals[i].nlocks);
		if (globals[i].sleep_target != NULL)
			fatal("a process ends while it waits for a condition variable");
	}
}

void
enter_process(int number)
{
	MyProc = &procs[number];
	MyProcNumber = number;
	MyLatch = &procs[number].procLatch;
	ParallelWorkerNumber = number - 1;
	CurrentMemoryContext = globals[number].context;
	exchange_sleep_target(globals[number].sleep_target);
}

void
leave_process(int number)
{
	globals[number].context = CurrentMemoryContext;
	globals[number].sleep_target = exchange_sleep_target(NULL);
}

/* latch.c */

void
SetLatch(Latch *latch)
{
	latch->is_set = true;
	maybe_switch();
}

void
ResetLatch(Latch *latch)
{
	latch->is_set = false;
	maybe_switch();
}

static bool
is_set(void *latch)
{
	return ((Latch *) latch)->is_set;
}

int
WaitLatch(Latch *latch, int wakeEvents, long timeout, uint32 wait_event_info)
{
	if (globals[running_process()].nlocks > 0)
		fatal("a process waits for a latch while it holds a lock");
	wait_until(is_set, latch, "waits for its latch");
	return WL_LATCH_SET;
}

/*
 * lwlock.c: shared locks are exclusive, too, which only takes turns of readers away. The state is 1 more than the
 * number of the owner.
 */

void
LWLockInitialize(LWLock *lock, int tranche_id)
{
	pg_atomic_init_u32(&lock->state, 0);
}

static bool
is_free(void *lock)
{
	return pg_atomic_read_u32(&((LWLock *) lock)->state) == 0;
}

bool
LWLockAcquire(LWLock *lock, LWLockMode mode)
{
	int			me = running_process();
	bool		waits = !is_free(lock);

	if (pg_atomic_read_u32(&lock->state) == me + 1)
		fatal("a process takes a lock twice");
	wait_until(is_free, lock, "waits for a lock");
	pg_atomic_write_u32(&lock->state, me + 1);
	globals[me].nlocks++;
	maybe_switch();
	return !waits;
}

void
LWLockRelease(LWLock *lock)
{
	int			me = running_process();

	if (pg_atomic_read_u32(&lock->state) != me + 1)
		fatal("a process releases a lock that it does not hold");
	pg_atomic_write_u32(&lock->state, 0);
	globals[me].nlocks--;
	maybe_switch();
}

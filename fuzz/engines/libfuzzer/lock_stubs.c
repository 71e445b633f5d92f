/*
 * Stand-ins for what resowner.c calls besides errors and memory: the harness is told of locks that are handed over;
 * what does not matter to an owner (predicate locks, exit callbacks) does nothing.
 */
#include "postgres.h"

#include "lock_stubs.h"
#include "storage/ipc.h"
#include "storage/predicate.h"
#include "storage/proc.h"

/* lock.c, proc.c, predicate.c, ipc.c */

void
LockReassignCurrentOwner(LOCALLOCK **locallocks, int nlocks)
{
	on_locks(true, locallocks, nlocks);
}

void
LockReleaseCurrentOwner(LOCALLOCK **locallocks, int nlocks)
{
	on_locks(false, locallocks, nlocks);
}

void
ProcReleaseLocks(bool isCommit)
{
}

void
ReleasePredicateLocks(bool isCommit, bool isReadOnlySafe)
{
}

void
on_shmem_exit(pg_on_exit_callback function, Datum arg)
{
}

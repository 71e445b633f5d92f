/*
 * Stubs of functions that resowner.c calls, other than errors and memory. Calls that hand over locks are passed to
 * the harness. Others (predicate locks, exit callbacks) have no effect, because they do not matter to owners.
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

/*
 * The server's condition variables.
 */
#include "postgres.h"

#include "parallel_join/processes.h"
#include "parallel_join/switching_locks.h"
#include "src/backend/storage/lmgr/condition_variable.c"

/* Set which condition variable the running process is prepared to wait for. Return the one until now. */
ConditionVariable *
exchange_sleep_target(ConditionVariable *target)
{
	ConditionVariable *old = cv_sleep_target;

	cv_sleep_target = target;
	return old;
}

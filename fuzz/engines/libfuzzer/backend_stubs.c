/*
 * Stand-ins for the parts of the backend that resowner.c calls.
 *
 * They are small, but do what their namesakes promise: memory comes from malloc, so that AddressSanitizer watches
 * it; ereport(ERROR) leaves by longjmp to the nearest catcher, as PG_TRY does; a failed assertion aborts. What does
 * not matter to an owner (predicate locks, exit callbacks) does nothing.
 */
#include "postgres.h"

#include <setjmp.h>

#include "backend_stubs.h"
#include "storage/ipc.h"
#include "storage/predicate.h"
#include "storage/proc.h"
#include "utils/memutils.h"

#undef vsnprintf
#undef vfprintf
#undef fprintf

#define MESSAGE_SIZE 256

MemoryContext TopMemoryContext = NULL;

static long allocations = 0;
static sigjmp_buf *catcher = NULL;
static int	level;
static char message[MESSAGE_SIZE];

const char *
error_of(void (*call) (void *), void *arg)
{
	sigjmp_buf	here;
	sigjmp_buf *outer = catcher;
	volatile bool failed = true;

	catcher = &here;
	if (sigsetjmp(here, 0) == 0)
	{
		call(arg);
		failed = false;
	}
	catcher = outer;
	return failed ? message : NULL;
}

long
stub_allocations(void)
{
	return allocations;
}

/* elog.c */

bool
errstart(int elevel, const char *domain)
{
	level = elevel;
	return true;
}

bool
errstart_cold(int elevel, const char *domain)
{
	return errstart(elevel, domain);
}

int
errmsg_internal(const char *format,...)
{
	va_list		args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	return 0;
}

void
errfinish(const char *filename, int lineno, const char *funcname)
{
	if (level == WARNING)
		on_warning(message);
	if (level < ERROR)
		return;
	if (level > ERROR || catcher == NULL)
		fatal("unexpected error: %s", message);
	siglongjmp(*catcher, 1);
}

/* mcxt.c, psprintf.c */

void *
MemoryContextAlloc(MemoryContext context, Size size)
{
	void	   *result = malloc(size);

	if (result == NULL)
		fatal("out of memory");
	allocations++;
	return result;
}

void *
MemoryContextAllocZero(MemoryContext context, Size size)
{
	return memset(MemoryContextAlloc(context, size), 0, size);
}

void
pfree(void *pointer)
{
	allocations--;
	free(pointer);
}

char *
psprintf(const char *format,...)
{
	char	   *result = MemoryContextAlloc(NULL, MESSAGE_SIZE);
	va_list		args;

	va_start(args, format);
	vsnprintf(result, MESSAGE_SIZE, format, args);
	va_end(args);
	return result;
}

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

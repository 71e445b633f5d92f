/*
 * Failures that tests plant, named by the environment.
 */
#include "postgres.h"

#include <signal.h>
#include <unistd.h>

#include "queries/queries.h"

uint64
plant_failure(void)
{
	static uint64 calls = 0;
	const char *kind = getenv("PGDUEL_CANARY");
	char	   *volatile freed;

	if (kind == NULL)
		return 0;
	if (strcmp(kind, "rows") == 0)
		return calls++;
	if (strcmp(kind, "error") == 0)
		elog(ERROR, "a planted error");
	if (strcmp(kind, "warning") == 0)
		elog(WARNING, "a planted warning");
	if (strcmp(kind, "assertion") == 0)
		appendStringInfoString(NULL, "a failed assertion of the server");
	if (strcmp(kind, "memory") == 0)
	{
		freed = malloc(1);
		free(freed);
		*freed = 0;
	}
	if (strcmp(kind, "loop") == 0)
		for (;;)
			calls++;
	if (strcmp(kind, "signal") == 0)
		kill(getpid(), SIGKILL);
	if (strcmp(kind, "exit") == 0)
		exit(0);
	return 0;
}

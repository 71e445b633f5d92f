/*-------------------------------------------------------------------------
 *
 * pgduel_edges.c
 *		Edge counters of a session in a file that the fuzzer maps, too.
 *
 * Only sessions of cases load this module, so background processes and
 * pgduel's own sessions do not count.  A parallel worker loads its leader's
 * libraries, then takes over its leader's settings.  So it counts in the same
 * file.  That is why the setting's assignment maps the file, not _PG_init.
 *
 * fuzz/servers/modules/pgduel_edges.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "fmgr.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

/* Of fuzz/servers/edges/regions.c, in builds of flavor guided. */
extern int	pgduel_share_counters(int file) __attribute__((weak));

static char *counter_file = NULL;
static bool counting = false;

PGDLLEXPORT void _PG_init(void);

/* Map the file once; its name is relative to the data directory. */
static void
assign_file(const char *name, void *extra)
{
	int			file;

	if (counting || name == NULL || *name == '\0')
		return;
	if (pgduel_share_counters == NULL)
		elog(FATAL, "pgduel_edges: this server counts no edges");
	file = open(name, O_RDWR | O_CLOEXEC);
	if (file < 0 || pgduel_share_counters(file) < 0)
		elog(FATAL, "pgduel_edges: cannot map %s: %m", name);
	counting = true;
}

void
_PG_init(void)
{
	DefineCustomStringVariable("pgduel_edges.file",
							   "File with the counters of this session's edges.",
							   NULL,
							   &counter_file,
							   "",
							   PGC_SUSET,
							   GUC_NOT_IN_SAMPLE,
							   NULL,
							   assign_file,
							   NULL);
	MarkGUCPrefixReserved("pgduel_edges");
}

/*
 * Inputs of libFuzzer in a standalone backend, each in a fork of it.
 *
 * The SQL function pgduel_fuzz runs libFuzzer in the backend that calls it. The backend's shared memory becomes private
 * before the first fork, so that no fork changes what the next one sees. Its counters of edges become shared, so that
 * libFuzzer sees what a fork reached.
 *
 * Any end of a fork but the expected one is a failure. Where the fork itself reports it (a sanitizer, a failed assertion
 * or check), libFuzzer's handlers write the input there.
 */
#include "postgres.h"

#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fmgr.h"
#include "in_process.h"
#include "storage/pg_shmem.h"
#include "storage/proc.h"
#include "utils/elog.h"

#undef fprintf
#undef vsnprintf

#define SECONDS		20			/* of CPU time for a fork */
#define PAGE		4096

PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(pgduel_fuzz);

/* Of fuzz/servers/edges/regions.c, in the server */
extern int	pgduel_share_counters(int file);

/* libFuzzer's own interface */
extern int	LLVMFuzzerRunDriver(int *argc, char ***argv, int (*run) (const uint8_t *data, size_t size));
extern void __sanitizer_cov_8bit_counters_init(uint8_t *start, uint8_t *stop);
extern void __sanitizer_cov_pcs_init(const uintptr_t *start, const uintptr_t *stop);

/* What a fork does, in memory that it shares */
static struct
{
	bool		ended;
	char		doing[16384];
}		   *progress;

/* Replace the server's shared memory by a private copy at the same address. Pages of zeros stay untouched. */
static void
make_memory_private(void)
{
	static const char zeros[PAGE];
	uintptr_t	inside = (uintptr_t) ProcGlobal;
	uintptr_t	start = 0;
	uintptr_t	end = 0;
	char		line[1024];
	FILE	   *maps = fopen("/proc/self/maps", "r");
	char	   *copy;

	while (maps && !(start <= inside && inside < end) && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &start, &end) != 2)
			end = 0;
	if (!(start <= inside && inside < end))
		fatal("the shared memory is in no mapping");
	fclose(maps);
	copy = mmap(NULL, end - start, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		fatal("no memory for a copy of the shared memory");
	for (uintptr_t page = start; page < end; page += PAGE)
		if (memcmp((void *) page, zeros, PAGE) != 0)
			memcpy(copy + (page - start), (void *) page, PAGE);
	if (mremap(copy, end - start, end - start, MREMAP_MAYMOVE | MREMAP_FIXED, (void *) start) == MAP_FAILED)
		fatal("cannot replace the shared memory");
}

/* Count edges in shared memory from now on, and register the counters with libFuzzer, with made-up addresses. */
static void
share_counters(size_t size)
{
	int			file = memfd_create("counters", 0);
	uint8_t    *counters = MAP_FAILED;
	uintptr_t  *pcs = calloc(size, 2 * sizeof(uintptr_t));

	if (file >= 0 && ftruncate(file, size) == 0)
		counters = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (pcs == NULL || counters == MAP_FAILED || pgduel_share_counters(file) < 0)
		fatal("cannot share the counters of edges");
	for (size_t i = 0; i < size; i++)
		pcs[2 * i] = i + 1;
	__sanitizer_cov_8bit_counters_init(counters, counters + size);
	__sanitizer_cov_pcs_init(pcs, pcs + 2 * size);
}

void
describe(const char *format,...)
{
	va_list		args;

	va_start(args, format);
	vsnprintf(progress->doing, sizeof(progress->doing), format, args);
	va_end(args);
}

/* A warning or an error is a failure, where it is raised: exit_on_error makes errors fatal. Others are not printed. */
static void
judge_message(ErrorData *message)
{
	message->output_to_server = false;
	if (message->elevel >= WARNING)
		fatal("%s: %s, raised in %s, %s",
			  message->elevel < ERROR ? error_severity(message->elevel) : unpack_sql_state(message->sqlerrcode),
			  message->message, message->funcname, message->filename);
}

static void
limit_fork(void)
{
	struct itimerval limit = {.it_value.tv_sec = SECONDS};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPROF, SIG_DFL);
	setitimer(ITIMER_PROF, &limit, NULL);
	emit_log_hook = judge_message;
}

static int
run_in_fork(const uint8_t *data, size_t size)
{
	int			status;
	pid_t		child;

	if (size == 0)				/* libFuzzer's first call, of which it keeps nothing */
		return 0;
	memset(progress, 0, offsetof(typeof(*progress), doing) + 1);
	child = fork();
	if (child < 0)
		fatal("cannot fork");
	if (child == 0)
	{
		limit_fork();
		run_input(data, size);
		progress->ended = true;
		_exit(0);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			fatal("a fork is lost");
	if (progress->ended && status == 0)
		return 0;

	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF)
		fatal("a process takes more than %d s of CPU time\n%s", SECONDS, progress->doing);
	if (WIFSIGNALED(status))
		fatal("a process ends by signal %d\n%s", WTERMSIG(status), progress->doing);
	if (WEXITSTATUS(status) == 0)
		fatal("a process ends itself\n%s", progress->doing);
	fprintf(stderr, "\n%s\n", progress->doing);
	_exit(WEXITSTATUS(status)); /* the fork has reported the failure */
}

/* Return the arguments of libFuzzer: those for all inputs in forks, and the caller's, a line each. */
static char **
arguments(int *count)
{
	static char *const own[] = {"-rss_limit_mb=0", "-malloc_limit_mb=0", "-detect_leaks=0",
		"-entropic=0",			/* its bookkeeping costs more than queries, with so many edges */
		"-use_counters=0"};		/* how often an edge is taken follows from numbers of rows */
	const char *given = getenv("PGDUEL_ARGUMENTS");
	char	   *rest = given ? strdup(given) : NULL;
	char	  **list = rest ? calloc(strlen(rest) + lengthof(own) + 2, sizeof(char *)) : NULL;

	if (list == NULL)
		fatal("only pgduel starts it, with arguments");
	*count = 0;
	list[(*count)++] = strsep(&rest, "\n");
	for (int i = 0; i < lengthof(own); i++)
		list[(*count)++] = own[i];
	while (rest)
		list[(*count)++] = strsep(&rest, "\n");
	return list;
}

/* End the process without a shutdown of the server, whose data are deleted. */
static void
end_at_once(int status, void *unused)
{
	fflush(NULL);
	_exit(status);
}

/* Take the backend's handlers of signals away, because libFuzzer keeps those that exist. */
static void
reset_signals(void)
{
	static const int signals[] = {SIGALRM, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

	for (int i = 0; i < lengthof(signals); i++)
		signal(signals[i], SIG_DFL);
}

/* Run libFuzzer, with the size of the server's counters in bytes. The process ends. */
Datum
pgduel_fuzz(PG_FUNCTION_ARGS)
{
	int			count;
	char	  **list = arguments(&count);

	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (progress == MAP_FAILED)
		fatal("no shared memory");
	shmctl(shmget(UsedShmemSegID, 0, 0), IPC_RMID, NULL);	/* as soon as the process ends */
	make_memory_private();
	share_counters(PG_GETARG_INT32(0));
	reset_signals();
	on_exit(end_at_once, NULL);
	exit(LLVMFuzzerRunDriver(&count, &list, run_in_fork));
}

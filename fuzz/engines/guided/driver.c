/*-------------------------------------------------------------------------
 *
 * driver.c
 *		libFuzzer, which gives its inputs to a worker of pgduel and sees the
 *		edges that they reach in a server.
 *
 * It maps the counter file that the server's sessions write to, and registers
 * its regions as if they were its own.  So libFuzzer clears them before each
 * input, and reads them afterwards.  Its own code has no counters.
 *
 * An input goes to a pipe as its length (4 bytes) and its bytes.  Then the
 * process waits for one byte from another pipe: KEPT if libFuzzer may keep the
 * input.  When that pipe is closed, the process ends.
 *
 * The environment has the descriptors of the pipes, the file and its regions:
 * PGDUEL_PIPES="ANSWERS INPUTS", PGDUEL_COUNTERS=DESCRIPTOR, and
 * PGDUEL_REGIONS="OFFSET EDGES OFFSET EDGES ...".
 *
 * fuzz/engines/guided/driver.c
 *
 *-------------------------------------------------------------------------
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEPT 'k'

static int	answers,
			inputs;

/* As SanitizerCoverage writes it.  libFuzzer does not dereference addresses. */
typedef struct Pc
{
	uintptr_t	address;
	uintptr_t	flags;
} Pc;

void		__sanitizer_cov_8bit_counters_init(uint8_t *start, uint8_t *stop);
void		__sanitizer_cov_pcs_init(const uintptr_t *start, const uintptr_t *stop);

static void
fail(const char *what)
{
	fprintf(stderr, "pgduel driver: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Register the counters of a region with libFuzzer, with made-up addresses. */
static void
register_region(uint8_t *counters, size_t edges)
{
	static uintptr_t next = 1;
	Pc		   *pcs = calloc(edges, sizeof(Pc));

	if (pcs == NULL)
		fail("no memory");
	for (size_t i = 0; i < edges; i++)
		pcs[i].address = next++;
	__sanitizer_cov_8bit_counters_init(counters, counters + edges);
	__sanitizer_cov_pcs_init((uintptr_t *) pcs, (uintptr_t *) (pcs + edges));
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *counters = getenv("PGDUEL_COUNTERS");
	const char *pipes = getenv("PGDUEL_PIPES");
	char	   *rest = getenv("PGDUEL_REGIONS");
	struct stat status;
	uint8_t    *mapped;
	int			file;

	(void) argc;
	(void) argv;
	if (counters == NULL || rest == NULL || pipes == NULL || sscanf(pipes, "%d %d", &answers, &inputs) != 2)
		fail("only pgduel starts it, with the environment described in driver.c");
	file = atoi(counters);
	if (fstat(file, &status) < 0)
		fail("cannot use the counters");
	mapped = mmap(NULL, status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (mapped == MAP_FAILED)
		fail("cannot map the counters");
	while (*rest != '\0')
	{
		size_t		offset = strtoul(rest, &rest, 10);
		size_t		edges = strtoul(rest, &rest, 10);

		if (edges == 0 || offset + edges > (size_t) status.st_size)
			fail("a region is not in the file");
		register_region(mapped + offset, edges);
	}
	return 0;
}

static void
send_all(const void *data, size_t size)
{
	const char *next = data;

	while (size > 0)
	{
		ssize_t		sent = write(inputs, next, size);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			_exit(0);
		next += sent;
		size -= sent;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t	length = size;
	ssize_t		got;
	char		answer;

	if (size == 0)				/* libFuzzer's first call, of which it keeps nothing */
		return 0;
	send_all(&length, sizeof(length));
	send_all(data, size);
	do
		got = read(answers, &answer, 1);
	while (got < 0 && errno == EINTR);
	if (got != 1)
		_exit(0);
	return answer == KEPT ? 0 : -1;
}

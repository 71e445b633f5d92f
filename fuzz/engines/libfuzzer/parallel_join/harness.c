/*
 * libFuzzer harness for Parallel Hash Join with a shared Bloom filter, in nodeHash.c and nodeHashjoin.c.
 *
 * The executor's own state machine joins two relations in several processes, with the server's own barriers, condition
 * variables and shared tuplestores. The processes are fibers of one process. The input chooses which one runs when. All
 * of them together must return what a join without batches returns, and none may wait forever.
 */
#include "postgres.h"

#include "backend_stubs.h"
#include "parallel_join/parallel_join.h"

extern const char *__asan_default_options(void);
extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A batch takes tens of kilobytes in each process. It is much faster if they are soon used again. */
const char *
__asan_default_options(void)
{
	return "quarantine_size_mb=8:allocator_release_to_os_interval_ms=-1";
}

void
on_warning(const char *text)
{
	fatal("a warning: %s", text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t		longer[DESCRIPTION_SIZE];
	Input		input = {longer, longer + DESCRIPTION_SIZE};
	Settings	settings;
	long		before = stub_allocations();

	lengthen(data, size, longer, DESCRIPTION_SIZE);
	draw_join(&input, &settings);
	run_join(&settings, data, size);
	if (stub_allocations() != before)
		fatal("the join leaves %ld allocations", stub_allocations() - before);
	return 0;
}

/*
 * libFuzzer harness for the Bloom filter of a serial hash join, in nodeHash.c and nodeHashjoin.c.
 *
 * The executor's own state machine joins two relations, with batch files in memory. The result must be that of a join
 * without batches. While the hash table is built, its filter and its memory are checked after each tuple.
 */
#include "postgres.h"

#include "backend_stubs.h"
#include "join_filter/join_filter.h"

#define LENGTH	48				/* as many bytes as draw_join() reads at most */

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

void
on_warning(const char *text)
{
	fatal("a warning: %s", text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t		longer[LENGTH];
	Input		input = {longer, longer + LENGTH};
	Settings	settings;
	long		before = stub_allocations();

	lengthen(data, size, longer, LENGTH);
	draw_join(&input, &settings);
	run_join(&settings);
	if (stub_allocations() != before)
		fatal("the join leaves %ld allocations", stub_allocations() - before);
	return 0;
}

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

/* Copy the input and append random bytes, so that a short one describes a join, too. */
static void
lengthen(const uint8_t *data, size_t size, uint8_t *longer)
{
	uint32		state = size;

	for (size_t i = 0; i < size; i++)
		state = murmurhash32(state ^ data[i]);
	for (int i = 0; i < LENGTH; i++)
	{
		state = murmurhash32(state + i);
		longer[i] = i < size ? data[i] : (uint8_t) state;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t		longer[LENGTH];
	Input		input = {longer, longer + LENGTH};
	Settings	settings;
	long		before = stub_allocations();

	lengthen(data, size, longer);
	draw_join(&input, &settings);
	run_join(&settings);
	if (stub_allocations() != before)
		fatal("the join leaves %ld allocations", stub_allocations() - before);
	return 0;
}

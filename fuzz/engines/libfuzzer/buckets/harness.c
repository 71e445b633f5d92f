/*
 * libFuzzer harness for hash buckets: the sizing functions of executor/hashjoin.h, and their use in nodeHash.c.
 */
#include "postgres.h"

#include "backend_stubs.h"
#include "buckets/buckets.h"

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

void
on_warning(const char *text)
{
	fatal("a warning: %s", text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input		input = {data, data + size};

	check_sizing(&input);
	check_growth(&input);
	return 0;
}

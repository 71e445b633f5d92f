/*
 * Shared memory. Each allocation of a dsa_area is one of malloc(), so that AddressSanitizer finds invalid accesses.
 */
#include "postgres.h"

#include "backend_stubs.h"
#include "lib/ilist.h"
#include "parallel_join/memory.h"
#include "parallel_join/scheduler.h"
#include "utils/dsa.h"
#include "utils/memutils.h"

static dlist_head pieces = DLIST_STATIC_INIT(pieces);

Size
shared_memory(void)
{
	return stub_allocated((MemoryContext) &pieces);
}

void
free_shared_memory(void)
{
	MemoryContextReset((MemoryContext) &pieces);
}

dsa_pointer
dsa_allocate_extended(dsa_area *area, size_t size, int flags)
{
	int			context_flags = (flags & DSA_ALLOC_NO_OOM ? MCXT_ALLOC_NO_OOM : 0) |
		(flags & DSA_ALLOC_ZERO ? MCXT_ALLOC_ZERO : 0);

	maybe_switch();
	return (dsa_pointer) MemoryContextAllocExtended((MemoryContext) &pieces, size, context_flags);
}

void
dsa_free(dsa_area *area, dsa_pointer pointer)
{
	maybe_switch();
	if (GetMemoryChunkContext((void *) pointer) != (MemoryContext) &pieces)
		fatal("memory is freed that is not shared");
	pfree((void *) pointer);
}

void *
dsa_get_address(dsa_area *area, dsa_pointer pointer)
{
	return (void *) pointer;
}

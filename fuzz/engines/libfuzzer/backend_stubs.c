/*
 * Stubs of the backend functions that all harnesses need: errors and memory.
 *
 * They are small, but behave like the originals. Memory comes from malloc, so that AddressSanitizer checks it, and
 * belongs to a context, which is a dlist_head. ereport(ERROR) returns by longjmp to the innermost catcher, as with
 * PG_TRY.
 */
#include "postgres.h"

#include <setjmp.h>

#include "backend_stubs.h"
#include "lib/ilist.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#undef vsnprintf
#undef vfprintf
#undef fprintf

#define MESSAGE_SIZE 256

/* The header of each allocation; its size preserves the alignment of malloc. */
typedef struct Piece
{
	dlist_node	node;
	MemoryContext context;
	Size		size;
} Piece;

static dlist_head top_pieces = DLIST_STATIC_INIT(top_pieces);
MemoryContext TopMemoryContext = (MemoryContext) &top_pieces;
MemoryContext CurrentMemoryContext = (MemoryContext) &top_pieces;

bool		stub_out_of_memory = false;
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

Size
stub_allocated(MemoryContext context)
{
	dlist_iter	iter;
	Size		size = 0;

	dlist_foreach(iter, (dlist_head *) context)
		size += dlist_container(Piece, node, iter.cur)->size;
	return size;
}

/* postgres.c */

void
check_stack_depth(void)
{
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

static Piece *
piece_of(void *pointer)
{
	return (Piece *) pointer - 1;
}

void *
MemoryContextAlloc(MemoryContext context, Size size)
{
	Piece	   *piece = malloc(sizeof(Piece) + size);

	if (piece == NULL)
		fatal("out of memory");
	piece->context = context;
	piece->size = size;
	dlist_push_tail((dlist_head *) context, &piece->node);
	allocations++;
	return piece + 1;
}

void *
MemoryContextAllocZero(MemoryContext context, Size size)
{
	return memset(MemoryContextAlloc(context, size), 0, size);
}

void *
MemoryContextAllocExtended(MemoryContext context, Size size, int flags)
{
	if (flags & MCXT_ALLOC_NO_OOM && stub_out_of_memory)
		return NULL;
	return flags & MCXT_ALLOC_ZERO ? MemoryContextAllocZero(context, size) : MemoryContextAlloc(context, size);
}

void *
palloc(Size size)
{
	return MemoryContextAlloc(CurrentMemoryContext, size);
}

void *
palloc0(Size size)
{
	return MemoryContextAllocZero(CurrentMemoryContext, size);
}

Size
mul_size(Size size, Size count)
{
	return size * count;
}

void *
palloc_mul(Size size, Size count)
{
	return palloc(size * count);
}

void *
palloc0_mul(Size size, Size count)
{
	return palloc0(size * count);
}

void
pfree(void *pointer)
{
	Piece	   *piece = piece_of(pointer);

	dlist_delete(&piece->node);
	allocations--;
	free(piece);
}

void *
repalloc(void *pointer, Size size)
{
	Piece	   *old = piece_of(pointer);
	void	   *result = MemoryContextAlloc(old->context, size);

	memcpy(result, pointer, Min(size, old->size));
	pfree(pointer);
	return result;
}

void *
repalloc_mul(void *pointer, Size size, Size count)
{
	return repalloc(pointer, size * count);
}

void *
repalloc0(void *pointer, Size oldsize, Size size)
{
	char	   *result = repalloc(pointer, size);

	memset(result + oldsize, 0, size - oldsize);
	return result;
}

MemoryContext
GetMemoryChunkContext(void *pointer)
{
	return piece_of(pointer)->context;
}

void
MemoryContextReset(MemoryContext context)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, (dlist_head *) context)
		pfree(dlist_container(Piece, node, iter.cur) + 1);
}

char *
psprintf(const char *format,...)
{
	char	   *result = palloc(MESSAGE_SIZE);
	va_list		args;

	va_start(args, format);
	vsnprintf(result, MESSAGE_SIZE, format, args);
	va_end(args);
	return result;
}

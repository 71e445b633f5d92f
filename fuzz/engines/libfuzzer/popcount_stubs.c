/*
 * Stubs of bit counting. The original, pg_bitutils.c, needs files compiled for processors with AVX-512.
 */
#include "postgres.h"

#include "port/pg_bitutils.h"

static int
count32(uint32 bits)
{
	return __builtin_popcount(bits);
}

static int
count64(uint64 bits)
{
	return __builtin_popcountll(bits);
}

#ifdef TRY_POPCNT_FAST
int			(*pg_popcount32) (uint32 word) = count32;
int			(*pg_popcount64) (uint64 word) = count64;
#else
int
pg_popcount32(uint32 word)
{
	return count32(word);
}

int
pg_popcount64(uint64 word)
{
	return count64(word);
}
#endif

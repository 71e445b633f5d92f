/*-------------------------------------------------------------------------
 *
 * regions.c
 *		The regions of edge counters in a server process, and their sharing.
 *
 * SanitizerCoverage calls the two functions of its interface when a program
 * or library with counters is loaded.  They only record the region: first the
 * server's, then that of the one instrumented library, postgres_fdw.  Until
 * pgduel_share_counters() is called, a process counts in its own memory.
 *
 * The linker takes this object from an archive, only into what refers to it.
 * A library has a copy, but calls the server's, because the server exports
 * its symbols.
 *
 * fuzz/servers/edges/regions.c
 *
 *-------------------------------------------------------------------------
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#define MAX_REGIONS 2

typedef struct Region
{
	char	   *start;
	size_t		size;			/* whole pages; see aligned.ld */
} Region;

static Region regions[MAX_REGIONS];
static int	nregions = 0;
static int	shared_file = -1;

void		__sanitizer_cov_8bit_counters_init(char *start, char *stop);
void		__sanitizer_cov_pcs_init(const uintptr_t *start, const uintptr_t *stop);
int			pgduel_share_counters(int file);

/* Replace a region by its part of the file, which has all regions in order. */
static int
share(int number)
{
	off_t		offset = 0;

	for (int i = 0; i < number; i++)
		offset += regions[i].size;
	if (mmap(regions[number].start, regions[number].size, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, shared_file, offset) == MAP_FAILED)
		return -1;
	return 0;
}

void
__sanitizer_cov_8bit_counters_init(char *start, char *stop)
{
	for (int i = 0; i < nregions; i++)
	{
		if (regions[i].start == start)
			return;
	}
	if (nregions == MAX_REGIONS || start == stop)
		return;
	regions[nregions].start = start;
	regions[nregions].size = stop - start;
	nregions++;
	if (shared_file >= 0)
		(void) share(nregions - 1);
}

void
__sanitizer_cov_pcs_init(const uintptr_t *start, const uintptr_t *stop)
{
	(void) start;
	(void) stop;
}

/* Count in a file from now on, which stays open.  Returns -1 and sets errno if that fails. */
int
pgduel_share_counters(int file)
{
	shared_file = file;
	for (int i = 0; i < nregions; i++)
	{
		if (share(i) < 0)
			return -1;
	}
	return 0;
}

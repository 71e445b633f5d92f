/*
 * libFuzzer harness for src/backend/lib/blockbloom.c. The input determines the size of a filter, the values added by
 * one or several processes, the number of folds, and the values looked up.
 *
 * Checks: No added value is missed. A folded filter equals one of the smaller size from the start. False positives
 * are as frequent as the filter itself estimates, and as its design allows. No byte outside of the memory is
 * accessed; it has the exact size, so AddressSanitizer detects that.
 */
#include "postgres.h"

#include <math.h>
#include <pthread.h>

#include "failure.h"
#include "input.h"
#include "lib/blockbloom.h"

#define MAX_VALUES	20000
#define MAX_FOLDS	20
#define ASKED		20000
#define THREADS		3

/* Adds values[first], values[first + step], ... to a shared filter. */
typedef struct Adder
{
	pthread_t	thread;
	BlockBloom *filter;
	int			first;
	int			step;
} Adder;

static uint32 values[MAX_VALUES];
static int	nvalues;
static uint64 random_state;

static uint32
random_word(void)
{
	random_state += UINT64CONST(0x9E3779B97F4A7C15);
	return (uint32) (murmurhash64(random_state) >> 32);
}

/* Add random values, or values that differ in few bits only, like those of one batch or bucket. */
static void
op_add(Input *input)
{
	uint32		value = word(input);
	int			kind = byte(input) % 4;
	int			shift = byte(input) % 32;
	int			count = 1 << byte(input) % 14;

	random_state = value;
	for (int i = 0; i < count && nvalues < MAX_VALUES; i++)
	{
		if (kind == 0)
			values[nvalues++] = random_word();
		else if (kind == 1)
			values[nvalues++] = value;
		else
			values[nvalues++] = value ^ (uint32) i << shift;
	}
}

static void *
add_shared(void *arg)
{
	Adder	   *adder = arg;

	for (int i = adder->first; i < nvalues; i += adder->step)
		blockbloom_add_shared(adder->filter, values[i]);
	return NULL;
}

static void
add_all(BlockBloom *filter, int threads)
{
	Adder		adders[THREADS];

	if (threads == 0)
	{
		for (int i = 0; i < nvalues; i++)
			blockbloom_add(filter, values[i]);
		return;
	}
	for (int i = 0; i < threads; i++)
	{
		adders[i] = (Adder) {.filter = filter, .first = i, .step = threads};
		if (pthread_create(&adders[i].thread, NULL, add_shared, &adders[i]) != 0)
			fatal("no thread can be made");
	}
	for (int i = 0; i < threads; i++)
		pthread_join(adders[i].thread, NULL);
}

static void
check_size(Input *input)
{
	double		wanted = ldexp(word(input), (int) (byte(input) % 40) - 20);
	double		bits = 1 + byte(input) % 32;
	size_t		max_size = (size_t) word(input) >> byte(input) % 32;
	size_t		size = blockbloom_size(wanted, bits, max_size);

	if (size == 0)
	{
		if (max_size >= BLOCKBLOOM_MIN_SIZE)
			fatal("no filter for %.0f values within %zu bytes", wanted, max_size);
		return;
	}
	if ((size & (size - 1)) != 0 || size < BLOCKBLOOM_MIN_SIZE || size > Min(max_size, BLOCKBLOOM_MAX_SIZE))
		fatal("a filter of %zu bytes where %zu are allowed", size, max_size);
	if (size > BLOCKBLOOM_MIN_SIZE && size / 2 * 8.0 >= wanted * bits)
		fatal("a filter of %zu bytes, twice of what %.0f values need", size, wanted);
	if (size * 8.0 < wanted * bits && size * 2 <= Min(max_size, BLOCKBLOOM_MAX_SIZE))
		fatal("a filter of %zu bytes, less than %.0f values need", size, wanted);
}

static void
check_members(const BlockBloom *filter)
{
	for (int i = 0; i < nvalues; i++)
		if (blockbloom_lacks(filter, values[i]))
			fatal("value %08x was added, and is said not to be there", values[i]);
}

static int
compare_values(const void *a, const void *b)
{
	uint32		left = *(const uint32 *) a;
	uint32		right = *(const uint32 *) b;

	return left < right ? -1 : left > right;
}

static int
sort_and_unique(void)
{
	int			distinct = 0;

	qsort(values, nvalues, sizeof(uint32), compare_values);
	for (int i = 0; i < nvalues; i++)
		distinct += i == 0 || values[i] != values[i - 1];
	return distinct;
}

/*
 * Look up random values that were not added.
 *
 * The number of false positives is binomial. Eight standard deviations are exceeded once in 10^15 runs. If only a
 * sample of many blocks is read, the rate has an error of a few percent, too.
 *
 * The design is that of a blocked filter with k bits per value. Blocks fill according to a Poisson distribution. With
 * at least four bits per value, the rate is then less than twice that of a filter without blocks.
 */
static void
check_false_positives(const BlockBloom *filter)
{
	int			distinct = sort_and_unique();
	double		rate = blockbloom_false_positive_rate(filter, 0);
	double		bits = filter->nblocks * BLOCKBLOOM_BLOCK_SIZE * 8.0;
	double		flat = pow(1 - exp(-BLOCKBLOOM_NHASH * distinct / bits), BLOCKBLOOM_NHASH);
	double		margin;
	int			asked = 0;
	int			wrong = 0;

	if (rate < 0 || rate > 1)
		fatal("a false positive rate of %f", rate);

	for (int i = 0; i < ASKED; i++)
	{
		uint32		value = random_word();

		if (bsearch(&value, values, nvalues, sizeof(uint32), compare_values) != NULL)
			continue;
		asked++;
		wrong += !blockbloom_lacks(filter, value);
	}

	margin = 8 * sqrt(rate * (1 - rate) / ASKED) + 8.0 / ASKED + (filter->nblocks > 4096 ? rate / 5 : 0);
	if (fabs((double) wrong / asked - rate) > margin)
		fatal("%d false positives of %d, where the filter expects %f", wrong, asked, rate);

	/* the blocks of few values, or of a small filter, are too uneven for this check */
	if (distinct >= 2000 && bits / distinct >= 4 && rate > 2 * flat + 0.001)
		fatal("a false positive rate of %f, where %f is expected without blocks", rate, flat);
}

static void
check_folding(BlockBloom *filter, int folds)
{
	for (int i = 0; i < folds && filter->nblocks > 1; i++)
	{
		double		expected = blockbloom_false_positive_rate(filter, 1);
		BlockBloom	smaller;
		size_t		size;
		void	   *memory;

		blockbloom_fold(filter);
		size = filter->nblocks * (size_t) BLOCKBLOOM_BLOCK_SIZE;
		if (expected != blockbloom_false_positive_rate(filter, 0))
			fatal("folding was expected to give another false positive rate");

		memory = malloc(size);
		blockbloom_init(&smaller, memory, size);
		add_all(&smaller, 0);
		if (memcmp(smaller.words, filter->words, size) != 0)
			fatal("folded to %zu bytes it is not the filter that has that size from the outset", size);
		free(memory);
	}
}

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input		input = {data, data + size};
	size_t		bytes = (size_t) BLOCKBLOOM_BLOCK_SIZE << byte(&input) % 14;
	int			threads = byte(&input) % 8;
	int			folds = byte(&input) % MAX_FOLDS;
	void	   *memory = malloc(bytes);
	BlockBloom	filter;

	check_size(&input);
	nvalues = 0;
	while (input.next < input.end)
		op_add(&input);

	blockbloom_init(&filter, memory, bytes);
	add_all(&filter, threads > 4 ? threads - 4 : 0);
	check_members(&filter);
	check_folding(&filter, folds);
	check_members(&filter);
	check_false_positives(&filter);
	free(memory);
	return 0;
}

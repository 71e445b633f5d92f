/*
 * libFuzzer harness for postgres_fdw's sampling.c and the remote SQL of deparse.c. The input determines the value of the
 * option, figures of remote catalogs about a relation's tables, and names of the foreign table and its columns.
 *
 * Checks: Each method yields slightly fewer rows than requested, so that more are very unlikely; in an inheritance tree,
 * slightly more, so that fewer are.
 * Fractions are in (0, 1], whatever the catalogs contain. The SQL corresponds to the chosen method.
 */
#include "postgres.h"

#include <math.h>

#include "backend_stubs.h"
#include "contrib/postgres_fdw/postgres_fdw.h"
#include "input.h"
#include "relation.h"
#include "remote_sql.h"
#include "utils/memutils.h"

#define MAX_TABLES	6
#define MIN_WANTED	100			/* ANALYZE never wants fewer, except of a table in an inheritance tree */
#define LEAST_IN_TREE	30		/* rows that are asked for, however small a table's share is */
#define FEW_BLOCKS	1021		/* "system" may need all of so many; a prime, because large numbers end in zero bits */

static const char *const methods[] = {"off", "auto", "random", "system", "bernoulli"};
static const int versions[] = {80200, 80300, 90400, 90500, 160000, 170000, 170000, 170000};
static const char relkinds[] = {'r', 'r', 'r', 'r', 'm', 'p', 'f', 'v'};

void
on_warning(const char *text)
{
	fatal("unexpected warning: %s", text);
}

/* Check that an option's value is exactly one of the names, or refused. */
static void
check_parser(Input *input)
{
	char	   *value = byte(input) % 4 == 0 ? name(input) : pstrdup_stub(methods[byte(input) % lengthof(methods)]);
	PgFdwSampling method = (PgFdwSampling) -1;
	bool		known = false;

	if (byte(input) % 4 == 0 && value[0] != '\0')
		value[byte(input) % strlen(value)] ^= 1 << byte(input) % 7;
	for (int i = 0; i < lengthof(methods); i++)
		known |= strcmp(value, methods[i]) == 0;

	if (pgfdw_parse_sampling(value, &method) != known)
		fatal("the value \"%s\" is %s", value, known ? "refused" : "accepted");
	if (known && (method < PGFDW_SAMPLING_OFF || method > PGFDW_SAMPLING_BERNOULLI))
		fatal("the value \"%s\" is method %d", value, (int) method);
}

/* Collect figures of catalogs, which need not be true or consistent. */
static void
collect(Input *input, PgFdwRemoteSize *size)
{
	int			ntables = byte(input) % MAX_TABLES;
	double		block_size = 1024 << byte(input) % 6;
	bool		blocks_differ = false;

	pgfdw_init_remote_size(size, versions[byte(input) % lengthof(versions)]);
	for (int i = 0; i < ntables; i++)
	{
		uint32		kind = byte(input);
		char		relkind = relkinds[kind % lengthof(relkinds)];
		double		all_blocks = floor(number(input));
		double		blocks = kind / lengthof(relkinds) % 4 == 3 ? fmod(all_blocks, FEW_BLOCKS) : all_blocks;
		bool		is_current = byte(input) % 2;
		double		reltuples = (double) byte(input) * blocks - 1;
		int			statistics = byte(input) % 4;
		double		live_rows = statistics == 1 ? -1 : statistics == 3 ? Max(reltuples, 0) : floor(number(input));

		blocks_differ |= !is_current;
		if (byte(input) % 4 == 0)
			reltuples = floor(number(input)) - 1;
		pgfdw_add_remote_table(size, relkind, reltuples, is_current ? blocks : floor(number(input)),
							   blocks, block_size, live_rows);
	}
	pgfdw_finish_remote_size(size);
	if (size->live_rows < 0 && !blocks_differ && size->doubtful)
		fatal("rows are counted only because there are no statistics, as on a standby");
}

static void
check_fraction(const char *what, double fraction)
{
	if (!(fraction > 0 && fraction <= 1))
		fatal("%s is %g", what, fraction);
}

/* Count rows, first in some blocks and then in all; any count is possible. */
static void
count(Input *input, PgFdwRemoteSize *size, Relation rel, PgFdwSampling method)
{
	double		fraction = pgfdw_count_fraction(size);

	if (fraction < 1 && (method == PGFDW_SAMPLING_RANDOM || !size->tablesample))
		fatal("TABLESAMPLE for counting, %s", size->tablesample ? "by random" : "of what has none");
	check_fraction("the fraction of blocks to count in", fraction);
	if (size->counted && fraction < 1)
		fatal("rows in a fraction %g of the blocks are counted, after such a count was wrong", fraction);
	check_count_sql(rel, fraction);
	pgfdw_set_counted_rows(size, floor(number(input)), fraction);
	if (fraction == 1 && pgfdw_can_count(size, method))
		fatal("rows may be counted after all were counted");
}

/* Find out what the catalogs do not tell: as part of an inheritance tree by counting, else by a guess. */
static void
find_size(Input *input, PgFdwRemoteSize *size, Relation rel, PgFdwSampling method, bool in_tree)
{
	if (size->rows >= 0 || size->tablesample)
		return;
	if (in_tree)
		count(input, size, rel, method);
	else
	{
		size->rows = fmax(floor(number(input)), 1);
		size->guessed = true;
	}
}

/* Is there a number of rows that a fraction may be derived from? */
static bool
is_size_known(const PgFdwRemoteSize *size)
{
	return !size->guessed && (size->counted || (size->rows >= 0 && !size->doubtful));
}

static void
check_form(const PgFdwRemoteSize *size, PgFdwSampling method, const PgFdwSample *sample)
{
	const char *tablesample = sample->tablesample;

	if (tablesample != NULL && !size->tablesample)
		fatal("TABLESAMPLE of what has none");
	if (tablesample != NULL && size->exact && strcmp(tablesample, "SYSTEM") == 0)
		fatal("a sample of blocks, where some were misleading");
	if (sample->limit > 0 && (is_size_known(size) || pgfdw_sample_fraction(sample) < 1))
		fatal("a limit where a number of rows is known");
	if (sample->limit == 0 && size->guessed && method != PGFDW_SAMPLING_OFF)
		fatal("no limit, by a guess");
	if (sample->limit > 0 || pgfdw_sample_fraction(sample) >= 1)
		return;
	if (method == PGFDW_SAMPLING_OFF)
		fatal("a sample, by off");
	if (method == PGFDW_SAMPLING_RANDOM ? tablesample != NULL : tablesample == NULL && size->tablesample)
		fatal("method %d by %s", (int) method, tablesample != NULL ? tablesample : "random");
	if (method == PGFDW_SAMPLING_BERNOULLI && tablesample != NULL && strcmp(tablesample, "BERNOULLI") != 0)
		fatal("bernoulli by %s", tablesample);
}

/* The standard deviation of the number of rows, if all blocks have equally many. */
static double
deviation(const PgFdwRemoteSize *size, int targrows, const PgFdwSample *sample)
{
	bool		is_blockwise = sample->tablesample != NULL && strcmp(sample->tablesample, "SYSTEM") == 0;
	double		variance = 1.0 / targrows;

	if (is_blockwise)
		variance += 1 / (sample->tablesample_fraction * size->blocks);
	return targrows * sqrt(variance);
}

/*
 * Check that the expected number of rows is at least half of the requested one, and at most that; or (!at_most) that it
 * exceeds that by three standard deviations, or little more: for more rows, there may be more blocks than at first; or
 * that it is LEAST_IN_TREE.
 */
static void
check_yield(const PgFdwRemoteSize *size, PgFdwSampling method, int targrows, bool at_most, const PgFdwSample *sample)
{
	double		expected = pgfdw_sample_fraction(sample) * size->rows;
	double		margin = 3 * deviation(size, targrows, sample);
	double		wanted = at_most ? targrows : fmax(targrows + margin, LEAST_IN_TREE);
	double		least = at_most ? 0.5 * targrows : wanted;
	double		most = at_most ? targrows : fmax(targrows + 1.1 * margin, LEAST_IN_TREE);

	check_fraction("the fraction of blocks or rows", sample->tablesample_fraction);
	check_fraction("the fraction by random()", sample->random_fraction);
	if (sample->limit != 0 && sample->limit != Max(targrows, MIN_WANTED))
		fatal("a limit of %d, where %d rows are wanted", sample->limit, targrows);
	if (sample->limit > 0)
		return;
	if (sample->target == 0)
	{
		if (method != PGFDW_SAMPLING_OFF && size->rows > wanted)
			fatal("all of %g rows are asked for, where %d are wanted", size->rows, targrows);
		return;
	}
	if (fabs(expected - sample->target) > sample->target * 1e-9)
		fatal("%g rows are aimed at, and %g asked for", sample->target, expected);
	if (expected > most * (1 + 1e-9) || expected < least * (1 - 1e-9))
		fatal("%g rows are asked for, where %d are wanted%s", expected, targrows, at_most ? " at most" : "");
	if (pgfdw_sample_too_small(sample, expected))
		fatal("%g rows are too few, though so many are expected", expected);
}

/* Check that an estimate depends on the sample alone. */
static void
check_estimate(Input *input, const PgFdwSample *sample)
{
	double		rows = floor(number(input));
	double		key = (1 + byte(input)) / 257.0;
	double		estimate;

	if (sample->limit > 0)
		rows = Min(rows, sample->limit);
	estimate = pgfdw_estimate_rows(sample, rows, key);
	if (!(estimate >= rows - 0.5) || isinf(estimate))
		fatal("%g rows are estimated after %g were received", estimate, rows);
	if (sample->limit == 0 && fabs(estimate * pgfdw_sample_fraction(sample) - rows) > 1 + rows * 1e-9)
		fatal("%g rows are estimated where %g are a fraction of %g", estimate, rows, pgfdw_sample_fraction(sample));
	if (sample->limit > 0 && rows == sample->limit && rows > 1 && fabs(estimate * key - (rows - 1)) > 1 && estimate != rows)
		fatal("%g rows are estimated where the largest of %g keys is %g", estimate, rows, key);
}

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input		input = {data, data + size};
	Relation	rel;
	PgFdwRemoteSize remote;
	PgFdwSample sample;
	PgFdwSampling method;
	bool		at_most;
	int			targrows;

	check_parser(&input);
	method = (PgFdwSampling) (byte(&input) % lengthof(methods));
	at_most = byte(&input) % 2;
	targrows = (at_most ? MIN_WANTED : 1) + (int) fmin(number(&input), 3000000 - MIN_WANTED);
	rel = make_relation(&input);
	collect(&input, &remote);
	find_size(&input, &remote, rel, method, !at_most);

	check_size_sql(rel, versions[byte(&input) % lengthof(versions)], byte(&input) % 2);
	if (pgfdw_wants_count(&remote, method, targrows))
		count(&input, &remote, rel, method);
	else if (remote.rows < 0)
		remote.rows = -1;		/* unknown, but few, so all are read */
	/* more rows than expected arrive, perhaps twice */
	while (byte(&input) % 4 == 3 && pgfdw_can_count(&remote, method))
		count(&input, &remote, rel, method);
	pgfdw_choose_sample(&remote, method, targrows, at_most, &sample);
	check_yield(&remote, method, targrows, at_most, &sample);
	check_form(&remote, method, &sample);
	check_sample_sql(rel, &sample);
	check_estimate(&input, &sample);

	MemoryContextReset(CurrentMemoryContext);
	return 0;
}

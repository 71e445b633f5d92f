/*
 * The join, drawn from the input.
 */
#include "postgres.h"

#include "backend_stubs.h"
#include "join_filter/join_filter.h"
#include "miscadmin.h"

static const Limits limits = {
	.inner_rows = MAX_INNER,
	.outer_rows = MAX_OUTER,
	.inner_space = 8 << 20,
	.outer_space = 16 << 20,
	.pairs = 100000,
};

static void
draw_scans(Input *input, Settings *settings)
{
	int			nscans = (int) (byte(input) % 8) - 4;

	settings->nscans = Max(nscans, 1);
	for (int i = 0; i < settings->nscans; i++)
	{
		uint32		how = byte(input);

		settings->scans[i].changed = how & 1;
		settings->scans[i].limit = how & 2 ? 1 << how / 4 % 16 : INT_MAX;
	}
}

/* Set which values statistics list as common, of the inner relation and others. */
static void
set_common_values(Settings *settings)
{
	planned.hash.skewTable = settings->nmcvs;
	for (int i = 0; i < settings->nmcvs; i++)
		settings->mcvs[i] = i % 4 == 0 || inner.nrows == 0 ? i : inner.rows[i * 37 % inner.nrows].key;
}

/* Draw the relations and all other circumstances of a join. */
void
draw_join(Input *input, Settings *settings)
{
	static const JoinType types[] = {JOIN_INNER, JOIN_LEFT, JOIN_FULL, JOIN_RIGHT, JOIN_SEMI, JOIN_ANTI,
	JOIN_RIGHT_ANTI, JOIN_INNER};
	static const HashJoinBloomMode modes[] = {HASHJOIN_BLOOM_ON, HASHJOIN_BLOOM_LATE, HASHJOIN_BLOOM_FORCE,
	HASHJOIN_BLOOM_ON, HASHJOIN_BLOOM_LATE, HASHJOIN_BLOOM_ON, HASHJOIN_BLOOM_LATE, HASHJOIN_BLOOM_OFF};
	uint32		kind = byte(input);
	uint32		ways = byte(input);
	Alike		groups[MAX_GROUPS];
	uint32		rows_how;
	uint32		width_how;
	int			nmcvs;

	begin_join(types[kind % 8], modes[kind / 8 % 8], ways);
	work_mem = 64 << kind / 64;

	groups[0] = draw_alike(input);
	groups[1] = draw_alike(input);
	rows_how = byte(input);
	width_how = byte(input);
	nmcvs = (int) (byte(input) % 64) - 32;
	settings->nmcvs = Max(nmcvs, 0);
	draw_plan(input);
	planned.hash.plan.total_cost = ways & 2;	/* more than the outer relation's startup cost? */
	draw_scans(input, settings);
	draw_rows(input, groups, &limits);
	estimate_inner(rows_how, width_how);
	set_common_values(settings);
}

/*
 * The join and the behavior of its processes, drawn from the input.
 */
#include "postgres.h"

#include "backend_stubs.h"
#include "miscadmin.h"
#include "parallel_join/parallel_join.h"

#define MAX_EXPECTED	(4 << 20)	/* bytes of inner rows, so that some hundred batches are planned at most */

/* Few rows give many executions. They suffice for tens of batches in the least memory that the server allows, 64 kB. */
static const Limits limits = {
	.inner_rows = 4000,
	.outer_rows = 4000,
	.inner_space = 1 << 20,
	.outer_space = 1 << 20,
	.pairs = 20000,
};

static void
draw_beginning(Input *input, Behavior *behavior)
{
	static const Beginning kinds[] = {AT_ONCE, AT_ONCE, AT_ONCE, AFTER_POINTS, IN_BUILD_PHASE, IN_GROWTH_PHASE,
	IN_SHRINK_PHASE, NEVER};
	uint32		how = byte(input);
	uint32		when = how / lengthof(kinds);

	behavior->beginning = kinds[how % lengthof(kinds)];
	if (behavior->beginning == AFTER_POINTS)
		behavior->when = 1 << when % 16;
	else if (behavior->beginning == IN_BUILD_PHASE)
		behavior->when = when % (PHJ_BUILD_FREE + 1);
	else
		behavior->when = when % 16 + 1;
}

/* A node above that reads all rows before it waits for anyone also reads them to the end. */
static Behavior
draw_behavior(Input *input)
{
	Behavior	behavior;
	uint32		limit;
	uint32		pause;

	draw_beginning(input, &behavior);
	limit = byte(input);
	pause = byte(input);
	behavior.limit = limit % 4 == 3 && !planned.plan.bloom_emits_early ? 1 << limit / 4 % 12 : INT_MAX;
	behavior.pause = pause % 2 == 1 && !planned.plan.bloom_emits_early ? 1 << pause / 2 % 8 : INT_MAX;
	behavior.stays = pause >= 0xc0;
	return behavior;
}

static void
draw_processes(Input *input, Settings *settings)
{
	static const int numbers[] = {2, 3, 2, 3, 4, 3, 2, 1};
	int			nscans;

	settings->nprocesses = numbers[byte(input) % lengthof(numbers)];
	for (int i = 0; i < MAX_PROCESSES; i++)
		settings->behaviors[i] = draw_behavior(input);
	nscans = (int) (byte(input) % 8) - 4;
	settings->nscans = Max(nscans, 1);
}

/* Draw the relations and all other circumstances of a join. */
void
draw_join(Input *input, Settings *settings)
{
	static const JoinType types[] = {JOIN_INNER, JOIN_LEFT, JOIN_FULL, JOIN_RIGHT, JOIN_SEMI, JOIN_ANTI,
	JOIN_RIGHT_ANTI, JOIN_FULL};
	static const HashJoinBloomMode modes[] = {HASHJOIN_BLOOM_ON, HASHJOIN_BLOOM_LATE, HASHJOIN_BLOOM_FORCE,
	HASHJOIN_BLOOM_ON, HASHJOIN_BLOOM_LATE, HASHJOIN_BLOOM_FORCE, HASHJOIN_BLOOM_FORCE, HASHJOIN_BLOOM_OFF};
	uint32		kind = byte(input);
	uint32		ways = byte(input);
	Alike		groups[MAX_GROUPS];
	uint32		rows_how;
	uint32		width_how;

	begin_join(types[kind % 8], modes[kind / 8 % 8], ways);
	planned.plan.bloom_emits_early = ways & 2;
	work_mem = (ways & 0xc0) == 0x80 ? 256 : 64;	/* kB; in 64, a filter is never too big to start at once */

	groups[0] = draw_alike(input);
	groups[1] = draw_alike(input);
	if (kind / 64 > 0)
		groups[0].length |= 0x80;	/* wide rows, because one batch has the memory of all processes */
	rows_how = byte(input);
	width_how = byte(input);
	draw_plan(input);
	planned.hash.plan.parallel_aware = true;
	draw_processes(input, settings);
	draw_rows(input, groups, &limits);
	estimate_inner(rows_how, width_how);
	inner.plan.plan_width = Min(inner.plan.plan_width, MAX_EXPECTED / inner.plan.plan_rows);
	planned.hash.rows_total = inner.plan.plan_rows;
}

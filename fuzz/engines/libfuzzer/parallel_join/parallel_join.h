/*
 * A Parallel Hash Join of relations that the input describes, and checks of its table and result.
 */
#ifndef PARALLEL_JOIN_H
#define PARALLEL_JOIN_H

#include "hash_join/hash_join.h"
#include "parallel_join/scheduler.h"

#define LEADER			0

typedef enum Beginning
{
	AT_ONCE,
	AFTER_POINTS,				/* of the schedule */
	IN_BUILD_PHASE,
	IN_GROWTH_PHASE,			/* phases count on when batches are added again */
	IN_SHRINK_PHASE,			/* the same, when the filter becomes smaller */
	NEVER,
} Beginning;

typedef struct Behavior
{
	Beginning	beginning;
	int			when;			/* number of points, or phase */
	int			limit;			/* of rows that it wants */
	int			pause;			/* number of rows after which it waits for others */
	bool		stays;			/* does it wait for others before it detaches? */
} Behavior;

typedef struct Settings
{
	int			nprocesses;
	Behavior	behaviors[MAX_PROCESSES];
	int			nscans;			/* of the whole join */
} Settings;

/* draw.c */
#define DESCRIPTION_SIZE	56	/* as many bytes as draw_join() reads at most */

extern void draw_join(Input *input, Settings *settings);

/* table.c */
extern void check_built(HashJoinTable table, bool keep_nulls);

/* join.c */
extern void run_join(const Settings *settings, const uint8_t *choices, size_t nchoices);

#endif

/*
 * A serial hash join with a Bloom filter, on relations that the input describes, and checks of its table and result.
 */
#ifndef JOIN_FILTER_H
#define JOIN_FILTER_H

#include "hash_join/hash_join.h"

typedef struct Settings
{
	int			nmcvs;			/* most common values of the outer relation */
	uint32		mcvs[32];
	int			nscans;
	struct
	{
		bool		changed;	/* are there other inner rows than in the scan before? */
		int			limit;		/* of returned rows */
	}			scans[3];
} Settings;

/* draw.c */
extern void draw_join(Input *input, Settings *settings);

/* files.c: number of rows written to batch files while the first batch is processed, by relation */
extern int	saved_inner;
extern int	saved_outer;

/* table.c: the table of an executing join, from outside */
extern void begin_build(HashJoinTable table, const HashJoinState *join);
extern void check_insertion(HashJoinTable table, bool keep_nulls);
extern void check_built(HashJoinTable table, bool keep_nulls);
extern void check_batch(HashJoinTable table);

/* join.c */
extern HashJoinTable current_table(void);
extern void run_join(const Settings *settings);

#endif

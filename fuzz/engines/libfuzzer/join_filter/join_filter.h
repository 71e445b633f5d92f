/*
 * A serial hash join with a Bloom filter, on relations that the input describes, and checks of its table and result.
 */
#ifndef JOIN_FILTER_H
#define JOIN_FILTER_H

#include "executor/hashjoin.h"
#include "executor/tuptable.h"
#include "input.h"
#include "nodes/execnodes.h"

typedef struct Row
{
	uint32		key;			/* also its hash value; 0 if it is null */
	bool		null;
	int			length;			/* of its tuple */

	/* as the result has it */
	int			npairs;
	bool		alone;			/* null-extended, or returned by an anti-join */

	/* as it should be */
	int			npartners;
} Row;

typedef struct Joined
{
	PlanState	state;			/* the plan node that returns its rows */
	Plan		plan;
	MinimalTupleTableSlot slot; /* the last returned row */
	bool		copies;			/* must a tuple be made from the slot each time? */

	Row		   *rows;
	int			nrows;
	int			next;			/* row to be returned next */
	int			every;			/* unless 0, leave out each row whose number is a multiple */
} Joined;

typedef struct Settings
{
	JoinType	jointype;
	bool		conditional;	/* does the join have a condition besides the key? */
	HashJoinBloomMode mode;
	double		excluded;		/* bytes, see HashJoin */
	double		matched;
	Hash		hash;			/* plan node */
	int			nmcvs;			/* most common values of the outer relation */
	uint32		mcvs[32];
	int			nscans;
	struct
	{
		bool		changed;	/* are there other inner rows than in the scan before? */
		int			limit;		/* of returned rows */
	}			scans[3];
} Settings;

/* relations.c */
extern Joined inner;
extern Joined outer;

extern void draw_join(Input *input, Settings *settings);
extern void set_up_slot(MinimalTupleTableSlot *slot);
extern bool is_present(const Joined *relation, int number);
extern Row *row_of(MinimalTuple tuple, Joined **relation);
extern Row *row_in(TupleTableSlot *slot);
extern bool qualify(const Settings *settings, const Row *outer_row, const Row *inner_row);

/* Called when a row is about to be read from a relation, or when it has no more. */
extern void on_read(Joined *relation);

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

/* result.c */
extern void index_inner_rows(void);
extern bool has_equal_key(const Row *outer_row);
extern int	inner_rows_with(uint32 key);
extern void forget_result(const Settings *settings);
extern void add_to_result(const Settings *settings, Row *outer_row, Row *inner_row);
extern void check_result(const Settings *settings);

#endif

/*
 * A hash join of two relations that the input describes: its rows, plan, expressions, and the result that it should
 * have. Harnesses of hash joins share it.
 */
#ifndef HASH_JOIN_H
#define HASH_JOIN_H

#include "executor/hashjoin.h"
#include "executor/tuptable.h"
#include "input.h"
#include "lib/ilist.h"
#include "nodes/execnodes.h"

#define MAX_INNER		12000	/* rows */
#define MAX_OUTER		50000
#define LEAST_LENGTH	((int) MAXALIGN(SizeofMinimalTupleHeader) + 9)	/* of a tuple */
#define MAX_LENGTH		65536

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
	Plan		plan;
	Row		   *rows;
	int			nrows;
	int			next;			/* row to be returned next by any scan */
	int			every;			/* unless 0, leave out each row whose number is a multiple */
	bool		copies;			/* must a tuple be made from a scan's slot each time? */
} Joined;

typedef struct Reader
{
	PlanState	state;			/* the plan node that returns rows of the relation */
	Joined	   *relation;
	MinimalTupleTableSlot slot; /* the last returned row */
	int64		tuple[MAX_LENGTH / sizeof(int64)];
} Reader;

/* What the planner decides. */
typedef struct Planned
{
	JoinType	type;
	bool		conditional;	/* does the join have a condition besides the key? */
	HashJoin	plan;
	Hash		hash;			/* plan node */
} Planned;

/* What one process has: plan nodes with their expressions, slots and memory. */
typedef struct Execution
{
	HashJoinState join;
	HashState	hash;
	EState		estate;
	ProjectionInfo projection;
	ExprState	equal_keys;
	ExprState	condition;
	ExprContext join_context;
	ExprContext hash_context;
	MinimalTupleTableSlot hash_slot;
	MinimalTupleTableSlot saved_slot;
	MinimalTupleTableSlot null_inner_slot;
	MinimalTupleTableSlot null_outer_slot;
	MinimalTupleTableSlot result_slot;

	/* memory contexts */
	dlist_head	query_pieces;
	dlist_head	expr_pieces;
	dlist_head	hash_pieces;
	dlist_head	batch_pieces;
	dlist_head	spill_pieces;
} Execution;

#define MAX_GROUPS		5		/* of rows that are alike */

/* What the input says about rows that are alike. */
typedef struct Alike
{
	uint32		how;
	uint32		key;
	uint32		variety;
	int			length;
	int			count;
} Alike;

/* Most rows of the relations, their bytes, and pairs with an equal key. */
typedef struct Limits
{
	int			inner_rows;
	int			outer_rows;
	Size		inner_space;
	Size		outer_space;
	int			pairs;
} Limits;

/* relations.c */
extern Joined inner;
extern Joined outer;

extern void set_up_relation(Joined *relation);
extern void set_up_reader(Reader *reader, Joined *relation);
extern void set_up_slot(MinimalTupleTableSlot *slot, bool copies);
extern bool is_present(const Joined *relation, int number);
extern Row *row_of(MinimalTuple tuple, Joined **relation);
extern Row *row_in(TupleTableSlot *slot);

/* Defined by the harness: called when a row is about to be read from a relation, or when it has no more. */
extern void on_read(Reader *reader);

/* draw.c */
extern void begin_join(JoinType type, HashJoinBloomMode mode, uint32 ways);
extern Alike draw_alike(Input *input);
extern void draw_plan(Input *input);
extern void draw_rows(Input *input, Alike groups[MAX_GROUPS], const Limits *limits);
extern void estimate_inner(uint32 rows_how, uint32 width_how);

/* plan.c */
extern Planned planned;

extern bool qualify(const Row *outer_row, const Row *inner_row);
extern void set_up_execution(Execution *execution, Reader *outer_reader, Reader *inner_reader);

/* result.c */
extern void index_inner_rows(void);
extern bool has_equal_key(const Row *outer_row);
extern int	inner_rows_with(uint32 key);
extern void forget_result(void);
extern void add_to_result(Row *outer_row, Row *inner_row);
extern void check_result(bool complete);

#endif

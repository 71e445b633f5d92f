/*
 * The relations that are joined: rows, plan nodes that return them, and the slots that hold their tuples.
 */
#include "postgres.h"

#include "backend_stubs.h"
#include "executor/executor.h"
#include "hash_join/hash_join.h"

#define HEADER			MAXALIGN(SizeofMinimalTupleHeader)

/* The data of a tuple. Its last byte is another one. */
typedef struct Content
{
	int			number;
	bool		is_outer;
} Content;

StaticAssertDecl(LEAST_LENGTH == HEADER + sizeof(Content) + 1, "the shortest tuple has a content and a byte");

static Row	inner_rows[MAX_INNER];
static Row	outer_rows[MAX_OUTER];

Joined		inner = {.rows = inner_rows};
Joined		outer = {.rows = outer_rows};

/* Tuples */

bool
is_present(const Joined *relation, int number)
{
	return relation->every == 0 || number % relation->every != 0;
}

Row *
row_of(MinimalTuple tuple, Joined **relation)
{
	Content    *content = (Content *) ((char *) tuple + HEADER);
	Joined	   *owner = content->is_outer ? &outer : &inner;
	Row		   *row = &owner->rows[content->number];

	if (tuple->t_len != row->length || ((char *) tuple)[row->length - 1] != (char) content->number)
		fatal("a tuple was changed");
	if (relation)
		*relation = owner;
	return row;
}

Row *
row_in(TupleTableSlot *slot)
{
	return TTS_EMPTY(slot) ? NULL : row_of(((MinimalTupleTableSlot *) slot)->mintuple, NULL);
}

static MinimalTuple
tuple_of(Reader *reader, int number)
{
	Joined	   *relation = reader->relation;
	MinimalTuple tuple = (MinimalTuple) reader->tuple;
	Content    *content = (Content *) ((char *) tuple + HEADER);

	memset(tuple, 0, HEADER);
	tuple->t_len = relation->rows[number].length;
	content->number = number;
	content->is_outer = relation == &outer;
	((char *) tuple)[tuple->t_len - 1] = (char) number;
	return tuple;
}

/* execTuples.c */

static void
clear_slot(TupleTableSlot *slot)
{
	if (TTS_SHOULDFREE(slot))
		pfree(((MinimalTupleTableSlot *) slot)->mintuple);
	slot->tts_flags = TTS_FLAG_EMPTY;
	((MinimalTupleTableSlot *) slot)->mintuple = NULL;
}

static MinimalTuple
get_tuple(TupleTableSlot *slot)
{
	return ((MinimalTupleTableSlot *) slot)->mintuple;
}

/* A minimal tuple has to be made from a slot that holds another kind of tuple. */
static const TupleTableSlotOps operations = {.clear = clear_slot, .get_minimal_tuple = get_tuple};
static const TupleTableSlotOps copying_operations = {.clear = clear_slot};

void
set_up_slot(MinimalTupleTableSlot *slot, bool copies)
{
	static TupleDescData descriptor = {.natts = 0};
	static dlist_head pieces = DLIST_STATIC_INIT(pieces);

	MinimalTupleTableSlot empty = {.base.type = T_TupleTableSlot, .base.tts_flags = TTS_FLAG_EMPTY,
	.base.tts_ops = copies ? &copying_operations : &operations, .base.tts_tupleDescriptor = &descriptor};

	memcpy(slot, &empty, sizeof(*slot));
	slot->base.tts_mcxt = (MemoryContext) &pieces;
}

TupleTableSlot *
ExecStoreMinimalTuple(MinimalTuple tuple, TupleTableSlot *slot, bool shouldFree)
{
	ExecClearTuple(slot);
	((MinimalTupleTableSlot *) slot)->mintuple = tuple;
	slot->tts_flags = shouldFree ? TTS_FLAG_SHOULDFREE : 0;
	return slot;
}

void
ExecForceStoreMinimalTuple(MinimalTuple tuple, TupleTableSlot *slot, bool shouldFree)
{
	ExecStoreMinimalTuple(tuple, slot, shouldFree);
}

MinimalTuple
ExecFetchSlotMinimalTuple(TupleTableSlot *slot, bool *shouldFree)
{
	MinimalTuple tuple = get_tuple(slot);

	*shouldFree = slot->tts_ops->get_minimal_tuple == NULL;
	return *shouldFree ? heap_copy_minimal_tuple(tuple) : tuple;
}

MinimalTuple
heap_copy_minimal_tuple(MinimalTuple tuple)
{
	return memcpy(palloc(tuple->t_len), tuple, tuple->t_len);
}

void
heap_free_minimal_tuple(MinimalTuple tuple)
{
	pfree(tuple);
}

/* Plan nodes */

static TupleTableSlot *
read_row(PlanState *state)
{
	Reader	   *reader = (Reader *) state;
	Joined	   *relation = reader->relation;

	on_read(reader);
	while (relation->next < relation->nrows && !is_present(relation, relation->next))
		relation->next++;
	if (relation->next == relation->nrows)
		return ExecClearTuple(&reader->slot.base);
	return ExecStoreMinimalTuple(tuple_of(reader, relation->next++), &reader->slot.base, false);
}

void
set_up_relation(Joined *relation)
{
	*relation = (Joined) {.plan.type = T_SeqScan, .rows = relation->rows};
}

void
set_up_reader(Reader *reader, Joined *relation)
{
	reader->state = (PlanState) {.type = T_SeqScanState, .plan = &relation->plan, .ExecProcNode = read_row};
	reader->relation = relation;
	set_up_slot(&reader->slot, relation->copies);
}

/*
 * The relations that are joined: drawn rows, plan nodes that return them, and the slots that hold their tuples.
 */
#include "postgres.h"

#include "backend_stubs.h"
#include "executor/executor.h"
#include "join_filter/join_filter.h"
#include "miscadmin.h"

#define MAX_INNER		12000
#define MAX_OUTER		50000
#define MAX_ALIKE		1024	/* inner rows that may be in one bucket */
#define MAX_GROUPS		5
#define MAX_PAIRS		100000
#define MAX_LENGTH		65536
#define MAX_INNER_SPACE (8 << 20)
#define MAX_OUTER_SPACE (16 << 20)
#define HEADER			MAXALIGN(SizeofMinimalTupleHeader)
#define LEAST_LENGTH	((int) (HEADER + sizeof(Content) + 1))

/* The data of a tuple. Its last byte is another one. */
typedef struct Content
{
	int			number;
	bool		is_outer;
} Content;

static Row	inner_rows[MAX_INNER];
static Row	outer_rows[MAX_OUTER];
static char inner_tuple[MAX_LENGTH];
static char outer_tuple[MAX_LENGTH];

Joined		inner = {.rows = inner_rows};
Joined		outer = {.rows = outer_rows};

int			work_mem;
double		hash_mem_multiplier = 1;

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
	Joined   *owner = content->is_outer ? &outer : &inner;
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
tuple_of(Joined *relation, int number)
{
	MinimalTuple tuple = (MinimalTuple) (relation == &outer ? outer_tuple : inner_tuple);
	Content    *content = (Content *) ((char *) tuple + HEADER);

	memset(tuple, 0, HEADER);
	tuple->t_len = relation->rows[number].length;
	content->number = number;
	content->is_outer = relation == &outer;
	((char *) tuple)[tuple->t_len - 1] = (char) number;
	return tuple;
}

bool
qualify(const Settings *settings, const Row *outer_row, const Row *inner_row)
{
	return !outer_row->null && !inner_row->null && outer_row->key == inner_row->key &&
		!(settings->conditional && ((outer_row - outer_rows) + (inner_row - inner_rows)) % 3 == 0);
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

static const TupleTableSlotOps operations = {.clear = clear_slot};

void
set_up_slot(MinimalTupleTableSlot *slot)
{
	static TupleDescData descriptor = {.natts = 0};
	static dlist_head pieces = DLIST_STATIC_INIT(pieces);

	MinimalTupleTableSlot empty = {.base.type = T_TupleTableSlot, .base.tts_flags = TTS_FLAG_EMPTY,
	.base.tts_ops = &operations, .base.tts_tupleDescriptor = &descriptor};

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
	MinimalTuple tuple = ((MinimalTupleTableSlot *) slot)->mintuple;

	*shouldFree = (slot == &outer.slot.base && outer.copies) || (slot == &inner.slot.base && inner.copies);
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
	Joined   *relation = (Joined *) state;

	on_read(relation);
	while (relation->next < relation->nrows && !is_present(relation, relation->next))
		relation->next++;
	if (relation->next == relation->nrows)
		return ExecClearTuple(&relation->slot.base);
	return ExecStoreMinimalTuple(tuple_of(relation, relation->next++), &relation->slot.base, false);
}

static void
set_up_relation(Joined *relation)
{
	relation->state = (PlanState) {.type = T_SeqScanState, .plan = &relation->plan, .ExecProcNode = read_row};
	relation->plan = (Plan) {.type = T_SeqScan};
	set_up_slot(&relation->slot);
	relation->next = 0;
	relation->nrows = 0;
	relation->every = 0;
}

/* Drawing */

/* Return the hash value whose murmurhash32() is given. */
static uint32
unmixed(uint32 mixed)
{
	mixed ^= mixed >> 16;
	mixed *= 0x7ed1b41d;
	mixed ^= mixed >> 13 ^ mixed >> 26;
	mixed *= 0xa5cb9243;
	return mixed ^ mixed >> 16;
}

/* Return the number whose product with this odd one is 1, by Newton's method. */
static uint32
inverse(uint32 odd)
{
	uint32		found = odd;		/* right in its lowest three bits; each step doubles their number */

	for (int i = 0; i < 4; i++)
		found *= 2 - odd * found;
	return found;
}

/* What the input says about rows that are alike. */
typedef struct Alike
{
	uint32		how;
	uint32		key;
	uint32		variety;
	int			length;
	int			count;
} Alike;

static Alike
draw_alike(Input *input)
{
	static const int powers[] = {10, 11, 9, 8, 12, 10, 11, 9, 7, 5, 3, 1, 0, 10, 13, 15};
	Alike		alike;
	uint32		count = byte(input);

	alike.count = (1 << powers[count % lengthof(powers)]) + (int) (count / lengthof(powers) % 3) - 1;
	alike.length = byte(input);
	alike.how = byte(input);
	alike.variety = byte(input);
	alike.key = (byte(input) << 8 | byte(input)) * 2654435769u;
	return alike;
}

/*
 * Generate inner rows of one length, with keys that are random, equal, differ in a few bits, or give batch numbers
 * that do so.
 */
static void
add_inner_rows(Alike group, uint32 salt, Size *space)
{
	int			length = LEAST_LENGTH + group.length * (group.how & 0x10 ? group.how & 0x20 ? 256 : 16 : 1);
	int			kind = group.how % 4;

	if (kind != 0)
		group.count = Min(group.count, MAX_ALIKE);
	for (uint32 i = 0; i < group.count && inner.nrows < MAX_INNER && *space + length < MAX_INNER_SPACE; i++)
	{
		Row		   *row = &inner.rows[inner.nrows++];

		*row = (Row) {.length = length, .null = (group.how & 0xc0) == 0xc0};
		if (kind == 0)
			row->key = murmurhash32(group.key + i);
		else
			row->key = kind == 1 ? group.key : group.key ^ i << group.variety % 32;
		if (kind == 3)
			row->key = unmixed(row->key) * inverse(salt);
		if (row->null)
			row->key = 0;
		*space += length;
	}
}

/* Generate outer rows whose keys are a mixture of those of inner rows and random ones, or only one of these. */
static void
add_outer_rows(Alike group, Size *space, int *npairs)
{
	uint32		among = group.variety / 2 + 2;	/* rows with a single one of another kind */
	int			length = LEAST_LENGTH + group.length;
	int			kind = group.how % 4;

	for (uint32 i = 0; i < group.count && outer.nrows < MAX_OUTER && *space + length < MAX_OUTER_SPACE; i++)
	{
		Row		   *row = &outer.rows[outer.nrows];
		bool		as_inner = inner.nrows > 0 && (kind == 0 ? (i % among == 0) == group.variety % 2 : kind != 3);

		*row = (Row) {.length = length, .null = (group.how & 0xc0) == 0xc0};
		if (row->null)
			row->key = 0;
		else if (as_inner)
			row->key = inner.rows[(kind == 2 ? group.key : group.key + i) % inner.nrows].key;
		else
			row->key = murmurhash32(~(group.key + i));
		*npairs += inner_rows_with(row->key);
		if (*npairs > MAX_PAIRS)
			return;
		*space += length;
		outer.nrows++;
	}
}

/* Return a number that is often the right one. */
static double
estimate(uint32 how, double right)
{
	return how < 128 ? right : Max(floor(ldexp(right, (int) (how % 16) - 11)), 1);
}

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

/* Generate the rows of both relations, and what the planner and statistics say about them. */
static void
add_rows(const Alike *groups, int ngroups, uint32 rows_how, uint32 width_how, Settings *settings)
{
	uint32		salt = murmurhash32(settings->hash.plan.plan_node_id) | 1;
	Size		inner_space = 0;
	Size		outer_space = 0;
	int			npairs = 0;

	for (int i = 0; i < ngroups; i++)
		if (i != 1 && !(i > 1 && groups[i].how & 4))
			add_inner_rows(groups[i], salt, &inner_space);
	index_inner_rows();
	for (int i = 0; i < ngroups; i++)
		if (i == 1 || (i > 1 && groups[i].how & 4))
			add_outer_rows(groups[i], &outer_space, &npairs);

	inner.plan.plan_rows = estimate(rows_how, inner.nrows);
	inner.plan.plan_width = estimate(width_how, inner.nrows == 0 ? 8 : inner_space / inner.nrows - HEADER);
	settings->hash.skewTable = settings->nmcvs;
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
	int			ngroups = 2;
	uint32		rows_how;
	uint32		width_how;
	int			nmcvs;

	set_up_relation(&inner);
	set_up_relation(&outer);
	settings->jointype = types[kind % 8];
	settings->mode = modes[kind / 8 % 8];
	work_mem = 64 << kind / 64;
	settings->conditional = ways & 1;
	inner.copies = ways & 4;
	outer.copies = ways & 8;
	stub_out_of_memory = (ways & 0xf0) == 0xf0;

	/* The first group has inner rows, the second outer ones. */
	groups[0] = draw_alike(input);
	groups[1] = draw_alike(input);
	rows_how = byte(input);
	width_how = byte(input);
	nmcvs = (int) (byte(input) % 64) - 32;
	settings->nmcvs = Max(nmcvs, 0);
	settings->excluded = (double) (UINT64CONST(1) << byte(input) % 40);
	settings->matched = (double) (UINT64CONST(1) << byte(input) % 40);
	settings->hash = (Hash) {.plan.type = T_Hash, .plan.plan_node_id = byte(input), .plan.lefttree = &inner.plan};
	settings->hash.plan.total_cost = ways & 2;	/* more than the outer relation's startup cost? */
	draw_scans(input, settings);
	for (int more = byte(input) % 4; more > 0; more--)
		groups[ngroups++] = draw_alike(input);
	add_rows(groups, ngroups, rows_how, width_how, settings);
}

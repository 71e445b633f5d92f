/*
 * Rows of both relations, drawn from the input.
 */
#include "postgres.h"

#include "backend_stubs.h"
#include "hash_join/hash_join.h"
#include "miscadmin.h"

#define MAX_ALIKE		1024	/* inner rows that may be in one bucket */

int			work_mem;
double		hash_mem_multiplier = 1;

/* What was drawn so far: bytes of tuples, and pairs with an equal key. */
static Size inner_space;
static Size outer_space;
static int	npairs;

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

/* Set what a byte says about the plan and about both relations, which get their rows later. Bit 1 is the caller's. */
void
begin_join(JoinType type, HashJoinBloomMode mode, uint32 ways)
{
	set_up_relation(&inner);
	set_up_relation(&outer);
	planned.type = type;
	planned.plan = (HashJoin) {.join.plan.type = T_HashJoin, .bloom_mode = mode};
	planned.conditional = ways & 1;
	inner.copies = ways & 4;
	outer.copies = ways & 8;
	stub_out_of_memory = (ways & 0xf0) == 0xf0;
}

Alike
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
add_inner_rows(Alike group, const Limits *limits)
{
	uint32		salt = murmurhash32(planned.hash.plan.plan_node_id) | 1;
	int			length = LEAST_LENGTH + group.length * (group.how & 0x10 ? group.how & 0x20 ? 256 : 16 : 1);
	int			kind = group.how % 4;

	if (kind != 0)
		group.count = Min(group.count, MAX_ALIKE);
	group.count = Min(group.count, limits->inner_rows - inner.nrows);
	for (uint32 i = 0; i < group.count && inner_space + length < limits->inner_space; i++)
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
		inner_space += length;
	}
}

/* Generate outer rows whose keys are a mixture of those of inner rows and random ones, or only one of these. */
static void
add_outer_rows(Alike group, const Limits *limits)
{
	uint32		among = group.variety / 2 + 2;	/* rows with a single one of another kind */
	int			length = LEAST_LENGTH + group.length;
	int			kind = group.how % 4;

	group.count = Min(group.count, limits->outer_rows - outer.nrows);
	for (uint32 i = 0; i < group.count && outer_space + length < limits->outer_space; i++)
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
		npairs += inner_rows_with(row->key);
		if (npairs > limits->pairs)
			return;
		outer_space += length;
		outer.nrows++;
	}
}

/* Return a number that is often the right one. */
static double
estimate(uint32 how, double right)
{
	return how < 128 ? right : Max(floor(ldexp(right, (int) (how % 16) - 11)), 1);
}

/* Draw what the planner decides and expects of both relations together. */
void
draw_plan(Input *input)
{
	planned.plan.bloom_excluded = (double) (UINT64CONST(1) << byte(input) % 40);
	planned.plan.bloom_matched = (double) (UINT64CONST(1) << byte(input) % 40);
	planned.hash = (Hash) {.plan.type = T_Hash, .plan.plan_node_id = byte(input), .plan.lefttree = &inner.plan};
}

/* Generate the rows of both relations. The first group has inner rows, the second outer ones, each other one either. */
static void
add_rows(const Alike *groups, int ngroups, const Limits *limits)
{
	inner_space = outer_space = npairs = 0;
	for (int i = 0; i < ngroups; i++)
		if (i != 1 && !(i > 1 && groups[i].how & 4))
			add_inner_rows(groups[i], limits);
	index_inner_rows();
	for (int i = 0; i < ngroups; i++)
		if (i == 1 || (i > 1 && groups[i].how & 4))
			add_outer_rows(groups[i], limits);
}

/* Draw more groups than the two that are there, and generate the rows of all. */
void
draw_rows(Input *input, Alike groups[MAX_GROUPS], const Limits *limits)
{
	int			ngroups = 2;

	for (int more = byte(input) % 4; more > 0; more--)
		groups[ngroups++] = draw_alike(input);
	add_rows(groups, ngroups, limits);
}

/* Set what the planner expects of the inner relation. */
void
estimate_inner(uint32 rows_how, uint32 width_how)
{
	int			header = MAXALIGN(SizeofMinimalTupleHeader);

	inner.plan.plan_rows = estimate(rows_how, inner.nrows);
	inner.plan.plan_width = estimate(width_how, inner.nrows == 0 ? 8 : inner_space / inner.nrows - header);
}

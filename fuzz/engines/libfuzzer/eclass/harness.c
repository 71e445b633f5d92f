/*
 * libFuzzer harness for src/backend/optimizer/path/equivclass.c. The input determines a query. Its equivalence
 * classes are created, merged and given children, and each look-up in them is compared with a linear search.
 *
 * As in the planner, classes are merged first, then left joins are removed, then children are added. Look-ups occur
 * at any time. An operation at the wrong time has no effect. One byte selects an operation, and up to a dozen bytes
 * follow; any bytes are valid.
 *
 * Memory of a join order search is freed after each look-up, so AddressSanitizer detects remaining pointers to it.
 */
#include "postgres.h"

#include "catalog/pg_type_d.h"
#include "model.h"
#include "nodes/makefuncs.h"
#include "planner_stubs.h"
#include "questions.h"
#include "utils/memutils.h"

#define RANDOM_FUNCTION 1598
#define MAX_FIRST_CLAUSES 16
#define MAX_CHILDREN_AT_ONCE 12

static const uint8_t *next;
static const uint8_t *end;

int
byte(void)
{
	return next < end ? *next++ : 0;
}

void
on_warning(const char *text)
{
	fatal("unexpected warning: %s", text);
}

static void
finish_merging(void)
{
	if (!root->ec_merging_done)
		model_finish_merging();
}

static bool
has_children(void)
{
	return root->append_rel_list != NIL;
}

static void
op_equate(void)
{
	RestrictInfo *rinfo;

	if (root->ec_merging_done)
		return;
	rinfo = random_clause();
	if (rinfo != NULL)
		model_equate(rinfo);
}

static void
op_create_sort_class(void)
{
	int			choice = byte();
	Expr	   *expr = random_item(choice % 4 == 0);

	if (choice & 128)
		expr = (Expr *) makeFuncExpr(RANDOM_FUNCTION, INT4OID, NIL, InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
	check_sort_class(expr, some_collation(expr), 1 + choice % 3, NULL, true);
}

static void
op_remove_left_join(void)
{
	int			relid;
	int			ojrelid;

	if (has_children() || has_derived_clauses())
		return;
	finish_merging();
	if (query_remove_rel(byte(), &relid, &ojrelid))
		model_remove_left_join(relid, ojrelid);
}

/* Add children to a relation, mostly with the next relids. */
static void
add_children(RelOptInfo *parent, int number, int place, bool union_all)
{
	int			relid = place == 0 ? root->simple_rel_array_size : place;

	for (; number > 0 && relid < MAX_RELID; relid++)
	{
		if (relid <= list_length(root->parse->rtable) ||
			(relid < root->simple_rel_array_size && root->simple_rel_array[relid] != NULL))
			continue;
		model_add_child(query_add_child(parent, relid, union_all));
		number--;
	}
}

/* Add children to some base relations, or to their children. */
static void
op_add_children(void)
{
	int			kind = byte();
	int			parents = byte();
	int			number = 1 + byte() % MAX_CHILDREN_AT_ONCE;
	int			place = kind & 3 ? 0 : byte() % MAX_RELID;
	int			base = -1;

	finish_merging();
	while ((base = bms_next_member(root->all_baserels, base)) >= 0)
	{
		int			parent = kind & 4 ? random_descendant(base) : base;

		if (parents & 1 << base)
			add_children(root->simple_rel_array[parent], number, place, kind > 192);
	}
}

static int
depth(const RelOptInfo *rel)
{
	return rel->parent ? 1 + depth(rel->parent) : 0;
}

/*
 * Return whether the relids are children of one depth, whose columns are plain columns, as in a partitionwise join.
 */
static bool
is_child_join(Relids relids)
{
	int			relid = bms_next_member(relids, -1);
	int			levels = relid < 0 ? 0 : depth(root->simple_rel_array[relid]);

	for (; relid >= 0; relid = bms_next_member(relids, relid))
	{
		if (is_union_all(relid) || depth(root->simple_rel_array[relid]) != levels)
			return false;
	}
	return levels > 0 && bms_membership(relids) == BMS_MULTIPLE;
}

static void
op_add_child_join(void)
{
	Relids		relids = random_join();

	if (is_child_join(relids))
		model_add_child_join(query_rel_of(relids));
}

typedef struct Operation
{
	void		(*call) (void);
	bool		searches;		/* whether it allocates in the memory of a join order search */
} Operation;

/* Operations listed twice are more frequent. */
static const Operation operations[] = {
	{op_equate}, {op_equate}, {op_equate}, {op_equate}, {op_equate}, {op_create_sort_class},
	{op_remove_left_join}, {op_add_children}, {op_add_children},
	{op_add_child_join, true}, {op_add_child_join, true},
	{op_find_members, true}, {op_find_matching_member, true}, {op_find_computable_member, true},
	{op_find_sort_class, true}, {op_find_join_clauses, true}, {op_find_join_clauses, true},
	{op_find_column_clauses, true}, {op_ask_class, true}, {op_ask_join, true},
};

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	next = data;
	end = data + size;
	CurrentMemoryContext = query_context;
	implied_clauses = NIL;
	query_begin();
	model_begin();
	for (int number = byte() % MAX_FIRST_CLAUSES; number > 0; number--)
		op_equate();
	if (byte() % 4 == 0)
		op_remove_left_join();
	while (next < end)
	{
		Operation	operation = operations[byte() % lengthof(operations)];

		CurrentMemoryContext = operation.searches ? search_context : query_context;
		operation.call();
		MemoryContextReset(search_context);
		CurrentMemoryContext = query_context;
	}
	check_classes();
	MemoryContextReset(query_context);
	return 0;
}

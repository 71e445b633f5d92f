/*
 * Sets of relations, and joins of them.
 */
#include "postgres.h"

#include "query.h"

Relids
top_parents(Relids relids)
{
	Relids		result = NULL;
	int			relid = -1;

	while ((relid = bms_next_member(relids, relid)) >= 0)
	{
		RelOptInfo *rel = root->simple_rel_array[relid];

		result = bms_add_member(result, rel && rel->top_parent ? rel->top_parent->relid : relid);
	}
	return result;
}

/* Return the parents of the relations; topmost relations stay. */
static Relids
parents(Relids relids)
{
	Relids		result = NULL;
	int			relid = -1;

	while ((relid = bms_next_member(relids, relid)) >= 0)
	{
		RelOptInfo *rel = root->simple_rel_array[relid];

		result = bms_add_member(result, rel && rel->parent ? rel->parent->relid : relid);
	}
	return result;
}

/* Return the relation with these relids, or make the join and its parents. */
RelOptInfo *
query_rel_of(Relids relids)
{
	RelOptInfo *joinrel;
	Relids		above = parents(relids);
	int			relid;

	if (bms_get_singleton_member(relids, &relid))
		return root->simple_rel_array[relid];

	joinrel = makeNode(RelOptInfo);
	joinrel->reloptkind = RELOPT_JOINREL;
	joinrel->relids = relids;
	if (!bms_equal(above, relids))
	{
		joinrel->reloptkind = RELOPT_OTHER_JOINREL;
		joinrel->parent = query_rel_of(above);
		joinrel->top_parent = joinrel->parent->top_parent ? joinrel->parent->top_parent : joinrel->parent;
		joinrel->top_parent_relids = joinrel->top_parent->relids;
	}
	return joinrel;
}

/* Return random relids of the query. */
Relids
random_relids(void)
{
	int			number = byte() % 8;
	Relids		result = NULL;

	for (int i = 0; i < number; i++)
	{
		int			choice = byte();
		RelOptInfo *rel = query_rel(choice, choice % 4 == 0);

		result = bms_add_member(result, rel->relid);
		if (choice & 128)
			result = bms_add_members(result, root->outer_join_rels);
	}
	return result;
}

/* Return a base relation, or preferably a relation that descends from it. */
int
random_descendant(int base)
{
	int			choice = byte();
	int			relid = base;

	if (choice % 8 == 0)
		return base;
	for (int i = choice; i < choice + root->simple_rel_array_size; i++)
	{
		relid = i % root->simple_rel_array_size;
		if (root->simple_rel_array[relid] != NULL && root->simple_rel_array[relid]->top_parent_relids != NULL &&
			bms_is_member(base, root->simple_rel_array[relid]->top_parent_relids))
			return relid;
	}
	return base;
}

/* Return the relids of a possible join: some base relations, each replaced by a child or not. */
Relids
random_join(void)
{
	int			chosen = byte();
	Relids		result = NULL;
	int			base = -1;

	while ((base = bms_next_member(root->all_baserels, base)) >= 0)
	{
		if (chosen & 1 << base)
			result = bms_add_member(result, random_descendant(base));
	}
	return result;
}

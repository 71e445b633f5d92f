/*
 * Look-ups of classes. Each is compared with a search of all classes of the model.
 */
#include "postgres.h"

#include "model.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/paths.h"
#include "planner_stubs.h"

static bool
is_sort_expr(const ModelMember *member, Expr *expr, Relids rel)
{
	if (member->parent != NULL && !bms_equal(member->relids, rel))
		return false;
	if (member->is_const && member->jdomain != linitial(root->join_domains))
		return false;
	return member->type == exprType((Node *) expr) && equal(member->expr, expr);
}

static ModelClass *
sort_class(Expr *expr, Oid collation, Index sortref, Relids rel)
{
	foreach_ptr(ModelClass, class, classes)
	{
		if (class->has_volatile && (sortref == 0 || sortref != class->sortref))
			continue;
		if (class->collation != collation || class->opfamily != item_opfamily(exprType((Node *) expr)))
			continue;
		foreach_ptr(ModelMember, member, class->members)
		{
			if (is_sort_expr(member, expr, rel))
				return class;
		}
	}
	return NULL;
}

EquivalenceClass *
check_sort_class(Expr *expr, Oid collation, Index sortref, Relids rel, bool create)
{
	Oid			type = exprType((Node *) expr);
	Expr	   *exposed = canonicalize_ec_expression(expr, type, collation);
	ModelClass *expected = sort_class(exposed, collation, sortref, rel);
	EquivalenceClass *found = get_eclass_for_sort_expr(root, expr, list_make1_oid(item_opfamily(type)), type, collation,
													   sortref, rel, create);

	if (expected != NULL || !create)
	{
		if (found != (expected ? expected->ec : NULL))
			fatal("%s", expected == NULL ? "a class found for a sort expression that is in none" :
				  found == NULL ? "no class found for a sort expression" : "another class found for a sort expression");
	}
	else
	{
		MemoryContext outer = MemoryContextSwitchTo(query_context);

		model_sort_class(found, copyObject(exposed), collation, sortref);
		MemoryContextSwitchTo(outer);
	}
	return found;
}

/* Members of children prove nothing, because different rows of a relation are in different children. */
void
check_known_equal(Expr *one, Expr *other)
{
	bool		expected = false;

	foreach_ptr(ModelClass, class, classes)
	{
		bool		has_one = false;
		bool		has_other = false;

		foreach_ptr(ModelMember, member, class->members)
		{
			if (member->parent != NULL || class->has_volatile)
				continue;
			if (equal(one, member->expr))
				has_one = true;
			else if (equal(other, member->expr))
				has_other = true;
		}
		expected |= has_one && has_other;
	}
	if (exprs_known_equal(root, (Node *) one, (Node *) other) != expected)
		fatal("two expressions are %sknown to be equal", expected ? "not " : "");
}

static bool
joins_others(const ModelClass *class, Relids relids)
{
	if (class->has_const || list_length(class->members) <= 1 || bms_is_subset(class->relids, relids))
		return false;
	foreach_ptr(ModelMember, member, class->members)
	{
		if (member->parent == NULL && !bms_overlap(member->relids, relids))
			return true;
	}
	return false;
}

/* Compare the classes that can order a relation for a merge join. */
void
check_usefulness(RelOptInfo *rel)
{
	foreach_ptr(ModelClass, class, classes)
	{
		bool		expected = joins_others(class, rel->top_parent_relids ? rel->top_parent_relids : rel->relids);

		if (eclass_useful_for_merging(root, class->ec, rel) != expected)
			fatal("a class is %suseful for merging", expected ? "not " : "");
	}
}

/* Compare the pairs of relations that join order search considers. Members of children count, but only by number. */
void
check_relevance(RelOptInfo *rel, RelOptInfo *other)
{
	bool		relevant = false;
	bool		joined = false;

	foreach_ptr(ModelClass, class, classes)
	{
		if (list_length(class->members) <= 1 || !mentions_any(class, rel->relids))
			continue;
		relevant |= !bms_is_subset(class->relids, rel->relids);
		joined |= mentions_any(class, other->relids);
	}
	if (has_relevant_eclass_joinclause(root, rel) != relevant)
		fatal("a relation has %s class that joins it", relevant ? "no" : "a");
	if (have_relevant_eclass_joinclause(root, rel, other) != joined)
		fatal("two relations have %s class that joins them", joined ? "no" : "a");
}

/*
 * Purposes of derived clauses: joins, columns that an index may be searched by, and constants.
 */
#include "postgres.h"

#include "model.h"
#include "optimizer/paths.h"
#include "planner_stubs.h"

static bool
is_column(const Expr *expr)
{
	return IsA(expr, Var) || (IsA(expr, RelabelType) && IsA(((const RelabelType *) expr)->arg, Var));
}

/* Check the clauses of a class for a join, which follow `seen` others, and return the new number of clauses. */
static int
check_class_joins(ModelClass *class, Relids outer, Relids inner, List *found, int seen)
{
	List	   *outers = NIL;
	List	   *inners = NIL;
	List	   *news = NIL;
	ModelMember *best_outer = NULL;
	ModelMember *best_inner = NULL;
	int			best = -1;

	foreach_ptr(ModelMember, member, class->members)
	{
		if (computable(member, outer))
			outers = lappend(outers, member);
		else if (computable(member, inner))
			inners = lappend(inners, member);
		else if (computable(member, bms_union(outer, inner)))
			news = lappend(news, member);
	}
	foreach_ptr(ModelMember, one, outers)
	{
		foreach_ptr(ModelMember, other, inners)
		{
			int			score = is_column(one->expr) + is_column(other->expr) + (one->type == other->type);

			if (score <= best)
				continue;
			best_outer = one;
			best_inner = other;
			best = score;
		}
	}
	if (best >= 0)
		check_clause(class, best_outer, best_inner, class->ec, found, seen++);
	if (news != NIL && (outers != NIL || inners != NIL))
		news = lappend(news, linitial(list_concat_copy(outers, inners)));
	for (int i = 1; i < list_length(news); i++)
		check_clause(class, list_nth(news, i - 1), list_nth(news, i), NULL, found, seen++);
	return seen;
}

void
check_join_clauses(Relids outer, Relids inner)
{
	RelOptInfo *inner_rel = query_rel_of(inner);
	Relids		joined = bms_union(outer, inner);
	List	   *found = generate_join_implied_equalities(root, joined, outer, inner_rel, NULL);
	int			seen = 0;

	foreach_ptr(ModelClass, class, classes)
	{
		if (class->has_const || list_length(class->members) <= 1 || !mentions_any(class, outer) ||
			!mentions_any(class, top_parents(inner)))
			continue;
		check_members(class, joined);
		seen = check_class_joins(class, outer, inner, found, seen);
	}
	if (seen < list_length(found))
		fatal("%d clauses derived, and %d expected", list_length(found), seen);
}

static bool
is_attribute(PlannerInfo *planner, RelOptInfo *rel, EquivalenceClass *ec, EquivalenceMember *em, void *arg)
{
	return IsA(em->em_expr, Var) && ((Var *) em->em_expr)->varattno == *(int *) arg;
}

static ModelMember *
column_of(const ModelClass *class, RelOptInfo *rel, int attribute)
{
	foreach_ptr(ModelMember, member, class->members)
	{
		if (bms_equal(member->relids, rel->relids) && IsA(member->expr, Var) &&
			((Var *) member->expr)->varattno == attribute)
			return member;
	}
	return NULL;
}

static Relids
with_parents(RelOptInfo *rel)
{
	Relids		result = NULL;

	for (; rel != NULL; rel = rel->parent)
		result = bms_add_members(result, rel->relids);
	return result;
}

/* Compare the clauses for an index on a column: equalities with all members of its class in other relations. */
void
check_column_clauses(RelOptInfo *rel, int attribute, Relids prohibited)
{
	Relids		avoided = bms_union(with_parents(rel), prohibited);
	List	   *found = generate_implied_equalities_for_column(root, rel, is_attribute, &attribute, prohibited);
	int			seen = 0;

	foreach_ptr(ModelClass, class, classes)
	{
		ModelMember *column = column_of(class, rel, attribute);

		if (seen > 0 || column == NULL || class->has_const || list_length(class->members) <= 1)
			continue;
		check_members(class, rel->relids);
		foreach_ptr(ModelMember, other, class->members)
		{
			if (other != column && other->parent == NULL && !bms_overlap(other->relids, avoided))
				check_clause(class, column, other, class->ec, found, seen++);
		}
	}
	if (seen < list_length(found))
		fatal("%d clauses derived for a column, and %d expected", list_length(found), seen);
}

/* Compare the clauses between members and the constant of their class, which selectivity estimation uses. */
void
check_constant_clauses(const ModelClass *class)
{
	foreach_ptr(ModelMember, member, class->members)
	{
		RestrictInfo *expected = NULL;

		if (!class->has_const || member->is_const || member->parent != NULL)
			continue;
		foreach_ptr(RestrictInfo, rinfo, class->has_derived_consts ? implied_clauses : NIL)
		{
			if (rinfo->left_em == member->em && rinfo->right_em->em_is_const)
				expected = rinfo;
		}
		if (find_derived_clause_for_ec_member(class->ec, member->em) != expected)
			fatal("%s", expected ? "a derived clause was lost" : "a clause derived before the removal of a join is left");
	}
}

/*
 * Look-ups of classes and members. Each is compared with a search of the model's lists.
 */
#include "postgres.h"

#include "lookup.h"
#include "model.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "planner_stubs.h"

static void
check_member(const ModelMember *member, const EquivalenceMember *em)
{
	if (!bms_equal(em->em_relids, member->relids))
		fatal("a member has other relids");
	if (em->em_is_child != (member->parent != NULL) || (member->parent && em->em_parent != member->parent->em))
		fatal("a member has another parent");
	if (em->em_is_const != member->is_const || em->em_datatype != member->type || em->em_jdomain != member->jdomain ||
		!equal(em->em_expr, member->expr))
		fatal("a member is another expression");
}

/* Check that the look-up returns the expected members in order. Members returned for the first time are recorded. */
void
check_members(const ModelClass *class, Relids relids)
{
	List	   *found = lookup_members(root, class->ec, relids);
	int			seen = 0;

	foreach_ptr(ModelMember, member, class->members)
	{
		EquivalenceMember *em;

		if (!lookup_gives(member->parent != NULL, member->relids, relids))
			continue;
		if (seen == list_length(found))
			fatal("%d members found, and more expected", seen);
		em = list_nth(found, seen++);
		if (member->em == NULL)
			member->em = em;
		if (member->em != em)
			fatal("member %d found is not the one expected", seen);
		check_member(member, em);
	}
	if (seen < list_length(found))
		fatal("%d members found, and %d expected", list_length(found), seen);
}

/* Check that the classes equal those of the model, in order, and that cached facts match all their members. */
void
check_classes(void)
{
	if (list_length(root->eq_classes) != list_length(classes))
		fatal("%d classes where %d are expected", list_length(root->eq_classes), list_length(classes));
	for (int i = 0; i < list_length(classes); i++)
	{
		ModelClass *class = list_nth(classes, i);

		if (list_nth(root->eq_classes, i) != class->ec)
			fatal("class %d is another one", i);
		if (!bms_equal(class->ec->ec_relids, class->relids) || class->ec->ec_has_const != class->has_const ||
			class->ec->ec_has_volatile != class->has_volatile)
			fatal("class %d has other properties", i);
		check_members(class, NULL);
	}
}

static Expr *
unlabeled(Expr *expr)
{
	return IsA(expr, RelabelType) ? ((RelabelType *) expr)->arg : expr;
}

/* Return whether a look-up for sorting considers the member. */
static bool
sortable(const ModelMember *member, Relids relids)
{
	return !member->is_const && (member->parent == NULL || computable(member, relids));
}

static void
check_found(const ModelMember *expected, const EquivalenceMember *found)
{
	if (found != (expected ? expected->em : NULL))
		fatal("%s", expected == NULL ? "a member found where none is expected" :
			  found == NULL ? "a member not found" : "another member found");
}

void
check_matching_member(const ModelClass *class, Expr *expr, Relids relids)
{
	ModelMember *expected = NULL;

	foreach_ptr(ModelMember, member, class->members)
	{
		if (sortable(member, relids) && equal(unlabeled(member->expr), unlabeled(expr)))
		{
			expected = member;
			break;
		}
	}
	check_members(class, relids);
	check_found(expected, find_ec_member_matching_expr(class->ec, expr, relids));
}

static bool
has_all_columns(List *columns, Expr *expr)
{
	foreach_ptr(Var, var, pull_var_clause((Node *) expr, 0))
	{
		if (!list_member(columns, var))
			return false;
	}
	return true;
}

void
check_computable_member(const ModelClass *class, List *exprs, Relids relids)
{
	List	   *columns = pull_var_clause((Node *) exprs, 0);
	ModelMember *expected = NULL;

	foreach_ptr(ModelMember, member, class->members)
	{
		if (sortable(member, relids) && has_all_columns(columns, member->expr))
		{
			expected = member;
			break;
		}
	}
	check_members(class, relids);
	check_found(expected, find_computable_ec_member(root, class->ec, exprs, relids, false));
}

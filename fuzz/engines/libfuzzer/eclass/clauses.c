/*
 * Clauses derived from classes: each pair of members has one clause, which is created on first use and then reused.
 */
#include "postgres.h"

#include "model.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "planner_stubs.h"

static bool
compares(const ModelClause *clause, const ModelMember *one, const ModelMember *other, EquivalenceClass *parent_ec)
{
	return clause->parent_ec == parent_ec &&
		((clause->left == one && clause->right == other) || (clause->left == other && clause->right == one));
}

static ModelClause *
find_clause(const ModelClass *class, const ModelMember *one, const ModelMember *other, EquivalenceClass *parent_ec)
{
	foreach_ptr(ModelClause, clause, class->sources)
	{
		if (compares(clause, one, other, parent_ec))
			return clause;
	}
	foreach_ptr(ModelClause, clause, class->derived)
	{
		if (compares(clause, one, other, parent_ec))
			return clause;
	}
	return NULL;
}

/* Add a new clause. Different clauses must not share a serial number, or one of them may not be enforced. */
static ModelClause *
add_clause(ModelClass *class, ModelMember *one, ModelMember *other, EquivalenceClass *parent_ec, int serial)
{
	MemoryContext outer = MemoryContextSwitchTo(query_context);
	ModelClause *clause = palloc(sizeof(ModelClause));

	*clause = (ModelClause) {.left = one, .right = other, .parent_ec = parent_ec, .serial = serial};
	class->derived = lappend(class->derived, clause);
	MemoryContextSwitchTo(outer);
	return clause;
}

static void
check_new_serial(int serial)
{
	foreach_ptr(ModelClass, class, classes)
	{
		foreach_ptr(ModelClause, clause, class->sources)
		{
			if (clause->serial == serial)
				fatal("a new clause has the serial number %d of a source", serial);
		}
		foreach_ptr(ModelClause, clause, class->derived)
		{
			if (clause->serial == serial)
				fatal("a new clause has the serial number %d of another one", serial);
		}
	}
}

/*
 * Return the clause for two members, which has this serial number. A clause of children implies one of their parents.
 */
static ModelClause *
expected_clause(ModelClass *class, ModelMember *one, ModelMember *other, EquivalenceClass *parent_ec, int serial)
{
	ModelClause *clause = find_clause(class, one, other, parent_ec);

	if (clause != NULL)
	{
		if (clause->serial != serial)
			fatal("a clause has serial number %d, not %d", serial, clause->serial);
		return clause;
	}
	if (one->parent || other->parent)
		expected_clause(class, one->parent ? one->parent : one, other->parent ? other->parent : other, parent_ec,
						serial);
	else
		check_new_serial(serial);
	return add_clause(class, one, other, parent_ec, serial);
}

/* Check a derived clause. Source clauses may differ from their members, which may expose another collation. */
static void
check_new_clause(const RestrictInfo *rinfo)
{
	if (!equal(get_leftop(rinfo->clause), rinfo->left_em->em_expr) ||
		!equal(get_rightop(rinfo->clause), rinfo->right_em->em_expr))
		fatal("a clause compares other expressions than its members");
}

/* Check that the next clause found is the one for two members. */
void
check_clause(ModelClass *class, ModelMember *one, ModelMember *other, EquivalenceClass *parent_ec, List *found, int i)
{
	RestrictInfo *rinfo;
	ModelClause *expected;

	if (i >= list_length(found))
		fatal("%d clauses derived, and more expected", i);
	rinfo = list_nth(found, i);
	expected = expected_clause(class, one, other, parent_ec, rinfo->rinfo_serial);
	if (expected->rinfo == NULL)
	{
		check_new_clause(rinfo);
		expected->rinfo = rinfo;
	}
	if (expected->rinfo != rinfo)
		fatal("a clause was derived again");
	if ((rinfo->left_em != expected->left->em || rinfo->right_em != expected->right->em) &&
		(rinfo->left_em != expected->right->em || rinfo->right_em != expected->left->em))
		fatal("a clause compares other members");
}

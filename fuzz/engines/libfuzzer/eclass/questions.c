/*
 * The planner's look-ups of classes. Each is an operation of the harness, with arguments from the input.
 */
#include "postgres.h"

#include "catalog/pg_type_d.h"
#include "model.h"
#include "nodes/nodeFuncs.h"
#include "questions.h"

/* Return an expression of some class, perhaps of a child, or NULL. */
static Expr *
known_expr(void)
{
	ModelClass *class = model_class(byte());
	int			choice = byte() << 8 | byte();

	return class == NULL || class->members == NIL ? NULL : model_member(class, choice)->expr;
}

static Expr *
any_expr(void)
{
	int			choice = byte();
	Expr	   *expr = choice % 4 == 0 ? NULL : known_expr();

	return expr ? expr : random_item(choice & 128);
}

Oid
some_collation(Expr *expr)
{
	return exprType((Node *) expr) == TEXTOID ? text_collation(byte()) : InvalidOid;
}

/* Choose relations for both inputs of a join. Return false if there are none. */
static bool
split_join(Relids *outer, Relids *inner)
{
	Relids		joined = random_join();
	int			sides = byte();
	int			relid = -1;

	*outer = *inner = NULL;
	while ((relid = bms_next_member(joined, relid)) >= 0)
	{
		Relids	   *side = sides & 1 ? inner : outer;

		*side = bms_add_member(*side, relid);
		sides >>= 1;
	}
	return root->ec_merging_done && *outer != NULL && *inner != NULL;
}

void
op_find_members(void)
{
	ModelClass *class = model_class(byte());

	if (class != NULL)
		check_members(class, random_relids());
}

void
op_find_matching_member(void)
{
	ModelClass *class = model_class(byte());

	if (class != NULL)
		check_matching_member(class, any_expr(), random_relids());
}

void
op_find_computable_member(void)
{
	ModelClass *class = model_class(byte());
	List	   *exprs = NIL;

	for (int number = byte() % 4; number > 0; number--)
		exprs = lappend(exprs, any_expr());
	if (class != NULL)
		check_computable_member(class, exprs, random_relids());
}

void
op_find_sort_class(void)
{
	Expr	   *expr = any_expr();

	check_sort_class(expr, some_collation(expr), byte() % 4, byte() % 2 ? random_join() : NULL, false);
}

void
op_find_join_clauses(void)
{
	Relids		outer;
	Relids		inner;

	if (split_join(&outer, &inner))
		check_join_clauses(outer, inner);
}

void
op_find_column_clauses(void)
{
	RelOptInfo *rel = query_rel(byte(), false);
	int			attribute = 1 + byte() % 3;

	if (root->ec_merging_done)
		check_column_clauses(rel, attribute, byte() % 4 == 0 ? random_relids() : NULL);
}

void
op_ask_class(void)
{
	ModelClass *class = model_class(byte());

	if (class != NULL && root->ec_merging_done)
		check_constant_clauses(class);
	check_known_equal(any_expr(), any_expr());
}

void
op_ask_join(void)
{
	Relids		outer;
	Relids		inner;

	if (!split_join(&outer, &inner))
		return;
	check_usefulness(query_rel_of(outer));
	check_relevance(query_rel_of(top_parents(outer)), query_rel_of(top_parents(inner)));
}

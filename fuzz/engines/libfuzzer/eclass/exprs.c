/*
 * Expressions that can be members of equivalence classes, and clauses that make them members.
 */
#include "postgres.h"

#include "catalog/pg_collation_d.h"
#include "query.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/restrictinfo.h"
#include "planner_stubs.h"

#define INT4_PLUS 551
#define INT8_PLUS 684
#define TEXT_CONCATENATE 654

static const Oid attribute_types[ATTRIBUTES] = {INT4OID, INT4OID, INT8OID, TEXTOID, VARCHAROID};

Oid
text_collation(int choice)
{
	return choice % 2 == 0 ? DEFAULT_COLLATION_OID : C_COLLATION_OID;
}

Var *
make_query_var(int relid, int attribute)
{
	Oid			type = attribute_types[attribute - 1];
	bool		text = type == TEXTOID || type == VARCHAROID;

	return makeVar(relid, attribute, type, -1, text ? DEFAULT_COLLATION_OID : InvalidOid, 0);
}

/* Return a column of a base relation, perhaps as it is above the outer join that sets it to NULL. */
static Expr *
random_column(bool text)
{
	int			choice = byte();
	int			relid = query_rel(choice, true)->relid;
	int			attribute = byte();
	Var		   *var = make_query_var(relid, text ? 4 + attribute % 2 : 1 + attribute % 3);

	if (choice & 128 && outer_join_of(relid) != 0)
		var->varnullingrels = bms_make_singleton(outer_join_of(relid));
	if (var->vartype == VARCHAROID)
		return (Expr *) makeRelabelType((Expr *) var, TEXTOID, -1, DEFAULT_COLLATION_OID, COERCE_IMPLICIT_CAST);
	return (Expr *) var;
}

/* Return a constant. Values of text constants are never read. */
static Expr *
random_constant(Oid type)
{
	Oid			collation = type == TEXTOID ? DEFAULT_COLLATION_OID : InvalidOid;

	return (Expr *) makeConst(type, -1, collation, 8, (Datum) (byte() % 4), false, true);
}

/* Return a column, a constant, or an expression of a column and another column or constant. */
Expr *
random_item(bool text)
{
	int			kind = byte() % 8;
	Expr	   *left;
	Expr	   *right;
	Oid			type;

	if (kind == 0)
		return random_constant(text ? TEXTOID : byte() % 2 == 0 ? INT4OID : INT8OID);
	left = random_column(text);
	if (kind < 5)
		return left;
	type = exprType((Node *) left);
	right = kind == 5 ? random_constant(type) : random_column(text);
	if (exprType((Node *) right) != type)
		return left;
	return make_opclause(text ? TEXT_CONCATENATE : type == INT4OID ? INT4_PLUS : INT8_PLUS, type, false, left, right,
						 text ? DEFAULT_COLLATION_OID : InvalidOid, text ? DEFAULT_COLLATION_OID : InvalidOid);
}

static Oid
equality(Oid left, Oid right)
{
	const StubOperator *op = equality_operators;

	while (op->left != left || op->right != right)
		op++;
	return op->oid;
}

/* Return a mergejoinable clause, or NULL if it would have no column. */
RestrictInfo *
random_clause(void)
{
	int			choice = byte();
	bool		text = choice % 4 == 0;
	Expr	   *left = random_item(text);
	Expr	   *right = random_item(text);
	Oid			type = exprType((Node *) left);
	Expr	   *clause;
	RestrictInfo *rinfo;

	if (IsA(left, Const) && IsA(right, Const))
		return NULL;
	clause = make_opclause(equality(type, exprType((Node *) right)), BOOLOID, false, left, right, InvalidOid,
						   text ? text_collation(choice / 4) : InvalidOid);
	rinfo = make_restrictinfo(root, clause, true, false, false, false, 0, NULL, NULL, NULL);
	rinfo->mergeopfamilies = list_make1_oid(item_opfamily(type));
	return rinfo;
}

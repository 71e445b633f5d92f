/*
 * Stubs of planner functions outside of the files under test. Their catalogs have two integer types and text, and the
 * clauses that they build are not used further.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/inherit.h"
#include "optimizer/joininfo.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "planner_stubs.h"
#include "utils/lsyscache.h"

const StubOperator equality_operators[] = {
	{Int4EqualOperator, INT4OID, INT4OID},
	{410, INT8OID, INT8OID},
	{15, INT4OID, INT8OID},
	{416, INT8OID, INT4OID},
	{TextEqualOperator, TEXTOID, TEXTOID},
	{InvalidOid, InvalidOid, InvalidOid}
};

List	   *implied_clauses;

/* lsyscache.c */

Oid
get_opfamily_member(Oid opfamily, Oid lefttype, Oid righttype, int16 strategy)
{
	const StubOperator *op = equality_operators;

	while (op->oid != InvalidOid && (op->left != lefttype || op->right != righttype))
		op++;
	return op->oid;
}

void
op_input_types(Oid opno, Oid *lefttype, Oid *righttype)
{
	const StubOperator *op = equality_operators;

	while (op->oid != opno)
		op++;
	*lefttype = op->left;
	*righttype = op->right;
}

bool
op_hashjoinable(Oid opno, Oid inputtype)
{
	return opno != 15 && opno != 416;
}

RegProcedure
get_opcode(Oid opno)
{
	return opno;
}

bool
func_strict(Oid funcid)
{
	return true;
}

/* clauses.c */

bool
contain_volatile_functions(Node *clause)
{
	return IsA(clause, FuncExpr);
}

bool
contain_leaked_vars(Node *clause)
{
	return false;
}

bool
contain_agg_clause(Node *clause)
{
	return false;
}

bool
contain_window_function(Node *clause)
{
	return false;
}

/* initsplan.c, inherit.c, tlist.c, joinrels.c */

RestrictInfo *
build_implied_join_equality(PlannerInfo *root, Oid opno, Oid collation, Expr *item1, Expr *item2, Relids qualscope,
							Index security_level)
{
	Expr	   *clause = make_opclause(opno, BOOLOID, false, copyObject(item1), copyObject(item2), InvalidOid, collation);
	RestrictInfo *rinfo = make_restrictinfo(root, clause, true, false, false, false, security_level, qualscope,
											NULL, NULL);

	rinfo->mergeopfamilies = list_make1_oid(item_opfamily(exprType((Node *) item1)));
	return rinfo;
}

RestrictInfo *
process_implied_equality(PlannerInfo *root, Oid opno, Oid collation, Expr *item1, Expr *item2, Relids qualscope,
						 Index security_level, bool both_const)
{
	RestrictInfo *rinfo;

	if (both_const)
		return NULL;
	rinfo = build_implied_join_equality(root, opno, collation, item1, item2, qualscope, security_level);
	implied_clauses = lappend(implied_clauses, rinfo);
	return rinfo;
}

void
distribute_restrictinfo_to_rels(PlannerInfo *root, RestrictInfo *restrictinfo)
{
}

void
add_vars_to_targetlist(PlannerInfo *root, List *vars, Relids where_needed)
{
}

bool
apply_child_basequals(PlannerInfo *root, RelOptInfo *parentrel, RelOptInfo *childrel, RangeTblEntry *childRTE,
					  AppendRelInfo *appinfo)
{
	return true;
}

PathTarget *
create_empty_pathtarget(void)
{
	return makeNode(PathTarget);
}

Relids
add_outer_joins_to_relids(PlannerInfo *root, Relids input_relids, SpecialJoinInfo *sjinfo, List **pushed_down_joins)
{
	return input_relids;
}

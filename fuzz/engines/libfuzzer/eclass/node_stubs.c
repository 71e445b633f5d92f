/*
 * Stubs of functions for all kinds of nodes, limited to the kinds that the harness uses. The originals are generated
 * when PostgreSQL is built.
 */
#include "postgres.h"

#include "backend_stubs.h"
#include "nodes/primnodes.h"

/* equalfuncs.c */

static bool
equal_lists(const List *a, const List *b)
{
	if (list_length(a) != list_length(b))
		return false;
	for (int i = 0; i < list_length(a); i++)
	{
		if (IsA(a, OidList) ? list_nth_oid(a, i) != list_nth_oid(b, i) : !equal(list_nth(a, i), list_nth(b, i)))
			return false;
	}
	return true;
}

static bool
equal_vars(const Var *a, const Var *b)
{
	return a->varno == b->varno && a->varattno == b->varattno && a->vartype == b->vartype &&
		bms_equal(a->varnullingrels, b->varnullingrels);
}

static bool
equal_relabels(const RelabelType *a, const RelabelType *b)
{
	return a->resulttype == b->resulttype && a->resultcollid == b->resultcollid && equal(a->arg, b->arg);
}

bool
equal(const void *a, const void *b)
{
	if (a == b)
		return true;
	if (a == NULL || b == NULL || nodeTag(a) != nodeTag(b))
		return false;
	switch (nodeTag(a))
	{
		case T_List:
		case T_OidList:
			return equal_lists(a, b);
		case T_Var:
			return equal_vars(a, b);
		case T_Const:
			return ((const Const *) a)->consttype == ((const Const *) b)->consttype &&
				((const Const *) a)->constcollid == ((const Const *) b)->constcollid &&
				((const Const *) a)->constvalue == ((const Const *) b)->constvalue;
		case T_OpExpr:
			return ((const OpExpr *) a)->opno == ((const OpExpr *) b)->opno &&
				equal(((const OpExpr *) a)->args, ((const OpExpr *) b)->args);
		case T_FuncExpr:
			return ((const FuncExpr *) a)->funcid == ((const FuncExpr *) b)->funcid;
		case T_RelabelType:
			return equal_relabels(a, b);
		default:
			fatal("no equal() for nodes of type %d", (int) nodeTag(a));
	}
}

/* copyfuncs.c */

static void *
flat_copy(const void *node, Size size)
{
	return memcpy(palloc(size), node, size);
}

static List *
copy_list(const List *list)
{
	List	   *result = NIL;

	for (int i = 0; i < list_length(list); i++)
		result = lappend(result, copyObjectImpl(list_nth(list, i)));
	return result;
}

void *
copyObjectImpl(const void *from)
{
	void	   *result;

	if (from == NULL)
		return NULL;
	switch (nodeTag(from))
	{
		case T_List:
			return copy_list(from);
		case T_Const:
			return flat_copy(from, sizeof(Const));
		case T_FuncExpr:
			return flat_copy(from, sizeof(FuncExpr));
		case T_Var:
			result = flat_copy(from, sizeof(Var));
			((Var *) result)->varnullingrels = bms_copy(((const Var *) from)->varnullingrels);
			return result;
		case T_OpExpr:
			result = flat_copy(from, sizeof(OpExpr));
			((OpExpr *) result)->args = copy_list(((const OpExpr *) from)->args);
			return result;
		case T_RelabelType:
			result = flat_copy(from, sizeof(RelabelType));
			((RelabelType *) result)->arg = copyObjectImpl(((const RelabelType *) from)->arg);
			return result;
		default:
			fatal("no copyObject() for nodes of type %d", (int) nodeTag(from));
	}
}

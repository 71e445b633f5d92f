/*
 * Changes of equivalence classes: clauses, which create and merge them, sort expressions, children, and removals of
 * left joins. Each change is applied to the arm's classes and to the model's.
 */
#include "postgres.h"

#include "model.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/appendinfo.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "planner_stubs.h"

/* The position of a clause's item in the classes. */
typedef struct Found
{
	ModelClass *class;
	ModelMember *member;
} Found;

static Found
find_item(const ModelMember *item, Oid collation)
{
	foreach_ptr(ModelClass, class, classes)
	{
		if (class->has_volatile || class->collation != collation || class->opfamily != item_opfamily(item->type))
			continue;
		foreach_ptr(ModelMember, member, class->members)
		{
			if (!(member->is_const && member->jdomain != item->jdomain) &&
				member->type == item->type && equal(member->expr, item->expr))
				return (Found) {class, member};
		}
	}
	return (Found) {NULL, NULL};
}

static void
merge(ModelClass *class, ModelClass *other)
{
	class->members = list_concat(class->members, other->members);
	class->sources = list_concat(class->sources, other->sources);
	class->relids = bms_union(class->relids, other->relids);
	class->has_const |= other->has_const;
	if (other->ec->ec_merged != class->ec)
		fatal("a class was not merged into the one with the other member");
	classes = list_delete_ptr(classes, other);
}

static ModelMember
item_of(Node *expr, Relids relids, Oid collation, JoinDomain *jdomain)
{
	Expr	   *item = canonicalize_ec_expression((Expr *) expr, exprType(expr), collation);

	return (ModelMember) {
		.expr = item, .relids = bms_copy(relids), .type = exprType((Node *) item), .is_const = bms_is_empty(relids),
		.jdomain = jdomain
	};
}

static void
add_source(ModelClass *class, RestrictInfo *rinfo, Found left, Found right)
{
	ModelClause *source = palloc(sizeof(ModelClause));

	*source = (ModelClause) {.rinfo = rinfo, .left = left.member, .right = right.member, .serial = rinfo->rinfo_serial};
	class->sources = lappend(class->sources, source);
	left.member->em = rinfo->left_em;
	right.member->em = rinfo->right_em;
}

void
model_equate(RestrictInfo *rinfo)
{
	JoinDomain *jdomain = list_nth(root->join_domains, byte() % 2);
	Oid			collation = ((OpExpr *) rinfo->clause)->inputcollid;
	ModelMember left = item_of(get_leftop(rinfo->clause), rinfo->left_relids, collation, jdomain);
	ModelMember right = item_of(get_rightop(rinfo->clause), rinfo->right_relids, collation, jdomain);
	Found		one = find_item(&left, collation);
	Found		other = find_item(&right, collation);
	bool		same = equal(left.expr, right.expr);

	if (process_equivalence(root, &rinfo, jdomain) == same)
		fatal("a clause was %s", same ? "taken, which compares a thing with itself" : "not taken");
	if (same)
		return;
	if (one.class == NULL)
		one.class = other.class ? other.class : add_class(rinfo->left_ec, left.type, collation);
	if (other.class == NULL)
		other.class = one.class;
	if (one.member == NULL)
		one.member = add_member(one.class, left);
	if (other.member == NULL)
		other.member = add_member(other.class, right);
	if (one.class != other.class)
		merge(one.class, other.class);
	if (rinfo->left_ec != one.class->ec || rinfo->right_ec != one.class->ec)
		fatal("a clause belongs to another class than its members");
	if ((one.member->em != NULL && one.member->em != rinfo->left_em) ||
		(other.member->em != NULL && other.member->em != rinfo->right_em))
		fatal("a clause compares other members than those that equal its items");
	add_source(one.class, rinfo, one, other);
}

void
model_finish_merging(void)
{
	generate_base_implied_equalities(root);
	foreach_ptr(ModelClass, class, classes)
	{
		class->has_derived_consts = class->has_const &&
			(list_length(class->members) > 2 || (list_length(class->members) == 2 && list_length(class->sources) > 1));
	}
}

/* Record the new class, with one member, of a sort expression that was in no class. */
void
model_sort_class(EquivalenceClass *ec, Expr *expr, Oid collation, Index sortref)
{
	Oid			type = exprType((Node *) expr);
	ModelClass *class = add_class(ec, type, collation);
	Relids		relids = pull_varnos(root, (Node *) expr);

	class->sortref = sortref;
	class->has_volatile = IsA(expr, FuncExpr);
	add_member(class, (ModelMember) {
		.expr = expr, .relids = relids, .type = type,
		.is_const = bms_is_empty(relids) && !class->has_volatile, .jdomain = linitial(root->join_domains)
	});
}

static void
add_child_member(ModelClass *class, ModelMember *parent, RelOptInfo *rel)
{
	Node	   *expr = adjust_appendrel_attrs_multilevel(root, (Node *) parent->expr, rel, rel->top_parent);
	Relids		relids = bms_union(bms_difference(parent->relids, rel->top_parent_relids), rel->relids);

	add_member(class, (ModelMember) {
		.parent = parent, .expr = (Expr *) expr, .relids = relids, .type = parent->type, .jdomain = parent->jdomain
	});
}

/* Add a child of each member that the topmost parent alone can compute. */
void
model_add_child(RelOptInfo *rel)
{
	add_child_rel_equivalences(root, root->append_rel_array[rel->relid], rel->parent, rel);
	foreach_ptr(ModelClass, class, classes)
	{
		if (class->has_volatile || !mentions(class, rel->parent->relid))
			continue;
		foreach_ptr(ModelMember, member, list_copy(class->members))
		{
			if (member->parent == NULL && !member->is_const && computable(member, rel->top_parent_relids))
				add_child_member(class, member, rel);
		}
		check_members(class, rel->relids);
	}
}

/* Add a child of each member that needs several relations, one of them a topmost parent of the join. */
void
model_add_child_join(RelOptInfo *joinrel)
{
	int			nappinfos;
	AppendRelInfo **appinfos = find_appinfos_by_relids(root, joinrel->relids, &nappinfos);
	MemoryContext outer;

	add_child_join_rel_equivalences(root, nappinfos, appinfos, joinrel->parent, joinrel);
	outer = MemoryContextSwitchTo(query_context);
	foreach_ptr(ModelClass, class, classes)
	{
		if (class->has_volatile || !mentions_any(class, joinrel->top_parent_relids))
			continue;
		foreach_ptr(ModelMember, member, list_copy(class->members))
		{
			if (member->parent == NULL && bms_membership(member->relids) == BMS_MULTIPLE &&
				bms_overlap(member->relids, joinrel->top_parent_relids))
				add_child_member(class, member, joinrel);
		}
		check_members(class, bms_union(joinrel->relids, root->all_query_rels));
	}
	MemoryContextSwitchTo(outer);
}

/* Remove members that need no other relation, and all clauses derived so far from the classes concerned. */
void
model_remove_left_join(int relid, int ojrelid)
{
	Relids		removed = bms_add_member(bms_make_singleton(relid), ojrelid);

	remove_left_join(relid, ojrelid);
	foreach_ptr(ModelClass, class, classes)
	{
		if (!bms_overlap(class->relids, removed))
			continue;
		class->relids = bms_difference(class->relids, removed);
		class->has_derived_consts = false;
		foreach_ptr(ModelMember, member, list_copy(class->members))
		{
			if (!bms_overlap(member->relids, removed))
				continue;
			member->relids = bms_difference(member->relids, removed);
			if (bms_is_empty(member->relids))
				class->members = list_delete_ptr(class->members, member);
		}
	}
}

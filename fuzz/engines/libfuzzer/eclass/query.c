/*
 * Relations of a query: base relations, left joins with one of these as right side, and children.
 *
 * The planner's own functions create them, so they have all data that a patch stores in them.
 */
#include "postgres.h"

#include "catalog/pg_type_d.h"
#include "query.h"
#include "lib/ilist.h"
#include "nodes/makefuncs.h"
#include "optimizer/pathnode.h"

static dlist_head query_pieces = DLIST_STATIC_INIT(query_pieces);
static dlist_head search_pieces = DLIST_STATIC_INIT(search_pieces);
MemoryContext query_context = (MemoryContext) &query_pieces;
MemoryContext search_context = (MemoryContext) &search_pieces;

PlannerInfo *root;

static int	outer_joins[MAX_RELID]; /* by relid; 0: none */
static bool union_all_children[MAX_RELID];	/* whether columns are expressions at some level */

static void
add_outer_join(int relid)
{
	RangeTblEntry *rte = makeNode(RangeTblEntry);
	int			ojrelid;

	rte->rtekind = RTE_JOIN;
	rte->jointype = JOIN_LEFT;
	root->parse->rtable = lappend(root->parse->rtable, rte);
	ojrelid = list_length(root->parse->rtable);
	outer_joins[relid] = ojrelid;
	root->outer_join_rels = bms_add_member(root->outer_join_rels, ojrelid);
	root->all_query_rels = bms_add_member(root->all_query_rels, ojrelid);
}

static JoinDomain *
join_domain(void)
{
	JoinDomain *domain = makeNode(JoinDomain);

	domain->jd_relids = bms_copy(root->all_query_rels);
	return domain;
}

static RangeTblEntry *
plain_rte(void)
{
	RangeTblEntry *rte = makeNode(RangeTblEntry);

	rte->rtekind = RTE_RESULT;
	return rte;
}

/* Make a query of 2 to MAX_BASE_RELS relations. The first ones are right sides of left joins. */
void
query_begin(void)
{
	int			nbase = 2 + byte() % (MAX_BASE_RELS - 1);
	int			nouter = Min(byte() % (MAX_OUTER_JOINS + 1), nbase - 1);

	memset(outer_joins, 0, sizeof(outer_joins));
	memset(union_all_children, 0, sizeof(union_all_children));
	root = makeNode(PlannerInfo);
	root->parse = makeNode(Query);
	root->planner_cxt = query_context;
	for (int i = 0; i < nbase; i++)
		root->parse->rtable = lappend(root->parse->rtable, plain_rte());
	root->all_baserels = bms_add_range(NULL, 1, nbase);
	root->all_query_rels = bms_copy(root->all_baserels);
	for (int i = 1; i <= nouter; i++)
		add_outer_join(i);
	root->join_domains = list_make2(join_domain(), join_domain());
	setup_simple_rel_arrays(root);
	for (int i = 1; i <= nbase; i++)
		build_simple_rel(root, i, NULL);
}

/* Return an existing relation, sometimes a base relation. */
RelOptInfo *
query_rel(int choice, bool base)
{
	int			size = base ? MAX_BASE_RELS + 1 : root->simple_rel_array_size;

	for (int i = choice;; i++)
	{
		int			relid = 1 + i % (size - 1);
		RelOptInfo *rel = relid < root->simple_rel_array_size ? root->simple_rel_array[relid] : NULL;

		if (rel != NULL && (!base || rel->reloptkind == RELOPT_BASEREL))
			return rel;
	}
}

int
outer_join_of(int relid)
{
	return outer_joins[relid];
}

/*
 * Return the right side of a left join, if there is one and other relations remain, and remove that join from the
 * query.
 */
bool
query_remove_rel(int choice, int *relid, int *ojrelid)
{
	*relid = query_rel(choice, true)->relid;
	*ojrelid = outer_joins[*relid];
	if (*ojrelid == 0 || bms_num_members(root->all_baserels) <= 2)
		return false;
	outer_joins[*relid] = 0;
	return true;
}

/*
 * Return the child's expression for a parent's column: a column of the same type at another position, or an
 * expression.
 */
static Node *
translated(int relid, int attribute, bool union_all)
{
	Var		   *var = make_query_var(relid, attribute);

	if (attribute <= 2)
		var->varattno = 3 - attribute;
	if (!union_all || var->vartype != INT4OID)
		return (Node *) var;
	if (relid % 2 == 0)
		return (Node *) makeConst(INT4OID, -1, InvalidOid, 4, Int32GetDatum(relid % 4), false, true);
	return (Node *) make_opclause(551, INT4OID, false, (Expr *) var, (Expr *) make_query_var(relid, 1), InvalidOid,
								  InvalidOid);
}

RelOptInfo *
query_add_child(RelOptInfo *parent, int relid, bool union_all)
{
	AppendRelInfo *appinfo = makeNode(AppendRelInfo);

	if (relid >= root->simple_rel_array_size)
		expand_planner_arrays(root, relid + 1 - root->simple_rel_array_size);
	if (root->append_rel_array == NULL)
		root->append_rel_array = palloc0_array(AppendRelInfo *, root->simple_rel_array_size);

	appinfo->parent_relid = parent->relid;
	appinfo->child_relid = relid;
	for (int i = 1; i <= ATTRIBUTES; i++)
		appinfo->translated_vars = lappend(appinfo->translated_vars, translated(relid, i, union_all));
	root->append_rel_list = lappend(root->append_rel_list, appinfo);
	root->append_rel_array[relid] = appinfo;
	root->simple_rte_array[relid] = plain_rte();
	union_all_children[relid] = union_all || union_all_children[parent->relid];
	return build_simple_rel(root, relid, parent);
}

bool
is_union_all(int relid)
{
	return union_all_children[relid];
}

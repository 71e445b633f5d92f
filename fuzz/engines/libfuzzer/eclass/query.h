/*
 * The query whose equivalence classes are searched: a PlannerInfo with base relations, outer joins with one relation
 * on the nullable side, children of any depth, and expressions; see query.c.
 */
#ifndef QUERY_H
#define QUERY_H

#include "nodes/pathnodes.h"

#define MAX_BASE_RELS	6
#define MAX_OUTER_JOINS	2
#define MAX_RELID		200
#define ATTRIBUTES		5		/* per relation */

/*
 * Memory of the query, and of one join order search. GEQO resets the latter before the query's planning ends
 * (optimizer/README). All look-ups use it.
 */
extern MemoryContext query_context;
extern MemoryContext search_context;

extern PlannerInfo *root;

/* Defined by the harness: return the next byte of the input, or 0 at its end. */
extern int	byte(void);

/* Relations */
extern void query_begin(void);
extern RelOptInfo *query_rel(int choice, bool base);
extern int	outer_join_of(int relid);
extern bool query_remove_rel(int choice, int *relid, int *ojrelid);
extern RelOptInfo *query_add_child(RelOptInfo *parent, int relid, bool union_all);
extern RelOptInfo *query_rel_of(Relids relids);
extern Relids top_parents(Relids relids);
extern bool is_union_all(int relid);
extern int	random_descendant(int base);
extern Relids random_relids(void);
extern Relids random_join(void);

/* Expressions: see exprs.c */
extern Var *make_query_var(int relid, int attribute);
extern Expr *random_item(bool text);
extern RestrictInfo *random_clause(void);
extern Oid	text_collation(int choice);

/* Remove a left join by the planner's own function: see removal.c */
extern void remove_left_join(int relid, int ojrelid);

#endif

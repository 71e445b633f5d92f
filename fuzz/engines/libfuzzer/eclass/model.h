/*
 * A model of equivalence classes: plain lists in the order of creation, which every look-up searches to the end.
 *
 * The model behaves like unpatched PostgreSQL.
 */
#ifndef MODEL_H
#define MODEL_H

#include "backend_stubs.h"
#include "query.h"

typedef struct ModelMember
{
	EquivalenceMember *em;		/* NULL: created, but not yet returned by a look-up */
	struct ModelMember *parent; /* NULL: not a child's member */
	Expr	   *expr;
	Relids		relids;
	Oid			type;
	bool		is_const;
	JoinDomain *jdomain;
} ModelMember;

/* A clause that compares two members of a class. */
typedef struct ModelClause
{
	RestrictInfo *rinfo;		/* NULL: created for a child's clause, but not yet returned by a look-up */
	ModelMember *left;
	ModelMember *right;
	EquivalenceClass *parent_ec;
	int			serial;
} ModelClause;

typedef struct ModelClass
{
	EquivalenceClass *ec;
	List	   *members;		/* of ModelMember */
	List	   *sources;		/* of ModelClause */
	List	   *derived;		/* of ModelClause */
	Relids		relids;
	Oid			opfamily;
	Oid			collation;
	Index		sortref;
	bool		has_const;
	bool		has_volatile;
	bool		has_derived_consts; /* whether there are clauses "member = constant" */
} ModelClass;

extern List *classes;			/* of ModelClass, in the order of root->eq_classes */

/* Changes: see changes.c */
extern void model_begin(void);
extern void model_equate(RestrictInfo *rinfo);
extern void model_finish_merging(void);
extern void model_sort_class(EquivalenceClass *ec, Expr *expr, Oid collation, Index sortref);
extern void model_add_child(RelOptInfo *rel);
extern void model_add_child_join(RelOptInfo *joinrel);
extern void model_remove_left_join(int relid, int ojrelid);

/* Content: see model.c */
extern ModelMember *add_member(ModelClass *class, ModelMember member);
extern ModelClass *add_class(EquivalenceClass *ec, Oid type, Oid collation);
extern ModelClass *model_class(int choice);
extern ModelMember *model_member(ModelClass *class, int choice);
extern bool mentions(const ModelClass *class, int relid);
extern bool mentions_any(const ModelClass *class, Relids relids);
extern bool has_derived_clauses(void);
extern bool computable(const ModelMember *member, Relids relids);

/* Look-ups of members: see lookups.c */
extern void check_classes(void);
extern void check_members(const ModelClass *class, Relids relids);
extern void check_matching_member(const ModelClass *class, Expr *expr, Relids relids);
extern void check_computable_member(const ModelClass *class, List *exprs, Relids relids);

/* Look-ups of classes: see classes.c */
extern EquivalenceClass *check_sort_class(Expr *expr, Oid collation, Index sortref, Relids rel, bool create);
extern void check_known_equal(Expr *one, Expr *other);
extern void check_usefulness(RelOptInfo *rel);
extern void check_relevance(RelOptInfo *rel, RelOptInfo *other);

/* Look-ups of clauses: see clauses.c and derivations.c */
extern void check_clause(ModelClass *class, ModelMember *one, ModelMember *other, EquivalenceClass *parent_ec,
						 List *found, int i);
extern void check_join_clauses(Relids outer, Relids inner);
extern void check_column_clauses(RelOptInfo *rel, int attribute, Relids prohibited);
extern void check_constant_clauses(const ModelClass *class);

#endif

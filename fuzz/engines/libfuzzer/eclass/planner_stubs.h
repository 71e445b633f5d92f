/*
 * Data of the planner stubs, see planner_stubs.c.
 */
#ifndef PLANNER_STUBS_H
#define PLANNER_STUBS_H

#include "catalog/pg_operator_d.h"
#include "catalog/pg_opfamily_d.h"
#include "catalog/pg_type_d.h"
#include "nodes/pg_list.h"

typedef struct StubOperator
{
	Oid			oid;
	Oid			left;
	Oid			right;
} StubOperator;

/* All equality operators of the catalogs; the last entry is invalid. */
extern const StubOperator equality_operators[];

/* The restriction clauses of process_implied_equality(), in order; the harness empties the list. */
extern List *implied_clauses;

static inline Oid
item_opfamily(Oid type)
{
	return type == TEXTOID ? TEXT_BTREE_FAM_OID : INTEGER_BTREE_FAM_OID;
}

#endif

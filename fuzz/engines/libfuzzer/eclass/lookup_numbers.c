/*
 * Members have numbers, and a class has the set of its members' numbers (v1 of the mail). The caller filters them.
 */
#include "postgres.h"

#include "lookup.h"
#include "optimizer/paths.h"

List *
lookup_members(PlannerInfo *root, EquivalenceClass *ec, Relids relids)
{
	List	   *found = NIL;
	int			i = -1;

	while ((i = bms_next_member(ec->ec_member_indexes, i)) >= 0)
		found = lappend(found, ec_member(ec, i));
	return found;
}

bool
lookup_gives(bool is_child, Relids em_relids, Relids relids)
{
	return true;
}

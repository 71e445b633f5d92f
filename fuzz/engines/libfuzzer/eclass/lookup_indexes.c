/*
 * Members have numbers, with a set of numbers per relation (v5 of the mail). Set operations find the members that
 * mention a wanted relation.
 */
#include "postgres.h"

#include "lookup.h"
#include "optimizer/paths.h"

List *
lookup_members(PlannerInfo *root, EquivalenceClass *ec, Relids relids)
{
	Bitmapset  *members = find_ec_members_any(ec, ec->ec_member_indexes, relids);
	List	   *found = NIL;
	int			i = -1;

	members = bms_add_members(members, ec->ec_nonchild_indexes);
	while ((i = bms_next_member(members, i)) >= 0)
		found = lappend(found, ec_member(ec, i));
	return found;
}

bool
lookup_gives(bool is_child, Relids em_relids, Relids relids)
{
	return !is_child || bms_overlap(em_relids, relids);
}

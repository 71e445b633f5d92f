/*
 * Members have numbers as in lookup_indexes.c. The set found for some relations is cached until a member is added (v7
 * of the mail).
 */
#include "postgres.h"

#include "lookup.h"
#include "optimizer/paths.h"

List *
lookup_members(PlannerInfo *root, EquivalenceClass *ec, Relids relids)
{
	Bitmapset  *members = get_ec_members_for_rels(ec, relids);
	List	   *found = NIL;
	int			i = -1;

	while ((i = bms_next_member(members, i)) >= 0)
		found = lappend(found, ec_member(ec, i));
	return found;
}

bool
lookup_gives(bool is_child, Relids em_relids, Relids relids)
{
	return !is_child || bms_overlap(em_relids, relids);
}

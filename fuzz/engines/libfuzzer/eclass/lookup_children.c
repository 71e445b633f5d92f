/*
 * Members of children are stored per relation. An iterator returns those that the wanted relations can compute.
 */
#include "postgres.h"

#include "lookup.h"
#include "optimizer/paths.h"

List *
lookup_members(PlannerInfo *root, EquivalenceClass *ec, Relids relids)
{
	EquivalenceMemberIterator it;
	EquivalenceMember *em;
	List	   *found = NIL;

	start_ec_members(&it, ec, relids);
	while ((em = next_ec_member(&it)) != NULL)
		found = lappend(found, em);
	return found;
}

bool
lookup_gives(bool is_child, Relids em_relids, Relids relids)
{
	return !is_child || bms_is_subset(em_relids, relids);
}

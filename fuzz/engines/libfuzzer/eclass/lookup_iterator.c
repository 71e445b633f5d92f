/*
 * Members have numbers as in lookup_indexes.c. An iterator may use the sets or not (v6 of the mail). It skips members
 * that mention no wanted relation, or leaves that check to its caller.
 */
#include "postgres.h"

#include "failure.h"
#include "lookup.h"
#include "optimizer/paths.h"

/* Check that the iterator, if it filters, returns the same members as the caller's filter. */
static void
check_without_recheck(EquivalenceClass *ec, Relids relids, List *found)
{
	EquivalenceMemberIterator it;

	start_ec_members_any(&it, ec, ec->ec_member_indexes, NULL, relids, false);
	foreach_ptr(EquivalenceMember, expected, found)
	{
		if (bms_overlap(expected->em_relids, relids) && next_ec_member(&it) != expected)
			fatal("an iterator that checks members gives another one");
	}
	if (next_ec_member(&it) != NULL)
		fatal("an iterator that checks members gives too many");
	end_ec_members(&it);
}

List *
lookup_members(PlannerInfo *root, EquivalenceClass *ec, Relids relids)
{
	EquivalenceMemberIterator it;
	EquivalenceMember *em;
	List	   *found = NIL;

	start_ec_members_any(&it, ec, ec->ec_member_indexes, ec->ec_nonchild_indexes, relids, true);
	while ((em = next_ec_member(&it)) != NULL)
	{
		if (!em->em_is_child || bms_overlap(em->em_relids, relids))
			found = lappend(found, em);
	}
	end_ec_members(&it);
	check_without_recheck(ec, relids, found);
	return found;
}

bool
lookup_gives(bool is_child, Relids em_relids, Relids relids)
{
	return !is_child || bms_overlap(em_relids, relids);
}

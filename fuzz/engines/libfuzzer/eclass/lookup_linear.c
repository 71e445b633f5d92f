/*
 * Unpatched PostgreSQL: all members are in one list, and the caller filters them.
 */
#include "postgres.h"

#include "lookup.h"

List *
lookup_members(PlannerInfo *root, EquivalenceClass *ec, Relids relids)
{
	return list_copy(ec->ec_members);
}

bool
lookup_gives(bool is_child, Relids em_relids, Relids relids)
{
	return true;
}

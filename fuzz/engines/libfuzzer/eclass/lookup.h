/*
 * Member look-ups of the arm under test. There is one file per implementation, and one of them is linked.
 */
#ifndef LOOKUP_H
#define LOOKUP_H

#include "nodes/pathnodes.h"

/* Return the result of a look-up for these relations: members of their children, and all members of no child. */
extern List *lookup_members(PlannerInfo *root, EquivalenceClass *ec, Relids relids);

/* Return whether the result must contain a member. It must not contain others. */
extern bool lookup_gives(bool is_child, Relids em_relids, Relids relids);

#endif

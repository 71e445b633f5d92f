/*
 * How the arm under test looks for the members of a class: a file for each way, of which one is linked.
 */
#ifndef LOOKUP_H
#define LOOKUP_H

#include "nodes/pathnodes.h"

/* Return what is found when the members of some relations' children are wanted, besides those of no child. */
extern List *lookup_members(PlannerInfo *root, EquivalenceClass *ec, Relids relids);

/* Must it be found? Whatever need not must not. */
extern bool lookup_gives(bool is_child, Relids em_relids, Relids relids);

#endif

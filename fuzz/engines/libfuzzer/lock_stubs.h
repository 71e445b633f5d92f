/*
 * Function that a harness defines for the stubs of the lock manager, see lock_stubs.c.
 */
#ifndef LOCK_STUBS_H
#define LOCK_STUBS_H

#include "storage/lock.h"

/* Defined by the harness: called when the lock manager gets an owner's locks. */
extern void on_locks(bool commit, LOCALLOCK **locks, int nlocks);

#endif

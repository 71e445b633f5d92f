/*
 * What the stand-ins for the lock manager ask of a harness, see lock_stubs.c.
 */
#ifndef LOCK_STUBS_H
#define LOCK_STUBS_H

#include "storage/lock.h"

/* To be defined by the harness: the lock manager being handed an owner's locks. */
extern void on_locks(bool commit, LOCALLOCK **locks, int nlocks);

#endif

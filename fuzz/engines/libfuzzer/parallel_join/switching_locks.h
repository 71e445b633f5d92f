/*
 * Spin locks as points where another process may run. To be included before a C file of the server.
 *
 * No such point is within a section that a spin lock protects, so no process ever finds one taken.
 */
#ifndef SWITCHING_LOCKS_H
#define SWITCHING_LOCKS_H

#include "parallel_join/scheduler.h"
#include "storage/spin.h"

#undef SpinLockAcquire
#define SpinLockAcquire(lock)	(maybe_switch(), (void) S_LOCK(lock))

#endif

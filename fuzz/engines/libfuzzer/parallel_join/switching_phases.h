/*
 * Accesses of a Parallel Hash to shared memory as points where another process may run. To be included before a C
 * file of the server.
 */
#ifndef SWITCHING_PHASES_H
#define SWITCHING_PHASES_H

#include "parallel_join/scheduler.h"
#include "storage/barrier.h"
#include "utils/dsa.h"

#define BarrierPhase(barrier)	(maybe_switch(), BarrierPhase(barrier))

#undef dsa_pointer_atomic_compare_exchange
#define dsa_pointer_atomic_compare_exchange(pointer, expected, new_value) \
	(maybe_switch(), pg_atomic_compare_exchange_u64(pointer, expected, new_value))

#undef dsa_pointer_atomic_write
#define dsa_pointer_atomic_write(pointer, value) (maybe_switch(), pg_atomic_write_u64(pointer, value))

#endif

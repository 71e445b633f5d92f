/*
 * What the server has for each process: global variables, a latch and locks, see processes.c.
 */
#ifndef PROCESSES_H
#define PROCESSES_H

#include "parallel_join/scheduler.h"
#include "storage/condition_variable.h"

/* Before a run: make processes, of which the first is the leader. */
extern void set_up_processes(void);

/* After a run: check that no process left a lock or waits for anything. */
extern void check_processes(void);

/* condition_variable.c */
extern ConditionVariable *exchange_sleep_target(ConditionVariable *target);

#endif

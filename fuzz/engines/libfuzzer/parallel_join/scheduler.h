/*
 * Processes of a parallel query as fibers of one process, of which one runs at a time, see scheduler.c.
 */
#ifndef SCHEDULER_H
#define SCHEDULER_H

#include "input.h"

#define MAX_PROCESSES	4

typedef struct Schedule
{
	int			nprocesses;
	void		(*run) (int number);	/* what each process does */
	bool		(*is_due) (int number); /* may a process begin? */
	const uint8_t *bytes;		/* choices, read backwards from the end */
	size_t		nbytes;
} Schedule;

/* Run all processes until they end. Fail if all of them wait. */
extern void run_processes(const Schedule *schedule);

/* Number of the process that runs, or -1. */
extern int	running_process(void);

/* Number of points in this run where another process could have run, so far. */
extern long passed_points(void);

/* A point where another process may run. */
extern void maybe_switch(void);

/* Wait until a condition is true. `what` says so in the message of a failure. */
extern void wait_until(bool (*condition) (void *), void *arg, const char *what);

/* Wait until all other processes that have begun do the same, or have ended. */
extern void wait_for_others(void);

/* Defined by the harness: save and restore what is global in a process. */
extern void leave_process(int number);
extern void enter_process(int number);

#endif

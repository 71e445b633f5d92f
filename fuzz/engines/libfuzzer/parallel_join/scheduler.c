/*
 * Processes as fibers, of which one runs at a time. At certain points the input chooses which one goes on.
 *
 * Nothing is executed in parallel, so one input always gives one schedule. Everything that happens between two points
 * is atomic. Memory is sequentially consistent: the harness finds no missing memory barrier.
 */
#include "postgres.h"

#include <sanitizer/common_interface_defs.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "common/hashfn.h"
#include "failure.h"
#include "parallel_join/scheduler.h"

#define STACK_SIZE		(256 * 1024)
#define NOBODY			(-1)

typedef enum State
{
	NOT_BEGUN,
	READY,
	WAITING,					/* for a condition */
	PAUSING,					/* until all others do so, or have ended */
	ENDED,
} State;

typedef struct Process
{
	State		state;
	bool		(*condition) (void *);
	void	   *arg;
	const char *what;
	ucontext_t	context;
	void	   *stack;
	void	   *fake_stack;		/* of AddressSanitizer */
} Process;

static Process processes[MAX_PROCESSES];
static const Schedule *schedule;
static int	running = NOBODY;
static long points;
static long next_switch;		/* number of the point where another process is to run */

/* The scheduler itself, which is on the caller's stack */
static ucontext_t scheduler;
static const void *scheduler_stack;
static size_t scheduler_stack_size;

/* Choices */

static size_t ndrawn;
static uint32 random_state;
static uint32 chosen;			/* process to be preferred at the next switch */

/* Return the next choice. After those of the input they are random, but equal for equal inputs. */
static uint32
choice(void)
{
	if (ndrawn < schedule->nbytes)
	{
		uint32		drawn = schedule->bytes[schedule->nbytes - ++ndrawn];

		random_state = murmurhash32(random_state ^ drawn);
		return drawn;
	}
	random_state = murmurhash32(random_state + 1);
	return random_state & 0xff;
}

/* Choose the number of points until the next switch, and the process that runs then. Few points are most useful. */
static void
choose_switch(void)
{
	uint32		drawn = choice();
	uint32		distance = drawn / 8;	/* 0 to 31 */

	next_switch = points + 1 + (distance < 8 ? distance : (8 + distance % 4) << (distance / 4 - 1));
	chosen = drawn % 8;
}

/* Fibers */

static void
start_switch(void **fake_stack, const void *stack, size_t size)
{
	__sanitizer_start_switch_fiber(fake_stack, stack, size);
}

static void
run_process(void)
{
	__sanitizer_finish_switch_fiber(NULL, &scheduler_stack, &scheduler_stack_size);
	schedule->run(running);
	processes[running].state = ENDED;
	start_switch(NULL, scheduler_stack, scheduler_stack_size);	/* the fiber ends */
	swapcontext(&processes[running].context, &scheduler);
}

static void
prepare(int number)
{
	Process    *process = &processes[number];

	if (process->stack == NULL)
	{
		process->stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (process->stack == MAP_FAILED)
			fatal("no memory for a stack");
	}
	process->state = schedule->is_due(number) ? READY : NOT_BEGUN;
	process->fake_stack = NULL;
	getcontext(&process->context);
	process->context.uc_stack.ss_sp = process->stack;
	process->context.uc_stack.ss_size = STACK_SIZE;
	process->context.uc_link = NULL;
	makecontext(&process->context, run_process, 0);
}

/* Let the scheduler choose. Return when it has chosen this process again. */
static void
yield(State state)
{
	Process    *process = &processes[running];

	process->state = state;
	start_switch(&process->fake_stack, scheduler_stack, scheduler_stack_size);
	swapcontext(&process->context, &scheduler);
	__sanitizer_finish_switch_fiber(process->fake_stack, NULL, NULL);
}

static void
resume(int number)
{
	Process    *process = &processes[number];
	void	   *fake_stack;

	running = number;
	process->state = READY;
	enter_process(number);
	start_switch(&fake_stack, process->stack, STACK_SIZE);
	swapcontext(&scheduler, &process->context);
	__sanitizer_finish_switch_fiber(fake_stack, NULL, NULL);
	leave_process(number);
	running = NOBODY;
}

/* The choice of the next process */

/* Return whether each other process is in one of two states, or has ended. */
static bool
others_are(int number, State one, State other)
{
	for (int i = 0; i < schedule->nprocesses; i++)
	{
		State		state = processes[i].state;

		if (i != number && state != one && state != other && state != ENDED)
			return false;
	}
	return true;
}

static bool
can_run(int number)
{
	Process    *process = &processes[number];

	switch (process->state)
	{
		case NOT_BEGUN:
			/* Nobody knows when it begins, so nobody may wait for that. */
			return schedule->is_due(number) || others_are(number, NOT_BEGUN, NOT_BEGUN);
		case READY:
			return true;
		case WAITING:
			return process->condition(process->arg);
		case PAUSING:
			return others_are(number, NOT_BEGUN, PAUSING);
		case ENDED:
			break;
	}
	return false;
}

static const char *
describe(const Process *process)
{
	switch (process->state)
	{
		case NOT_BEGUN:
			return "has not begun";
		case WAITING:
			return process->what;
		case PAUSING:
			return "returned a row, and waits for the others' rows";
		case READY:
			return "is ready";
		case ENDED:
			break;
	}
	return "has ended";
}

static void
fail_for_deadlock(void)
{
	const char *described[MAX_PROCESSES] = {"", "", "", ""};

	for (int i = 0; i < schedule->nprocesses; i++)
		described[i] = describe(&processes[i]);
	fatal("nobody can go on: leader %s, workers: %s; %s; %s", described[0], described[1], described[2],
		  described[3]);
}

/* Return the process that runs next, or -1 if all have ended. One that becomes due runs at once. */
static int
next_process(int last)
{
	int			candidates[MAX_PROCESSES];
	int			ncandidates = 0;
	bool		all_ended = true;

	for (int i = 0; i < schedule->nprocesses; i++)
	{
		if (processes[i].state != ENDED)
			all_ended = false;
		if (i == last || !can_run(i))
			continue;
		if (processes[i].state == NOT_BEGUN && schedule->is_due(i))
			return i;
		candidates[ncandidates++] = i;
	}
	if (ncandidates > 0)
		return candidates[chosen % ncandidates];
	if (last != NOBODY && can_run(last))
		return last;
	if (!all_ended)
		fail_for_deadlock();
	return NOBODY;
}

/* Interface */

/* Points are so frequent that libFuzzer's counters would take most of their time. */
#define no_coverage		__attribute__((no_sanitize("coverage")))

static no_coverage bool
is_another_due(void)
{
	for (int i = 0; i < schedule->nprocesses; i++)
		if (processes[i].state == NOT_BEGUN && schedule->is_due(i))
			return true;
	return false;
}

no_coverage void
maybe_switch(void)
{
	if (running == NOBODY)
		return;
	points++;
	if (points >= next_switch || is_another_due())
		yield(READY);
}

void
wait_until(bool (*condition) (void *), void *arg, const char *what)
{
	Process    *process = &processes[running];

	maybe_switch();
	if (condition(arg))
		return;
	process->condition = condition;
	process->arg = arg;
	process->what = what;
	yield(WAITING);
}

void
wait_for_others(void)
{
	yield(PAUSING);
}

int
running_process(void)
{
	return running;
}

long
passed_points(void)
{
	return points;
}

void
run_processes(const Schedule *drawn)
{
	int			number = NOBODY;

	schedule = drawn;
	points = 0;
	ndrawn = 0;
	random_state = 0;
	for (int i = 0; i < schedule->nprocesses; i++)
		prepare(i);
	choose_switch();
	while ((number = next_process(number)) != NOBODY)
	{
		choose_switch();
		resume(number);
	}
}

/*
 * Interface of the backend stubs for harnesses, see backend_stubs.c.
 */
#ifndef BACKEND_STUBS_H
#define BACKEND_STUBS_H

#include "failure.h"

/* Call a function; if it ends in elog(ERROR), return the message (valid until the next one), otherwise NULL. */
extern const char *error_of(void (*call) (void *), void *arg);

/* Number of pallocs without pfree. */
extern long stub_allocations(void);

/* Bytes that were allocated in a context. */
extern Size stub_allocated(MemoryContext context);

/* If set, allocations that may fail return NULL. */
extern bool stub_out_of_memory;

/* Defined by the harness: called for each elog(WARNING). */
extern void on_warning(const char *text);

#endif

/*
 * Inputs of libFuzzer in forks of a standalone backend, see in_process.c.
 */
#ifndef IN_PROCESS_H
#define IN_PROCESS_H

#include "failure.h"

/* Defined by the harness: run one input in the current transaction. The process ends after it. */
extern void run_input(const uint8_t *data, size_t size);

/* Set what is printed if the process fails, until the next call. */
extern void describe(const char *format,...) pg_attribute_printf(1, 2);

#endif

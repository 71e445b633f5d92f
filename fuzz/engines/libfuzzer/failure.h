/*
 * Failure of a harness, see failure.c. Failed assertions of the server's code are failures, too.
 */
#ifndef FAILURE_H
#define FAILURE_H

/* Print the reason and abort; libFuzzer then stores the input. */
extern void fatal(const char *format,...) pg_attribute_printf(1, 2) pg_attribute_noreturn();

#endif

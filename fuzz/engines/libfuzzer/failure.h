/*
 * How a harness fails, see failure.c. A failed assertion of the server's code does so too.
 */
#ifndef FAILURE_H
#define FAILURE_H

/* Say what is wrong and abort; libFuzzer then keeps the input. */
extern void fatal(const char *format,...) pg_attribute_printf(1, 2) pg_attribute_noreturn();

#endif

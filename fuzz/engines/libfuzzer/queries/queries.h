/*
 * Queries drawn from an input, and the settings under which they run.
 */
#ifndef QUERIES_H
#define QUERIES_H

#include "input.h"
#include "lib/stringinfo.h"

/* Append a query whose rows are the same, but for their order, under all settings. It raises no error. */
extern void draw_query(Input *input, StringInfo sql);

/* Append the statements that set drawn values, or those of the reference. */
extern void draw_settings(Input *input, StringInfo sql);
extern void reference_settings(StringInfo sql);

/* Fail as a test demands; return what is to be added to the checksum of rows, which is 0 without a test. */
extern uint64 plant_failure(void);

#endif

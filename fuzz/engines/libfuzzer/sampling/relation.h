/*
 * A foreign table, of which deparse.c asks no more than its names, columns and options.
 */
#ifndef SAMPLING_RELATION_H
#define SAMPLING_RELATION_H

#include "input.h"
#include "utils/rel.h"

#define MAX_COLUMNS	5

/* Make a foreign table; there is one at a time. */
extern Relation make_relation(Input *input);

/* What it is called over there. */
extern const char *remote_schema(void);
extern const char *remote_table(void);

/* The number of columns, and what each is called over there; NULL if it was dropped. */
extern int	number_of_columns(void);
extern const char *remote_column(int number);

/* pstrdup */
extern char *pstrdup_stub(const char *text);

#endif

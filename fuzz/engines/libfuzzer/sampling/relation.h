/*
 * A foreign table, as far as deparse.c reads it: names, columns and options.
 */
#ifndef SAMPLING_RELATION_H
#define SAMPLING_RELATION_H

#include "input.h"
#include "utils/rel.h"

#define MAX_COLUMNS	5

/* Make a foreign table. There is only one at a time. */
extern Relation make_relation(Input *input);

/* The remote name. */
extern const char *remote_schema(void);
extern const char *remote_table(void);

/* The number of columns, and the remote name of each; NULL if it was dropped. */
extern int	number_of_columns(void);
extern const char *remote_column(int number);

/* pstrdup */
extern char *pstrdup_stub(const char *text);

#endif

/*
 * Checks of remote SQL. Each function parses the text of deparse.c to its last character.
 */
#ifndef SAMPLING_REMOTE_SQL_H
#define SAMPLING_REMOTE_SQL_H

#include "contrib/postgres_fdw/postgres_fdw.h"

extern void check_sample_sql(Relation rel, const PgFdwSample *sample);
extern void check_count_sql(Relation rel, double fraction);
extern void check_size_sql(Relation rel, int server_version, bool whole_tree);

#endif

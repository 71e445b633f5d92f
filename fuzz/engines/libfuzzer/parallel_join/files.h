/*
 * Shared temporary files, see files.c.
 */
#ifndef FILES_H
#define FILES_H

/* After a run: check that no process has an open file, and delete all. */
extern void check_files(void);

#endif

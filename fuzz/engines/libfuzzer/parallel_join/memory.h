/*
 * Shared memory, see memory.c.
 */
#ifndef MEMORY_H
#define MEMORY_H

/* Bytes in use. */
extern Size shared_memory(void);

extern void free_shared_memory(void);

#endif

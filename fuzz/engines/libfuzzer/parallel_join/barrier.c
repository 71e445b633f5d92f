/*
 * The server's barriers.
 */
#include "postgres.h"

#include "parallel_join/switching_locks.h"
#include "src/backend/storage/ipc/barrier.c"

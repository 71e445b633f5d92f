/*
 * Checks of hash buckets: their number, by brute force, and a hash table that grows.
 */
#ifndef BUCKETS_H
#define BUCKETS_H

#include "input.h"

/* sizing.c: check the number of buckets for any tuples and memory */
extern void check_sizing(Input *input);

/* Return the smallest power of 2, within limits, of buckets with at most `load` tuples each on average. */
extern uint64 fewest_for(double ntuples, int load);

/* Fail if `nbuckets` is wrong for the tuples, which use `used` of `allowed` bytes. */
extern void check_choice(double ntuples, Size used, Size allowed, int nbuckets);

/* growth.c: insert tuples, add batches, make buckets, and find each tuple in its bucket, batch by batch */
extern void check_growth(Input *input);

#endif

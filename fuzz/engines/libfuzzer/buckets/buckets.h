/*
 * What is checked of hash buckets: their number, by brute force, and the life of a hash table that grows.
 */
#ifndef BUCKETS_H
#define BUCKETS_H

#include "input.h"

/* sizing.c: how many buckets there are to be, for any tuples and memory */
extern void check_sizing(Input *input);

/* The smallest power of 2 of so many buckets that none has more than `load` of the tuples on average, within limits */
extern uint64 fewest_for(double ntuples, int load);

/* Complain if that many buckets are not right for the tuples, of which so much is used of the memory allowed */
extern void check_choice(double ntuples, Size used, Size allowed, int nbuckets);

/* growth.c: tuples are inserted, batches added, buckets made, and each tuple found in its bucket, batch after batch */
extern void check_growth(Input *input);

#endif

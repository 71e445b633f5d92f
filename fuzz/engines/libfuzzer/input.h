/*
 * The input of a harness, read byte by byte. Zeros follow its end.
 */
#ifndef INPUT_H
#define INPUT_H

#include "common/hashfn.h"

typedef struct Input
{
	const uint8_t *next;
	const uint8_t *end;
} Input;

static inline uint32
byte(Input *input)
{
	return input->next < input->end ? *input->next++ : 0;
}

static inline uint32
word(Input *input)
{
	uint32		high = byte(input) << 8 | byte(input);

	return high << 16 | byte(input) << 8 | byte(input);
}

/* Copy an input and append random bytes, so that a short one describes something whole, too. */
static inline void
lengthen(const uint8_t *data, size_t size, uint8_t *longer, int length)
{
	uint32		state = size;

	for (size_t i = 0; i < size; i++)
		state = murmurhash32(state ^ data[i]);
	for (int i = 0; i < length; i++)
	{
		state = murmurhash32(state + i);
		longer[i] = i < size ? data[i] : (uint8_t) state;
	}
}

#endif

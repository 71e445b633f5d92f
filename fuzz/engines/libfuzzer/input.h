/*
 * The input of a harness, read byte by byte. Zeros follow its end.
 */
#ifndef INPUT_H
#define INPUT_H

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

#endif

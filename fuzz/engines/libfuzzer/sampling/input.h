/*
 * Conversion of the input's bytes to numbers and names.
 */
#ifndef SAMPLING_INPUT_H
#define SAMPLING_INPUT_H

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

/* Return an integer up to about 2^40, or a fraction of one. */
static inline double
number(Input *input)
{
	double		mantissa = byte(input) << 8 | byte(input);

	return ldexp(mantissa, (int) (byte(input) % 32) - 6);
}

/* Return a name of up to 15 bytes; palloc'd */
static inline char *
name(Input *input)
{
	int			length = byte(input) % 16;
	char	   *result = palloc0(length + 1);

	for (int i = 0; i < length; i++)
		result[i] = (char) (1 + byte(input) % 255);
	return result;
}

#endif

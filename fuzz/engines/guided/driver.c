/*-------------------------------------------------------------------------
 *
 * driver.c
 *		libFuzzer, which gives its inputs to a worker of pgduel and sees the
 *		edges that they reach in a server.
 *
 * It maps the counter file that the server's sessions write to, and registers
 * its regions as if they were its own.  So libFuzzer clears them before each
 * input, and reads them afterwards.  Its own code has no counters.
 *
 * An input goes to a pipe as its length (4 bytes) and its bytes.  Then the
 * process waits for one byte from another pipe: KEPT if libFuzzer may keep the
 * input.  The length 0 asks whether the next input is a random one, which comes
 * from that pipe in the same form, or has no bytes if a mutated one is due.
 * When that pipe is closed, the process ends.
 *
 * An input has streams of choices, which SEPARATOR divides: of the modes, of
 * the scene, of edits, and of each action (fuzz/engines/guided/inputs.py).
 * A mutation changes the bytes of streams, or drops, repeats or exchanges
 * actions.  A crossover takes whole streams of two inputs, so each part of the
 * new case is made by the choices of one of them.
 *
 * Many mutations begin with an input that reached code of the patches: see
 * pick_patched.
 *
 * The environment has the descriptors of the pipes, the file and its regions:
 * PGDUEL_PIPES="ANSWERS INPUTS", PGDUEL_COUNTERS=DESCRIPTOR, and
 * PGDUEL_REGIONS="OFFSET EDGES OFFSET EDGES ...".  PGDUEL_PREFERRED is the
 * descriptor of a file with the numbers of edges of the patches, of four bytes
 * each.  An edge may be there twice.
 *
 * fuzz/engines/guided/driver.c
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEPT 'k'

#define SEPARATOR "|pg|"
#define SEPARATOR_SIZE (sizeof(SEPARATOR) - 1)
#define MOST_STREAMS 64			/* the last one has the rest of an input */
#define MODES 0					/* stream of the modes */
#define SCENE 1					/* stream of the scene */
#define EDITS 2					/* stream of the edits of queries */
#define ACTION 3				/* stream of the first action */

typedef struct Stream
{
	const uint8_t *data;
	size_t		size;
} Stream;

typedef struct Streams
{
	Stream		of[MOST_STREAMS];
	size_t		count;
} Streams;

typedef struct Input
{
	size_t		edges;			/* that keep it */
	size_t		size;
	uint8_t		data[];
} Input;

/* An edge of the patches, and one of the inputs that reached it */
typedef struct PatchedEdge
{
	const uint8_t *counter;
	uint64_t	times;			/* number of inputs that reached it */
	Input	   *input;
} PatchedEdge;

static PatchedEdge *patched;	/* those that were reached come first */
static size_t patched_count,
			patched_reached;
static unsigned int patched_state = 1;

static int	answers,
			inputs;

/* As SanitizerCoverage writes it.  libFuzzer does not dereference addresses. */
typedef struct Pc
{
	uintptr_t	address;
	uintptr_t	flags;
} Pc;

size_t		LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
void		__sanitizer_cov_8bit_counters_init(uint8_t *start, uint8_t *stop);
void		__sanitizer_cov_pcs_init(const uintptr_t *start, const uintptr_t *stop);

static void
fail(const char *what)
{
	fprintf(stderr, "pgduel driver: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Register the counters of a region with libFuzzer, with made-up addresses. */
static void
register_region(uint8_t *counters, size_t edges)
{
	static uintptr_t next = 1;
	Pc		   *pcs = calloc(edges, sizeof(Pc));

	if (pcs == NULL)
		fail("no memory");
	for (size_t i = 0; i < edges; i++)
		pcs[i].address = next++;
	__sanitizer_cov_8bit_counters_init(counters, counters + edges);
	__sanitizer_cov_pcs_init((uintptr_t *) pcs, (uintptr_t *) (pcs + edges));
}

/* Return the numbers in a file, and their count. */
static uint32_t *
read_numbers(int file, size_t *count)
{
	struct stat status;
	uint32_t   *numbers;

	if (fstat(file, &status) < 0)
		fail("cannot read the preferred edges");
	*count = status.st_size / sizeof(uint32_t);
	numbers = malloc(status.st_size + 1);
	if (numbers == NULL)
		fail("no memory");
	if (pread(file, numbers, status.st_size, 0) != status.st_size)
		fail("cannot read the preferred edges");
	return numbers;
}

/*
 * Find the counters of those preferred edges that are in a region, which has
 * all edges from "first" on.
 */
static void
register_patched(const uint8_t *counters, size_t first, size_t edges, const uint32_t *preferred, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (preferred[i] >= first && preferred[i] - first < edges)
			patched[patched_count++].counter = counters + (preferred[i] - first);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const char *counters = getenv("PGDUEL_COUNTERS");
	const char *pipes = getenv("PGDUEL_PIPES");
	const char *numbers = getenv("PGDUEL_PREFERRED");
	char	   *rest = getenv("PGDUEL_REGIONS");
	struct stat status;
	uint8_t    *mapped;
	uint32_t   *preferred;
	size_t		count,
				first = 0;
	int			file;

	(void) argc;
	(void) argv;
	if (counters == NULL || rest == NULL || pipes == NULL || numbers == NULL ||
		sscanf(pipes, "%d %d", &answers, &inputs) != 2)
		fail("only pgduel starts it, with the environment described in driver.c");
	file = atoi(counters);
	if (fstat(file, &status) < 0)
		fail("cannot use the counters");
	mapped = mmap(NULL, status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (mapped == MAP_FAILED)
		fail("cannot map the counters");
	preferred = read_numbers(atoi(numbers), &count);
	patched = calloc(count + 1, sizeof(PatchedEdge));
	if (patched == NULL)
		fail("no memory");
	while (*rest != '\0')
	{
		size_t		offset = strtoul(rest, &rest, 10);
		size_t		edges = strtoul(rest, &rest, 10);

		if (edges == 0 || offset + edges > (size_t) status.st_size)
			fail("a region is not in the file");
		register_region(mapped + offset, edges);
		register_patched(mapped + offset, first, edges, preferred, count);
		first += edges;
	}
	free(preferred);
	return 0;
}

static void
send_all(const void *data, size_t size)
{
	const char *next = data;

	while (size > 0)
	{
		ssize_t		sent = write(inputs, next, size);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			_exit(0);
		next += sent;
		size -= sent;
	}
}

static void
receive(void *data, size_t size)
{
	char	   *next = data;

	while (size > 0)
	{
		ssize_t		got = read(answers, next, size);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			_exit(0);
		next += got;
		size -= got;
	}
}

/* Return a random number below a limit. */
static size_t
below(unsigned int *state, size_t limit)
{
	return rand_r(state) % limit;
}

static void
release(Input *input)
{
	if (input != NULL && --input->edges == 0)
		free(input);
}

/*
 * Keep the input with each edge of the patches that it reached, instead of an
 * earlier one.  All inputs that reached an edge have equal chances to be
 * the kept one (reservoir sampling).
 */
static void
remember(const uint8_t *data, size_t size)
{
	Input	   *input = malloc(sizeof(Input) + size);

	if (input == NULL)
		fail("no memory");
	input->edges = 1;			/* until the end of this function */
	input->size = size;
	memcpy(input->data, data, size);
	for (size_t i = 0; i < patched_count; i++)
	{
		PatchedEdge *edge = &patched[i];

		if (*edge->counter == 0)
			continue;
		if (edge->times++ == 0)
		{
			PatchedEdge reached = *edge;

			*edge = patched[patched_reached];
			edge = &patched[patched_reached++];
			*edge = reached;
		}
		if (below(&patched_state, edge->times) != 0)
			continue;
		release(edge->input);
		edge->input = input;
		input->edges++;
	}
	release(input);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t	length = size;
	char		answer;

	if (size == 0)				/* libFuzzer's first call, of which it keeps nothing */
		return 0;
	send_all(&length, sizeof(length));
	send_all(data, size);
	receive(&answer, 1);
	if (answer != KEPT)
		return -1;
	remember(data, size);
	return 0;
}

static Streams
divide(const uint8_t *data, size_t size)
{
	const uint8_t *end = data + size;
	Streams		streams = {.count = 0};

	for (;;)
	{
		const uint8_t *next = NULL;

		if (streams.count + 1 < MOST_STREAMS)
			next = memmem(data, end - data, SEPARATOR, SEPARATOR_SIZE);
		streams.of[streams.count++] = (Stream) {data, (next ? next : end) - data};
		if (next == NULL)
			return streams;
		data = next + SEPARATOR_SIZE;
	}
}

/* Write streams as an input, and return its size, or 0 if it has no room. */
static size_t
join(const Streams *streams, uint8_t *data, size_t max_size)
{
	size_t		size = 0;

	for (size_t i = 0; i < streams->count; i++)
	{
		size_t		separator = i == 0 ? 0 : SEPARATOR_SIZE;

		if (size + separator + streams->of[i].size > max_size)
			return 0;
		memcpy(data + size, SEPARATOR, separator);
		memcpy(data + size + separator, streams->of[i].data, streams->of[i].size);
		size += separator + streams->of[i].size;
	}
	return size;
}

static void
insert(Streams *streams, size_t place, Stream stream)
{
	if (streams->count == MOST_STREAMS)
		return;
	memmove(&streams->of[place + 1], &streams->of[place], (streams->count - place) * sizeof(Stream));
	streams->of[place] = stream;
	streams->count++;
}

static void
drop(Streams *streams, size_t place)
{
	streams->count--;
	memmove(&streams->of[place], &streams->of[place + 1], (streams->count - place) * sizeof(Stream));
}

/* Drop, repeat or exchange actions. */
static void
rearrange(Streams *streams, unsigned int *state)
{
	size_t		actions = streams->count - ACTION;
	size_t		one = ACTION + below(state, actions),
				other = ACTION + below(state, actions);
	Stream		moved = streams->of[one];

	switch (below(state, 3))
	{
		case 0:
			drop(streams, one);
			break;
		case 1:
			insert(streams, other, moved);
			break;
		default:
			streams->of[one] = streams->of[other];
			streams->of[other] = moved;
	}
}

/*
 * Return the stream to change: each byte equally often, but the short streams
 * of modes and edits more often.
 */
static size_t
pick_stream(const Streams *streams, size_t size, unsigned int *state)
{
	size_t		place = below(state, size + SEPARATOR_SIZE),
				stream = 0;

	switch (below(state, 8))
	{
		case 0:
			return MODES;
		case 1:
			return streams->count > EDITS ? EDITS : MODES;
	}
	while (place >= streams->of[stream].size + SEPARATOR_SIZE)
		place -= streams->of[stream++].size + SEPARATOR_SIZE;
	return stream;
}

/*
 * Change the bytes of one stream, and of each other one with a chance of one
 * half: a case that repeats most actions reaches little that is new.  Return
 * the size of the input, or 0 if it has no room.
 */
static size_t
change(Streams *streams, uint8_t *data, size_t size, size_t max_size, unsigned int *state)
{
	uint8_t		changed[max_size + MOST_STREAMS];
	uint8_t    *next = changed;
	size_t		picked = pick_stream(streams, size, state);

	for (size_t i = 0; i < streams->count; i++)
	{
		Stream	   *stream = &streams->of[i];
		size_t		room = max_size - size + stream->size;

		if ((i != picked && below(state, 2) == 0) || room == 0)
			continue;
		size -= stream->size;
		memcpy(next, stream->data, stream->size);
		if (stream->size == 0)
			next[stream->size++] = below(state, 256);
		stream->size = LLVMFuzzerMutate(next, stream->size, room);
		stream->data = next;
		size += stream->size;
		next += stream->size;
	}
	return join(streams, data, max_size);
}

/*
 * Return an input for a mutation in place of libFuzzer's choice, or NULL: in
 * half of all cases, one that reached an edge of the patches.  Each reached
 * edge is as likely as it is often there, however few inputs reach it.
 */
static const Input *
pick_patched(size_t max_size, unsigned int *state)
{
	const Input *picked;

	if (patched_reached == 0 || below(state, 2) == 0)
		return NULL;
	picked = patched[below(state, patched_reached)].input;
	return picked->size <= max_size ? picked : NULL;
}

/* Get a random input from the worker; return its size, 0 if a mutated one is due. */
static size_t
get_random(uint8_t *data, size_t max_size)
{
	uint32_t	length = 0;

	send_all(&length, sizeof(length));
	receive(&length, sizeof(length));
	if (length > max_size)
		fail("a random input is too long");
	receive(data, length);
	return length;
}

size_t
LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	unsigned int state = seed;
	uint8_t		copy[max_size + 1];
	const Input *picked;
	Streams		streams;
	size_t		drawn;

	drawn = get_random(data, max_size);
	if (drawn > 0)
		return drawn;
	picked = pick_patched(max_size, &state);
	if (picked != NULL)
		size = picked->size;
	memcpy(copy, picked != NULL ? picked->data : data, size);
	streams = divide(copy, size);
	if (streams.count <= ACTION + 1 || below(&state, 8) != 0)
		return change(&streams, data, size, max_size, &state);
	rearrange(&streams, &state);
	return join(&streams, data, max_size);
}

size_t
LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2, size_t size2, uint8_t *out,
						  size_t max_size, unsigned int seed)
{
	unsigned int state = seed;
	Streams		streams = divide(data1, size1),
				others = divide(data2, size2);

	size_t		drawn;

	if (streams.count <= ACTION || others.count <= ACTION || below(&state, 4) != 0)
		return 0;
	drawn = get_random(out, max_size);
	if (drawn > 0)
		return drawn;
	switch (below(&state, 5))
	{
		case 0:					/* the scene of one, the actions of the other */
			streams.of[SCENE] = others.of[SCENE];
			break;
		case 1:
			streams.of[MODES] = others.of[MODES];
			break;
		case 2:
			streams.of[EDITS] = others.of[EDITS];
			break;
		case 3:					/* about half of the actions */
			for (size_t i = ACTION; i < streams.count && i < others.count; i++)
				if (below(&state, 2) == 0)
					streams.of[i] = others.of[i];
			break;
		default:
			insert(&streams, ACTION + below(&state, streams.count - ACTION),
				   others.of[ACTION + below(&state, others.count - ACTION)]);
	}
	return join(&streams, out, max_size);
}

/*
 * libFuzzer harness for src/backend/utils/resowner/resowner.c. The input is a sequence of calls on a tree of
 * ResourceOwners. Each call is compared with a model.
 *
 * One byte selects an operation and its owner, and up to three bytes of arguments follow. Any bytes are valid. After
 * an insertion or deletion, most other bytes keep their meaning, so mutations are useful.
 *
 * With PGDUEL_AUX_OWNER in the environment, the root is AuxProcessResourceOwner, which is reused after its release.
 */
#include "postgres.h"

#include "model.h"

#define MAX_NEWEST 512

typedef struct Input
{
	const uint8_t *next;
	const uint8_t *end;
	int			owner;			/* the owner of this operation */
	bool		flag;			/* its meaning depends on the operation */
} Input;

/* Numbers of repetitions, near the sizes at which an owner moves entries or grows. */
static const int repeats[] = {1, 2, 3, 5, 16, 31, 32, 33, 48, 64, 65, 97, 128, 200, 500, 1500};

/* The most recently remembered resources, newest last. */
static struct
{
	uint8		owner,
				kind,
				value;
}			newest[MAX_NEWEST];
static int	nnewest;

static bool aux_owner;

static int
byte(Input *input)
{
	return input->next < input->end ? *input->next++ : 0;
}

static int
repeat(Input *input)
{
	return repeats[byte(input) % lengthof(repeats)];
}

/*
 * Remember duplicates or (if flag is set) a range of values. The byte of the kind also determines whether kinds
 * alternate.
 */
static void
op_remember(Input *input)
{
	int			kinds = byte(input);
	int			value = byte(input);
	int			times = repeat(input);

	for (int i = 0; i < times; i++)
	{
		int			kind = (kinds + (kinds & 64 ? i : 0)) % KINDS;

		if (!model_remember(input->owner, kind, value))
			return;
		newest[nnewest % MAX_NEWEST].owner = input->owner;
		newest[nnewest % MAX_NEWEST].kind = kind;
		newest[nnewest % MAX_NEWEST].value = value;
		nnewest++;
		if (input->flag)
			value = (value + 1) % VALUES;
	}
}

/* Forget resources. Stop at the first one that is not held, because that must raise an error. */
static void
op_forget(Input *input)
{
	int			kind = byte(input) % KINDS;
	int			value = byte(input);
	int			times = repeat(input);

	for (int i = 0; i < times && model_forget(input->owner, kind, value); i++)
		if (input->flag)
			value = (value + 1) % VALUES;
}

static void
op_forget_newest(Input *input)
{
	int			times = repeat(input);

	for (; times > 0 && nnewest > 0; times--)
	{
		int			i = --nnewest % MAX_NEWEST;
		int			owner = newest[i].owner;

		if (owners[owner].owner && owners[owner].held[newest[i].kind][newest[i].value] > 0)
			model_forget(owner, newest[i].kind, newest[i].value);
	}
}

static void
op_release_kind(Input *input)
{
	model_release_kind(input->owner, byte(input) % KINDS);
}

static void
op_create(Input *input)
{
	model_create(input->owner);
}

static void
op_reparent(Input *input)
{
	model_reparent(input->owner, model_owner(byte(input) % MAX_OWNERS));
}

static void
op_release(Input *input)
{
	int			how = byte(input);

	model_release(input->owner, (Release) {.commit = how & 1, .twice = how & 2, .nosy = how & 4});
}

/* At top level, all locks are released at once, without calls of the owners. */
static void
op_lock(Input *input)
{
	int			times = aux_owner ? 0 : byte(input) % 20;

	for (; times > 0; times--)
		(input->flag ? model_forget_lock : model_remember_lock) (input->owner);
}

static void
op_fail(Input *input)
{
	model_fail_in(byte(input) % 100);
}

/* Operations listed twice are more frequent. */
static void (*const operations[16]) (Input *input) =
{
	op_remember, op_remember, op_remember, op_remember, op_remember,
	op_forget, op_forget, op_forget,
	op_forget_newest, op_forget_newest,
	op_release_kind, op_create, op_reparent, op_release, op_lock, op_fail,
};

extern int	LLVMFuzzerInitialize(int *argc, char ***argv);
extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	aux_owner = getenv("PGDUEL_AUX_OWNER") != NULL;
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input		input = {data, data + size};

	nnewest = 0;
	model_begin(aux_owner);
	while (input.next < input.end)
	{
		int			what = byte(&input);

		input.owner = model_owner(what >> 4 & 7);
		input.flag = what >> 7;
		operations[what & 15] (&input);
	}
	model_end();
	return 0;
}

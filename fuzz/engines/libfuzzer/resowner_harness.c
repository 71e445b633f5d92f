/*
 * libFuzzer harness for src/backend/utils/resowner/resowner.c: bytes are calls on a tree of ResourceOwners, each of
 * which is checked against a model.
 *
 * An operation takes a byte that says what is done to which owner, and then up to three bytes of arguments. Any
 * bytes make sense, and inserting or deleting some keeps the meaning of most others, so that mutations are useful.
 *
 * With PGDUEL_AUX_OWNER in the environment, the root is AuxProcessResourceOwner, which is used again after release.
 */
#include "postgres.h"

#include "resowner_model.h"

#define MAX_NEWEST 512

typedef struct Input
{
	const uint8_t *next;
	const uint8_t *end;
	int			owner;			/* what this operation is about */
	bool		flag;			/* its meaning depends on the operation */
} Input;

/* How often something is done: around the sizes at which an owner moves entries or grows */
static const int repeats[] = {1, 2, 3, 5, 16, 31, 32, 33, 48, 64, 65, 97, 128, 200, 500, 1500};

/* The resources remembered last, newest last */
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

/* Duplicates, or (flag) a range of values; the kind's byte also says whether kinds alternate. */
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

/* Ends with the first one that is not held (an error that must be thrown). */
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

/* At top level all locks are released at once, without asking the owners. */
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

/* Those that come twice are more frequent in random bytes. */
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

/*
 * The model of resowner.c: for each owner, a counter for each resource (kind and value).
 *
 * Each operation on an owner is applied to its counters. The model of release is in release.c.
 */
#include "postgres.h"

#include "backend_stubs.h"
#include "model.h"

/*
 * Values are small integers, equal for all kinds, so that mixed-up kinds are detected. The last kind has no
 * DebugPrint.
 */
#define FOREACH_KIND(_) \
	_(0, RESOURCE_RELEASE_BEFORE_LOCKS, RELEASE_PRIO_FIRST, Print0) \
	_(1, RESOURCE_RELEASE_BEFORE_LOCKS, RELEASE_PRIO_BUFFER_PINS, Print1) \
	_(2, RESOURCE_RELEASE_BEFORE_LOCKS, RELEASE_PRIO_BUFFER_PINS, Print2) \
	_(3, RESOURCE_RELEASE_BEFORE_LOCKS, RELEASE_PRIO_LAST, Print3) \
	_(4, RESOURCE_RELEASE_AFTER_LOCKS, RELEASE_PRIO_FIRST, Print4) \
	_(5, RESOURCE_RELEASE_AFTER_LOCKS, RELEASE_PRIO_FIRST, Print5) \
	_(6, RESOURCE_RELEASE_AFTER_LOCKS, RELEASE_PRIO_TUPDESC_REFS, Print6) \
	_(7, RESOURCE_RELEASE_AFTER_LOCKS, RELEASE_PRIO_LAST, NULL)

#define CALLBACKS(k, phase, priority, print) \
	static void Release##k(Datum value) { model_released(k, DatumGetInt32(value)); } \
	static pg_attribute_unused() char *Print##k(Datum value) \
	{ return psprintf("resource %d of kind %d", DatumGetInt32(value), k); }
#define DESC(k, phase, priority, print) {"kind " #k, phase, priority, Release##k, print},

FOREACH_KIND(CALLBACKS)

const ResourceOwnerDesc kinds[KINDS] = {FOREACH_KIND(DESC)};

ModelOwner	owners[MAX_OWNERS];
ResourceOwner base_owner;
LOCALLOCK	fake_lock;

static void
call_enlarge(void *arg)
{
	ResourceOwnerEnlarge(((Call *) arg)->owner);
}

static void
call_forget(void *arg)
{
	Call	   *call = arg;

	ResourceOwnerForget(call->owner, Int32GetDatum(call->value), &kinds[call->kind]);
}

/* Owners */

bool
is_below(int position, int ancestor)
{
	while ((position = owners[position].parent) >= 0)
		if (position == ancestor)
			return true;
	return false;
}

bool
in_subtree(int position, int top)
{
	return owners[position].owner && (position == top || is_below(position, top));
}

ModelOwner *
model_of(ResourceOwner owner)
{
	for (int i = 0; i < MAX_OWNERS; i++)
		if (owners[i].owner == owner)
			return &owners[i];
	fatal("an unknown owner is being released");
}

bool
holds_in_phase(const ModelOwner *model, ResourceReleasePhase phase)
{
	for (int kind = 0; kind < KINDS && model->total > 0; kind++)
		if (kinds[kind].release_phase == phase && model->of_kind[kind] > 0)
			return true;
	return false;
}

void
count(ModelOwner *model, int kind, int value, int change)
{
	model->held[kind][value] += change;
	model->of_kind[kind] += change;
	model->total += change;
}

int
model_owner(int position)
{
	while (owners[position % MAX_OWNERS].owner == NULL)
		position++;
	return position % MAX_OWNERS;
}

void
model_create(int parent)
{
	for (int i = 0; i < MAX_OWNERS; i++)
		if (owners[i].owner == NULL)
		{
			memset(&owners[i], 0, sizeof(ModelOwner));
			owners[i].parent = parent;
			owners[i].owner = ResourceOwnerCreate(parent < 0 ? base_owner : owners[parent].owner, "fuzzed");
			return;
		}
}

void
model_reparent(int position, int parent)
{
	if (owners[position].parent < 0 || in_subtree(parent, position))
		return;
	ResourceOwnerNewParent(owners[position].owner, owners[parent].owner);
	owners[position].parent = parent;
	if (ResourceOwnerGetParent(owners[position].owner) != owners[parent].owner)
		fatal("ResourceOwnerNewParent did not set the parent");
}

/* Resources */

bool
model_remember(int position, int kind, int value)
{
	ModelOwner *model = &owners[position];

	if (model->total >= MAX_HELD)
		return false;
	ResourceOwnerEnlarge(model->owner);
	ResourceOwnerRemember(model->owner, Int32GetDatum(value), &kinds[kind]);
	count(model, kind, value, 1);
	return true;
}

/* Forget a resource. If it is not held, the call must raise an error. */
bool
model_forget(int position, int kind, int value)
{
	Call		call = {owners[position].owner, kind, value};
	const char *error = error_of(call_forget, &call);

	if (owners[position].held[kind][value] == 0)
	{
		if (error == NULL)
			fatal("forgot resource %d of kind %d, which is not held", value, kind);
		return false;
	}
	if (error != NULL)
		fatal("resource %d of kind %d is held %d times, but: %s",
			  value, kind, owners[position].held[kind][value], error);
	count(&owners[position], kind, value, -1);
	return true;
}

/* Check that an owner in release can neither remember nor forget resources. */
void
check_closed(ResourceOwner owner)
{
	Call		call = {owner, 0, 0};

	if (error_of(call_enlarge, &call) == NULL)
		fatal("ResourceOwnerEnlarge worked after release had started");
	if (error_of(call_forget, &call) == NULL)
		fatal("ResourceOwnerForget worked after release had started");
}

/* Locks are not resources. The lock manager gets all locks of an owner at once, as a list if they are few. */

void
model_remember_lock(int position)
{
	ResourceOwnerRememberLock(owners[position].owner, &fake_lock);
	owners[position].locks++;
}

void
model_forget_lock(int position)
{
	if (owners[position].locks == 0)
		return;
	ResourceOwnerForgetLock(owners[position].owner, &fake_lock);
	owners[position].locks--;
}

/*
 * The model of resowner.c: each owner holds each resource (kind and value) some number of times.
 *
 * Whatever is done to an owner is done to its counters too, and the release callbacks check that what they are
 * given is held, that it is the turn of this owner, phase and priority, and that a leak warning of exactly this
 * resource came before it at commit, and none at abort.
 */
#include "postgres.h"

#include "backend_stubs.h"
#include "resowner_model.h"

#undef snprintf

/* Values are small integers, the same for all kinds, so that mixing up kinds shows. The last kind has no DebugPrint. */
#define FOREACH_KIND(_) \
	_(0, RESOURCE_RELEASE_BEFORE_LOCKS, RELEASE_PRIO_FIRST, Print0) \
	_(1, RESOURCE_RELEASE_BEFORE_LOCKS, RELEASE_PRIO_BUFFER_PINS, Print1) \
	_(2, RESOURCE_RELEASE_BEFORE_LOCKS, RELEASE_PRIO_BUFFER_PINS, Print2) \
	_(3, RESOURCE_RELEASE_BEFORE_LOCKS, RELEASE_PRIO_LAST, Print3) \
	_(4, RESOURCE_RELEASE_AFTER_LOCKS, RELEASE_PRIO_FIRST, Print4) \
	_(5, RESOURCE_RELEASE_AFTER_LOCKS, RELEASE_PRIO_FIRST, Print5) \
	_(6, RESOURCE_RELEASE_AFTER_LOCKS, RELEASE_PRIO_TUPDESC_REFS, Print6) \
	_(7, RESOURCE_RELEASE_AFTER_LOCKS, RELEASE_PRIO_LAST, NULL)

static void released(int kind, Datum value);

#define CALLBACKS(k, phase, priority, print) \
	static void Release##k(Datum value) { released(k, value); } \
	static pg_attribute_unused() char *Print##k(Datum value) \
	{ return psprintf("resource %d of kind %d", DatumGetInt32(value), k); }
#define DESC(k, phase, priority, print) {"kind " #k, phase, priority, Release##k, print},

FOREACH_KIND(CALLBACKS)
static const ResourceOwnerDesc kinds[KINDS] = {FOREACH_KIND(DESC)};

ModelOwner	owners[MAX_OWNERS];

static ResourceOwner base_owner;	/* above the root, as releasing locks asks for a parent */
static bool root_is_aux;		/* the root is AuxProcessResourceOwner, which is used again once released */
static int	fail_in;

/* What is going on: a phase of a release, or ResourceOwnerReleaseAllOfKind (then phase is 0). */
static struct
{
	ResourceReleasePhase phase;
	Release		how;
	ResourceOwner of_kind_owner;
	int			kind;
	ModelOwner *last;			/* whose resource was released last */
	uint32		last_priority;
	int			warnings;		/* since the last release */
	char		warning[256];
} now;

/* Calls that may end in an error */
typedef struct Call
{
	ResourceOwner owner;
	int			kind;
	int			value;
	bool		top_level;
} Call;

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

static void
call_release_kind(void *arg)
{
	Call	   *call = arg;

	ResourceOwnerReleaseAllOfKind(call->owner, &kinds[call->kind]);
}

static void
call_release(void *arg)
{
	Call	   *call = arg;

	ResourceOwnerRelease(call->owner, now.phase, now.how.commit, call->top_level);
}

/* Owners */

static bool
is_below(int position, int ancestor)
{
	while ((position = owners[position].parent) >= 0)
		if (position == ancestor)
			return true;
	return false;
}

static bool
in_subtree(int position, int top)
{
	return owners[position].owner && (position == top || is_below(position, top));
}

static ModelOwner *
model_of(ResourceOwner owner)
{
	for (int i = 0; i < MAX_OWNERS; i++)
		if (owners[i].owner == owner)
			return &owners[i];
	fatal("an unknown owner is being released");
}

static bool
holds_in_phase(const ModelOwner *model, ResourceReleasePhase phase)
{
	for (int kind = 0; kind < KINDS && model->total > 0; kind++)
		if (kinds[kind].release_phase == phase && model->of_kind[kind] > 0)
			return true;
	return false;
}

static void
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

/* Forgets a resource; one that is not held must end in an error. */
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

/* An owner in release can neither take nor forget resources. */
static void
check_closed(ResourceOwner owner)
{
	Call		call = {owner, 0, 0};

	if (error_of(call_enlarge, &call) == NULL)
		fatal("ResourceOwnerEnlarge worked after release had started");
	if (error_of(call_forget, &call) == NULL)
		fatal("ResourceOwnerForget worked after release had started");
}

static void
check_order(ModelOwner *model, int kind, int value)
{
	if (kinds[kind].release_phase != now.phase)
		fatal("resource %d of kind %d released in phase %d", value, kind, now.phase);
	for (int i = 0; i < MAX_OWNERS; i++)
		if (owners[i].owner && is_below(i, model - owners) && holds_in_phase(&owners[i], now.phase))
			fatal("resource %d of kind %d released before those of a child", value, kind);
	if (now.last && now.last != model && holds_in_phase(now.last, now.phase))
		fatal("resource %d of kind %d released before another owner was done", value, kind);
	if (now.last == model && kinds[kind].release_priority < now.last_priority)
		fatal("resource %d of kind %d released after one of priority %u", value, kind, now.last_priority);
	now.last = model;
	now.last_priority = kinds[kind].release_priority;
}

static void
check_warning(int kind, int value)
{
	const char *start = "resource was not closed: ";
	char	   *text;

	if (now.warnings != (now.phase && now.how.commit ? 1 : 0))
		fatal("%d leak warnings before the release of resource %d of kind %d", now.warnings, value, kind);
	if (now.warnings == 0)
		return;
	text = kinds[kind].DebugPrint ? kinds[kind].DebugPrint(Int32GetDatum(value))
		: psprintf("%s %p", kinds[kind].name, DatumGetPointer(Int32GetDatum(value)));
	if (strncmp(now.warning, start, strlen(start)) != 0 || strcmp(now.warning + strlen(start), text) != 0)
		fatal("leak warning of another resource than %d of kind %d: %s", value, kind, now.warning);
	pfree(text);
	now.warnings = 0;
}

void
on_warning(const char *text)
{
	now.warnings++;
	snprintf(now.warning, sizeof(now.warning), "%s", text);
}

/* All release callbacks */
static void
released(int kind, Datum datum)
{
	int			value = DatumGetInt32(datum);
	ModelOwner *model;

	if (!now.phase && !now.of_kind_owner)
		fatal("resource %d of kind %d released while nothing was to be released", value, kind);
	if (value < 0 || value >= VALUES)
		fatal("resource %d of kind %d was never remembered", value, kind);
	model = model_of(now.phase ? CurrentResourceOwner : now.of_kind_owner);
	if (now.phase)
		check_order(model, kind, value);
	else if (kind != now.kind)
		fatal("kind %d was to be released, not resource %d of kind %d", now.kind, value, kind);
	check_warning(kind, value);
	if (model->held[kind][value] == 0)
		fatal("resource %d of kind %d released, but not held any more", value, kind);
	count(model, kind, value, -1);
	if (now.how.nosy)
		check_closed(model->owner);
	if (fail_in > 0 && --fail_in == 0)
		elog(ERROR, "failing on purpose");
}

void
model_release_kind(int position, int kind)
{
	Call		call = {owners[position].owner, kind};
	const char *error;

	memset(&now, 0, sizeof(now));
	now.of_kind_owner = owners[position].owner;
	now.kind = kind;
	error = error_of(call_release_kind, &call);
	now.of_kind_owner = NULL;
	if (error != NULL)
	{
		/* the owner cannot be used any more, only released */
		model_release(position, (Release) {.commit = false});
		return;
	}
	if (owners[position].of_kind[kind] != 0)
		fatal("ResourceOwnerReleaseAllOfKind left %d of kind %d", owners[position].of_kind[kind], kind);
}

/* Locks are no resources: the lock manager gets all of an owner's, once, by name if they are few. */

static LOCALLOCK fake_lock;

void
model_remember_lock(int position)
{
	if (root_is_aux)
		return;
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

void
on_locks(bool commit, LOCALLOCK **locks, int nlocks)
{
	ModelOwner *model = model_of(CurrentResourceOwner);

	if (now.phase != RESOURCE_RELEASE_LOCKS || commit != now.how.commit)
		fatal("locks handed over in phase %d, commit %d", now.phase, commit);
	if (locks != NULL && nlocks != model->locks)
		fatal("%d locks handed over, not %d", nlocks, model->locks);
	for (; locks != NULL && nlocks > 0; nlocks--)
		ResourceOwnerForgetLock(model->owner, &fake_lock);
	model->locks = 0;
	model->handed_over++;
}

/* Release */

static bool
run_phase(int position, ResourceReleasePhase phase, Release how)
{
	Call		call = {.owner = owners[position].owner, .top_level = root_is_aux && position == 0};
	const char *error;

	memset(&now, 0, sizeof(now));
	now.phase = phase;
	now.how = how;
	error = error_of(call_release, &call);
	now.phase = 0;
	CurrentResourceOwner = NULL;
	if (now.warnings > 0)
		fatal("leak warning without a release: %s", now.warning);
	if (error != NULL)
		return false;

	for (int i = 0; i < MAX_OWNERS; i++)
	{
		if (!in_subtree(i, position))
			continue;
		if (holds_in_phase(&owners[i], phase))
			fatal("phase %d did not release everything", phase);
		if (phase == RESOURCE_RELEASE_LOCKS && owners[i].handed_over == 0 && !call.top_level)
			fatal("locks were not handed over");
	}
	if (how.nosy)
		check_closed(call.owner);
	return true;
}

static bool
run_phases(int position, Release how)
{
	for (ResourceReleasePhase phase = RESOURCE_RELEASE_BEFORE_LOCKS; phase <= RESOURCE_RELEASE_AFTER_LOCKS; phase++)
	{
		if (!run_phase(position, phase, how))
			return false;
		if (how.twice && !run_phase(position, phase, how))
			return false;
	}
	return true;
}

/* AuxProcessResourceOwner stays, and can be used again. */
static void
reopen_aux_owner(void)
{
	for (int i = 1; i < MAX_OWNERS; i++)
		if (owners[i].owner && owners[i].parent == 0)
			ResourceOwnerDelete(owners[i].owner);
	now.phase = RESOURCE_RELEASE_BEFORE_LOCKS;
	ReleaseAuxProcessResources(true);
	now.phase = 0;
}

/* Releases an owner and all below it, and deletes them; an error on the way is followed by an abort. */
void
model_release(int position, Release how)
{
	bool		is_root = owners[position].parent < 0;

	if (!run_phases(position, how) && !run_phases(position, (Release) {.commit = false}))
		fatal("the abort failed too");

	if (is_root && root_is_aux)
		reopen_aux_owner();
	else
		ResourceOwnerDelete(owners[position].owner);
	for (int i = 0; i < MAX_OWNERS; i++)
		if (i != position && in_subtree(i, position))
			owners[i].owner = NULL;
	if (!(is_root && root_is_aux))
		owners[position].owner = NULL;
	if (is_root && !root_is_aux)
		model_create(-1);
}

void
model_fail_in(int releases)
{
	fail_in = releases;
}

void
model_begin(bool aux_process)
{
	memset(&now, 0, sizeof(now));
	for (int i = 0; i < MAX_OWNERS; i++)
		owners[i].owner = NULL;
	fail_in = 0;
	root_is_aux = aux_process;
	if (root_is_aux)
	{
		CreateAuxProcessResourceOwner();
		CurrentResourceOwner = NULL;
		memset(&owners[0], 0, sizeof(ModelOwner));
		owners[0].owner = AuxProcessResourceOwner;
		owners[0].parent = -1;
		return;
	}
	base_owner = ResourceOwnerCreate(NULL, "base");
	model_create(-1);
}

void
model_end(void)
{
	fail_in = 0;
	model_release(0, (Release) {.commit = false});
	ResourceOwnerDelete(root_is_aux ? AuxProcessResourceOwner : base_owner);
	AuxProcessResourceOwner = NULL;
	if (stub_allocations() != 0)
		fatal("%ld allocations left", stub_allocations());
}

/*
 * The model of release. A callback must get a held resource, in the turn of its owner, phase and priority. At commit,
 * a leak warning of this resource must precede it; at abort, none may.
 */
#include "postgres.h"

#include "backend_stubs.h"
#include "lock_stubs.h"
#include "model.h"

#undef snprintf

static bool root_is_aux;		/* the root is AuxProcessResourceOwner, which is reused after its release */
static int	fail_in;

/* The operation in progress: a phase of a release, or ResourceOwnerReleaseAllOfKind (phase 0). */
static struct
{
	ResourceReleasePhase phase;
	Release		how;
	ResourceOwner of_kind_owner;
	int			kind;
	ModelOwner *last;			/* owner of the resource that was released last */
	uint32		last_priority;
	int			warnings;		/* since the last release */
	char		warning[256];
} now;

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

/* Check a call of a release callback. */
void
model_released(int kind, int value)
{
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
		/* the owner can only be released */
		model_release(position, (Release) {.commit = false});
		return;
	}
	if (owners[position].of_kind[kind] != 0)
		fatal("ResourceOwnerReleaseAllOfKind left %d of kind %d", owners[position].of_kind[kind], kind);
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

/* AuxProcessResourceOwner remains, and can be reused. */
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

/* Release and delete an owner and all below it. After an error, abort. */
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

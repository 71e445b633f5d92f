/*
 * A tree of ResourceOwners, and the resources that each must hold, as plain counters. See model.c, and
 * release.c for release.
 */
#ifndef RESOWNER_MODEL_H
#define RESOWNER_MODEL_H

#include "storage/lock.h"
#include "utils/resowner.h"

#define MAX_OWNERS	8
#define KINDS		8
#define VALUES		256
#define MAX_HELD	2000		/* per owner; limits the time of an input, because duplicates may cost O(n^2) */

typedef struct ModelOwner
{
	ResourceOwner owner;		/* NULL: not in use */
	int			parent;			/* position of the parent; -1 for the root */
	int			total;			/* sum of of_kind[] */
	int			locks;			/* remembered local locks */
	int			handed_over;	/* times that the lock manager got the locks */
	int			of_kind[KINDS]; /* sums of held[kind][] */
	uint16		held[KINDS][VALUES];
} ModelOwner;

/* Arguments of a call that may raise an error. */
typedef struct Call
{
	ResourceOwner owner;
	int			kind;
	int			value;
	bool		top_level;
} Call;

/* Options of a release. */
typedef struct Release
{
	bool		commit;			/* leaks cause warnings */
	bool		twice;			/* each phase is run a second time */
	bool		nosy;			/* use the owner after its release has started */
} Release;

extern const ResourceOwnerDesc kinds[KINDS];
extern ModelOwner owners[MAX_OWNERS];
extern ResourceOwner base_owner;	/* above the root, because releasing locks needs a parent */
extern LOCALLOCK fake_lock;		/* the only lock */

/* For the harness: release.c */
extern void model_begin(bool aux_process);
extern void model_end(void);
extern void model_fail_in(int releases);	/* the nth release callback from now raises an error; 0: none */
extern void model_release_kind(int position, int kind);
extern void model_release(int position, Release how);

/* For the harness: model.c */
extern int	model_owner(int position);	/* position of an owner in use */
extern void model_create(int parent);
extern void model_reparent(int position, int parent);
extern bool model_remember(int position, int kind, int value);
extern bool model_forget(int position, int kind, int value);
extern void model_remember_lock(int position);
extern void model_forget_lock(int position);

/* Shared by the two files */
extern void model_released(int kind, int value);	/* called by all release callbacks */
extern bool is_below(int position, int ancestor);
extern bool in_subtree(int position, int top);
extern ModelOwner *model_of(ResourceOwner owner);
extern bool holds_in_phase(const ModelOwner *model, ResourceReleasePhase phase);
extern void count(ModelOwner *model, int kind, int value, int change);
extern void check_closed(ResourceOwner owner);

#endif

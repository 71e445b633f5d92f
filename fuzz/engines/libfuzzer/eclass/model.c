/*
 * Content of the model's classes.
 */
#include "postgres.h"

#include "model.h"
#include "planner_stubs.h"

List	   *classes;

void
model_begin(void)
{
	classes = NIL;
}

ModelClass *
model_class(int choice)
{
	return classes == NIL ? NULL : list_nth(classes, choice % list_length(classes));
}

ModelMember *
model_member(ModelClass *class, int choice)
{
	return list_nth(class->members, choice % list_length(class->members));
}

/* Return whether the class has members of the relation. */
bool
mentions(const ModelClass *class, int relid)
{
	int			only;

	if (bms_is_member(relid, class->relids))
		return true;
	foreach_ptr(ModelMember, member, class->members)
	{
		if (member->parent != NULL && bms_get_singleton_member(member->relids, &only) && only == relid)
			return true;
	}
	return false;
}

bool
mentions_any(const ModelClass *class, Relids relids)
{
	int			relid = -1;

	while ((relid = bms_next_member(relids, relid)) >= 0)
	{
		if (root->simple_rel_array[relid] != NULL && mentions(class, relid))
			return true;
	}
	return false;
}

/* Return whether joins have been planned. */
bool
has_derived_clauses(void)
{
	foreach_ptr(ModelClass, class, classes)
	{
		if (class->derived != NIL)
			return true;
	}
	return false;
}

bool
computable(const ModelMember *member, Relids relids)
{
	return bms_is_subset(member->relids, relids);
}

ModelMember *
add_member(ModelClass *class, ModelMember member)
{
	ModelMember *added = palloc(sizeof(ModelMember));

	*added = member;
	class->members = lappend(class->members, added);
	if (member.parent == NULL)
		class->relids = bms_add_members(class->relids, member.relids);
	class->has_const |= member.is_const;
	return added;
}

ModelClass *
add_class(EquivalenceClass *ec, Oid type, Oid collation)
{
	ModelClass *class = palloc0(sizeof(ModelClass));

	class->ec = ec;
	class->opfamily = item_opfamily(type);
	class->collation = collation;
	classes = lappend(classes, class);
	return class;
}

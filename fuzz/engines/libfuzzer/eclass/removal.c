/*
 * Removal of a left join from a query. The planner's function is static, so this file includes its source file.
 */
#include "src/backend/optimizer/plan/analyzejoins.c"

#include "query.h"

void
remove_left_join(int relid, int ojrelid)
{
	SpecialJoinInfo *sjinfo = makeNode(SpecialJoinInfo);

	sjinfo->jointype = JOIN_LEFT;
	sjinfo->ojrelid = ojrelid;
	sjinfo->min_righthand = bms_make_singleton(relid);
	sjinfo->min_lefthand = bms_difference(root->all_baserels, sjinfo->min_righthand);
	remove_rel_from_query(root, relid, sjinfo);
}

/*
 * Settings that choose plans and limit memory. They change no result.
 */
#include "postgres.h"

#include "queries/queries.h"
#include "utils/guc.h"

#define VALUES	8				/* one for each value of three bits */

typedef struct Setting
{
	const char *name;
	const char *reference;
	const char *values[VALUES];
} Setting;

#define SELDOM_OFF	{"on", "on", "on", "on", "on", "on", "on", "off"}
#define OFTEN_OFF	{"off", "on", "off", "on", "off", "on", "off", "on"}

/* The reference joins by merging, without partitions, and in enough memory for one batch. */
static const Setting settings[] = {
	{"work_mem", "64MB", {"64kB", "64kB", "64kB", "64kB", "80kB", "128kB", "64kB", "4MB"}},
	{"hash_mem_multiplier", "2", {"1", "1", "1", "1.5", "1", "1", "1", "2"}},
	{"enable_hashjoin", "off", SELDOM_OFF},
	{"enable_mergejoin", "on", {"off", "off", "off", "off", "off", "on", "off", "on"}},
	{"enable_nestloop", "off", OFTEN_OFF},
	{"enable_hashagg", "off", SELDOM_OFF},
	{"enable_sort", "on", SELDOM_OFF},
	{"enable_incremental_sort", "off", SELDOM_OFF},
	{"enable_material", "on", SELDOM_OFF},
	{"enable_memoize", "off", SELDOM_OFF},
	{"enable_indexscan", "off", SELDOM_OFF},
	{"enable_bitmapscan", "off", SELDOM_OFF},
	{"enable_seqscan", "on", SELDOM_OFF},
	{"enable_partitionwise_join", "off", OFTEN_OFF},
	{"enable_partitionwise_aggregate", "off", OFTEN_OFF},
	{"enable_partition_pruning", "off", SELDOM_OFF},

	/* of the patches; a server without them has no such settings */
	{"enable_hashjoin_bloom", "off", SELDOM_OFF},
	{"debug_force_hashjoin_bloom", "off", OFTEN_OFF},
	{"hash_ntup_per_bucket", "10", {"10", "10", "1", "2", "5", "10", "20", "100"}},
};

static void
append_setting(StringInfo sql, const Setting *setting, const char *value)
{
	if (GetConfigOption(setting->name, true, false) == NULL)
		return;
	set_config_option(setting->name, value, PGC_SUSET, PGC_S_SESSION, GUC_ACTION_SET, true, ERROR, false);
	appendStringInfo(sql, "SET %s = '%s';\n", setting->name, value);
}

void
draw_settings(Input *input, StringInfo sql)
{
	uint64		bits = (uint64) word(input) << 32 | word(input);

	for (int i = 0; i < lengthof(settings); i++)
	{
		append_setting(sql, &settings[i], settings[i].values[bits % VALUES]);
		bits /= VALUES;
	}
}

void
reference_settings(StringInfo sql)
{
	for (int i = 0; i < lengthof(settings); i++)
		append_setting(sql, &settings[i], settings[i].reference);
}

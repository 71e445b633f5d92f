/*
 * Parser of remote SQL.
 */
#include "postgres.h"

#include <math.h>

#include "failure.h"
#include "lib/stringinfo.h"
#include "relation.h"
#include "remote_sql.h"
#include "utils/builtins.h"

static const char *sql;			/* the whole text */
static const char *at;			/* the rest to be parsed */

static void
begin(const char *text)
{
	sql = at = text;
}

static bool
next_is(const char *text)
{
	if (strncmp(at, text, strlen(text)) != 0)
		return false;
	at += strlen(text);
	return true;
}

static void
expect(const char *text)
{
	if (!next_is(text))
		fatal("%s: expected \"%s\" at \"%s\"", sql, text, at);
}

/* Expect a quoted name, in which quotes are doubled. */
static void
expect_quoted(const char *text, char quote)
{
	char		quotes[] = {quote, '\0'};

	expect(quotes);
	for (; *text; text++)
	{
		char		character[] = {*text, '\0'};

		expect(character);
		if (*text == quote || (*text == '\\' && quote == '\''))
			expect(character);
	}
	expect(quotes);
}

static void
expect_relation(void)
{
	expect_quoted(remote_schema(), '"');
	expect(".");
	expect_quoted(remote_table(), '"');
}

/* Expect a number that the server parses as `meant`, apart from its last digits, and at most `most`. */
static void
expect_number(double meant, double most)
{
	char	   *end;
	double		found = strtod(at, &end);

	if (end == at || !isdigit((unsigned char) *at))
		fatal("%s: expected a number at \"%s\"", sql, at);
	if (found > most || found <= 0 || fabs(found - meant) > meant * 1e-8)
		fatal("%s: expected %.17g at \"%s\"", sql, meant, at);
	at = end;
}

static void
expect_end(void)
{
	if (*at != '\0')
		fatal("%s: expected nothing more at \"%s\"", sql, at);
}

void
check_sample_sql(Relation rel, const PgFdwSample *sample)
{
	StringInfoData buf;
	List	   *attrs;
	int			columns = 0;

	initStringInfo(&buf);
	deparseAnalyzeSql(&buf, rel, sample, &attrs);
	begin(buf.data);

	expect("SELECT ");
	for (int i = 0; i < number_of_columns(); i++)
	{
		if (remote_column(i) == NULL)
			continue;
		if (columns > 0)
			expect(", ");
		expect_quoted(remote_column(i), '"');
		if (columns >= list_length(attrs) || list_nth_int(attrs, columns++) != i + 1)
			fatal("%s: column %d is missing among those retrieved", sql, i + 1);
	}
	if (sample->limit > 0)
	{
		expect(columns > 0 ? ", pg_catalog.row_number() OVER (), pg_catalog.random()" :
			   "pg_catalog.row_number() OVER (), pg_catalog.random()");
		columns += 2;
	}
	else if (columns == 0)
		expect("NULL");
	if (list_length(attrs) != columns)
		fatal("%s: %d columns retrieved of %d", sql, list_length(attrs), columns);

	expect(" FROM ");
	expect_relation();
	if (sample->tablesample != NULL)
	{
		expect(" TABLESAMPLE ");
		expect(sample->tablesample);
		expect("(");
		expect_number(100 * sample->tablesample_fraction, 100);
		expect(")");
	}
	if (sample->random_fraction < 1)
	{
		expect(" WHERE pg_catalog.random() < ");
		expect_number(sample->random_fraction, 1);
	}
	if (sample->limit > 0)
	{
		expect(" ORDER BY ");
		expect_number(columns, columns);
		expect(" LIMIT ");
		expect_number(sample->limit, sample->limit);
	}
	expect_end();
}

void
check_count_sql(Relation rel, double fraction)
{
	StringInfoData buf;

	initStringInfo(&buf);
	deparseAnalyzeCountSql(&buf, rel, fraction);
	begin(buf.data);

	expect("SELECT pg_catalog.count(*) FROM ");
	expect_relation();
	if (fraction < 1)
	{
		expect(" TABLESAMPLE SYSTEM(");
		expect_number(100 * fraction, 100);
		expect(")");
	}
	expect_end();
}

/* The relation's name is quoted as an identifier, within a literal. */
void
check_size_sql(Relation rel, int server_version, bool whole_tree)
{
	StringInfoData buf;
	StringInfoData relname;

	initStringInfo(&buf);
	initStringInfo(&relname);
	deparseAnalyzeSizeSql(&buf, rel, server_version, whole_tree);
	appendStringInfo(&relname, "%s.%s", quote_identifier(remote_schema()), quote_identifier(remote_table()));
	begin(buf.data);

	at = strstr(sql, " WHERE oid ");
	if (at == NULL)
		fatal("%s: which relation?", sql);
	if ((strstr(sql, "pg_stat_get_live_tuples") != NULL) != (server_version >= 80300))
		fatal("%s: statistics of server %d", sql, server_version);
	if ((strstr(sql, "pg_is_in_recovery") != NULL) != (server_version >= 90000))
		fatal("%s: standby of server %d", sql, server_version);
	expect(whole_tree ? " WHERE oid IN (WITH RECURSIVE tree(member) AS (SELECT " : " WHERE oid = ");
	if (strchr(relname.data, '\\') != NULL)
		expect("E");
	expect_quoted(relname.data, '\'');
	expect("::pg_catalog.regclass");
}

/*
 * Queries drawn from the input: joins of the scene's relations, in outer queries that group, sort and rescan them.
 *
 * Each relation has the same columns (scene.sql). A bound on the number of rows decides which relations may be joined.
 */
#include "postgres.h"

#include "queries/queries.h"

#define MOST_ROWS		8000	/* of a join */

typedef struct Relation
{
	const char *name;
	int			rows;
	int			alike;			/* most rows with one value in a column */
} Relation;

/* Tables of scene.sql, the smallest first */
static const Relation relations[] = {
	{"few", 10, 4},
	{"nothing", 1, 1},
	{"tens", 60, 6},
	{"many_keys", 100, 2},
	{"hundreds", 200, 10},
	{"parts", 150, 8},
	{"mates", 120, 6},
	{"pieces", 130, 7},
	{"wide", 90, 8},
	{"misjudged", 400, 26},
	{"large", 500, 24},
};

/* A FROM clause in the making: its relations are r1, r2 ... of the query */
typedef struct From
{
	int			first;			/* number of its first relation */
	int			next;			/* number of the next one */
	int			rows;			/* at most */
	int			alike;			/* most rows with one value of a column */
} From;

typedef struct Query
{
	Input	   *input;
	StringInfo	sql;
	int			relations;		/* number of the last one */
} Query;

#define ONE_OF(query, ...) \
	one_of(query, (const char *const[]) {__VA_ARGS__}, lengthof(((const char *const[]) {__VA_ARGS__})))

static const char *
one_of(Query *query, const char *const *texts, int count)
{
	return texts[byte(query->input) % count];
}

static bool
one_in(Query *query, int count)
{
	return byte(query->input) % count == 1;
}

static int
number(Query *query, int limit)
{
	return byte(query->input) % limit;
}

static const char *
integer_column(Query *query)
{
	return ONE_OF(query, "k", "s", "k", "u");
}

/* Return the number of one of the relations of a clause. */
static int
relation_in(Query *query, From from)
{
	return from.first + number(query, from.next - from.first);
}

/* A set-returning function has no statistics, and may be estimated wrongly. */
static From
add_series(Query *query, From from, int limit)
{
	static const int sizes[] = {1, 3, 20, 50, 100, 200, 400, 1000};
	int			rows = Min(sizes[number(query, lengthof(sizes))], limit);
	int			keys = rows / 5 + 1;
	bool		unknown = one_in(query, 3);

	appendStringInfo(query->sql,
					 "(SELECT nullif(g %% %d, 3) AS k, g %% %d AS s, g AS u, 'v' || g %% %d AS t, repeat('w', g %% %d) AS w "
					 "FROM generate_series(1, %s%d%s) AS g) AS r%d",
					 keys, keys + 5, keys + 9, 8 * number(query, 128) + 1, unknown ? "(SELECT " : "", rows,
					 unknown ? ")" : "", from.next);
	return (From) {from.next, from.next + 1, rows, 6};
}

/* Append a relation whose rows with one value are few enough, or which has few enough rows. */
static From
add_relation(Query *query, From from, int most_rows, int most_alike)
{
	int			kind = number(query, 16);
	const Relation *relation = &relations[kind % lengthof(relations)];

	if (kind >= lengthof(relations) && kind < 14 && most_alike >= 6 && most_rows >= 20)
		return add_series(query, from, most_rows);
	if (relation->rows > most_rows || (kind >= 14 ? relation->rows : relation->alike) > most_alike)
		relation = &relations[0];
	if (kind >= 14)
	{
		appendStringInfo(query->sql,
						 "(SELECT k, count(s)::int AS s, max(u) AS u, min(t) AS t, max(w) AS w FROM %s GROUP BY k) AS r%d",
						 relation->name, from.next);
		return (From) {from.next, from.next + 1, relation->rows, relation->rows};
	}
	appendStringInfo(query->sql, "%s AS r%d", relation->name, from.next);
	return (From) {from.next, from.next + 1, relation->rows, relation->alike};
}

/* Append an equality of columns of both sides, which can be hashed and merged. */
static void
add_equality(Query *query, From left, From right)
{
	int			one = relation_in(query, left);
	int			other = relation_in(query, right);
	int			kind = number(query, 8);

	if (kind == 0)
		appendStringInfo(query->sql, "r%d.t = r%d.t", one, other);
	else if (kind == 1)
		appendStringInfo(query->sql, "r%d.%s + %d = r%d.%s", one, integer_column(query), number(query, 8), other,
						 integer_column(query));
	else
	{
		const char *column = integer_column(query);

		appendStringInfo(query->sql, "r%d.%s = r%d.%s", one, column, other,
						 kind < 6 ? column : integer_column(query));
	}
}

/* Append a comparison of two columns, or of one with a constant. */
static void
add_comparison(Query *query, From left, From right)
{
	const char *operator = ONE_OF(query, "<", "<>", ">=", "<=", ">", "IS DISTINCT FROM");
	int			one = relation_in(query, left);
	int			other = relation_in(query, right);
	const char *column = integer_column(query);

	switch (number(query, 6))
	{
		case 0:
			appendStringInfo(query->sql, "r%d.%s IS %sNULL", one, column, one_in(query, 2) ? "NOT " : "");
			break;
		case 1:
			appendStringInfo(query->sql, "r%d.%s IN (1, 2, %d)", one, column, number(query, 128));
			break;
		case 2:
			appendStringInfo(query->sql, "r%d.t %s 'v%d'", one, operator, number(query, 100));
			break;
		case 3:
			appendStringInfo(query->sql, "(r%d.%s = %d OR r%d.%s %s %d)", one, column, number(query, 16), other,
							 integer_column(query), operator, number(query, 256));
			break;
		case 4:
			appendStringInfo(query->sql, "r%d.%s %s r%d.%s", one, column, operator, other, integer_column(query));
			break;
		default:
			appendStringInfo(query->sql, "r%d.%s %s %d", one, column, operator, number(query, 256));
	}
}

static void
add_condition(Query *query, From left, From right)
{
	add_equality(query, left, right);
	if (one_in(query, 4))
	{
		appendStringInfoString(query->sql, " AND ");
		add_equality(query, left, right);
	}
	if (one_in(query, 4))
	{
		appendStringInfoString(query->sql, " AND ");
		add_comparison(query, left, right);
	}
}

static const char *
join_type(Query *query)
{
	return ONE_OF(query, " JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " FULL JOIN ", " JOIN ", " LEFT JOIN ");
}

/* Append a join of a clause and one or two more relations; return the whole clause. */
static From
add_join(Query *query, From left)
{
	int			room = Max(MOST_ROWS / left.rows, 1);
	bool		nested = room >= 16 && one_in(query, 5);
	From		right;

	appendStringInfoString(query->sql, join_type(query));
	if (nested)
		appendStringInfoChar(query->sql, '(');
	right = add_relation(query, left, MOST_ROWS, room);
	if (nested)
	{
		From		second;

		appendStringInfoString(query->sql, join_type(query));
		second = add_relation(query, right, MOST_ROWS, room / Max(right.alike, 1));
		appendStringInfoString(query->sql, " ON ");
		add_condition(query, right, second);
		appendStringInfoChar(query->sql, ')');
		right = (From) {right.first, second.next, right.rows * second.alike + second.rows, right.alike * second.alike};
	}
	appendStringInfoString(query->sql, " ON ");
	add_condition(query, left, right);
	return (From) {left.first, right.next, left.rows * right.alike + right.rows, left.alike * right.alike};
}

/* Append a clause of one to four relations. */
static From
add_from(Query *query, int most_rows, int joins)
{
	From		none = {.next = query->relations + 1};
	From		from;

	from = add_relation(query, none, most_rows, most_rows);
	for (int i = 0; i < joins; i++)
		from = add_join(query, from);
	query->relations = from.next - 1;
	return from;
}

/* Append a condition on a subquery: a semi-join, an anti-join, or a subplan. */
static void
add_subquery_condition(Query *query, From from)
{
	int			kind = number(query, 4);
	const char *column = integer_column(query);
	From		inner = {.next = query->relations + 1};
	StringInfoData clause;
	StringInfo	sql = query->sql;

	initStringInfo(&clause);
	query->sql = &clause;
	inner = add_relation(query, inner, 200, 200);
	query->relations = inner.next - 1;
	query->sql = sql;
	if (kind < 2)
	{
		appendStringInfo(sql, "%sEXISTS (SELECT FROM %s WHERE ", kind == 0 ? "" : "NOT ", clause.data);
		add_condition(query, from, inner);
	}
	else
	{
		appendStringInfo(sql, "r%d.%s %sIN (SELECT %s FROM %s WHERE ", relation_in(query, from), column,
						 kind == 2 ? "" : "NOT ", integer_column(query), clause.data);
		add_comparison(query, inner, inner);
	}
	appendStringInfoChar(sql, ')');
}

static void
add_where(Query *query, From from)
{
	const char *word = " WHERE ";

	if (one_in(query, 3))
	{
		appendStringInfoString(query->sql, word);
		add_comparison(query, from, from);
		word = " AND ";
	}
	if (one_in(query, 3))
	{
		appendStringInfoString(query->sql, word);
		add_subquery_condition(query, from);
	}
}

/* Append an integer and a text column. The widest one, w, makes hash tables need several batches. */
static void
add_columns(Query *query, From from)
{
	appendStringInfo(query->sql, ONE_OF(query, "r%d.k AS x", "r%d.s AS x", "r%d.u AS x", "length(r%d.w) AS x"),
					 relation_in(query, from));
	appendStringInfo(query->sql, ", r%d.%s AS y", relation_in(query, from), ONE_OF(query, "t", "w"));
}

/* Append a query without grouping; its columns are x and y. */
static void
add_rows(Query *query, int most_rows, int joins)
{
	StringInfoData clause;
	StringInfo	sql = query->sql;
	From		from;

	initStringInfo(&clause);
	query->sql = &clause;
	from = add_from(query, most_rows, joins);
	add_where(query, from);
	query->sql = sql;
	appendStringInfoString(sql, one_in(query, 6) ? "SELECT DISTINCT " : "SELECT ");
	add_columns(query, from);
	appendStringInfo(sql, " FROM %s", clause.data);
}

static const char *
aggregates(Query *query)
{
	return ONE_OF(query, "count(*), sum(x), min(y)", "count(*), max(x), count(DISTINCT y)",
				  "count(x), sum(x) FILTER (WHERE y > 'v5'), max(y)", "count(*), count(DISTINCT x)");
}

static void
add_groups(Query *query, int joins)
{
	const char *group = ONE_OF(query, "x", "y", "x, y", "x % 7", "ROLLUP (x, y)", "GROUPING SETS ((x), (y), ())");
	const char *computed = aggregates(query);
	bool		filtered = one_in(query, 4);

	appendStringInfo(query->sql, "SELECT %s FROM (", computed);
	add_rows(query, MOST_ROWS, joins);
	appendStringInfoString(query->sql, ") AS q GROUP BY ");
	appendStringInfo(query->sql, "%s%s", group, filtered ? " HAVING count(*) > 1" : "");
}

static void
add_window(Query *query, int joins)
{
	appendStringInfo(query->sql, "SELECT x, y, %s FROM (",
					 ONE_OF(query, "count(*) OVER (PARTITION BY y)", "rank() OVER (ORDER BY x)",
							"sum(x) OVER (PARTITION BY y ORDER BY x)", "dense_rank() OVER (PARTITION BY x ORDER BY y)"));
	add_rows(query, MOST_ROWS, joins);
	appendStringInfoString(query->sql, ") AS q");
}

static void
add_set_operation(Query *query, int joins)
{
	const char *operation = ONE_OF(query, "UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL");

	appendStringInfoChar(query->sql, '(');
	add_rows(query, MOST_ROWS, joins);
	appendStringInfo(query->sql, ") %s (", operation);
	add_rows(query, MOST_ROWS, joins / 2);
	appendStringInfoChar(query->sql, ')');
}

/* Append a join that is executed once for each of a few outer rows, whose columns are its parameters. */
static void
add_rescans(Query *query, int joins)
{
	From		outer = {.next = query->relations + 1};
	const char *kind = ONE_OF(query, "x, y", "x, y", "count(*) AS x, max(y) AS y", "DISTINCT x, y");
	StringInfoData clause;
	StringInfo	sql = query->sql;
	From		inner;

	initStringInfo(&clause);
	query->sql = &clause;
	outer = add_relation(query, outer, 60, 60);
	query->relations = outer.next - 1;
	appendStringInfo(query->sql, " %sJOIN LATERAL (SELECT %s FROM (SELECT ", one_in(query, 2) ? "LEFT " : "", kind);
	query->sql = sql;
	appendStringInfo(sql, "SELECT r%d.k, l.x, l.y FROM %s", outer.first, clause.data);

	resetStringInfo(&clause);
	query->sql = &clause;
	inner = add_from(query, 6000 / outer.rows, Min(joins, 2));
	appendStringInfoString(&clause, " WHERE ");
	if (one_in(query, 2))
		add_condition(query, outer, inner);
	else
		add_comparison(query, outer, inner);
	query->sql = sql;
	add_columns(query, inner);
	appendStringInfo(sql, " FROM %s OFFSET 0) AS q) AS l ON true", clause.data);
}

void
draw_query(Input *input, StringInfo sql)
{
	Query		query = {.input = input, .sql = sql};
	int			kind = number(&query, 16);
	int			joins = 1 + number(&query, 8) % 3;

	if (kind < 7)
		add_rows(&query, MOST_ROWS, joins);
	else if (kind < 10)
		add_groups(&query, joins);
	else if (kind < 11)
		add_window(&query, joins);
	else if (kind < 13)
		add_set_operation(&query, joins);
	else
		add_rescans(&query, joins);
}

/*
 * A random foreign table, and the catalog functions that deparse.c calls for it.
 */
#include "postgres.h"

#include <math.h>

#include "commands/defrem.h"
#include "foreign/foreign.h"
#include "nodes/makefuncs.h"
#include "relation.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#define RELATION_OID	4711
#define NAMESPACE_OID	42

static FormData_pg_class class;
static RelationData relation;
static ForeignTable foreign_table;
static List *column_options[MAX_COLUMNS];
static const char *remote_names[MAX_COLUMNS];
static const char *schema;
static const char *table;

static DefElem *
option(char *key, char *value)
{
	DefElem    *element = palloc0(sizeof(DefElem));

	element->type = T_DefElem;
	element->defname = key;
	element->arg = (Node *) value;
	return element;
}

static void
make_columns(Input *input)
{
	int			natts = byte(input) % (MAX_COLUMNS + 1);
	TupleDesc	desc = palloc0(offsetof(struct TupleDescData, attrs) + natts * sizeof(FormData_pg_attribute));

	desc->natts = natts;
	for (int i = 0; i < natts; i++)
	{
		char	   *local = name(input);

		strlcpy(NameStr(TupleDescAttr(desc, i)->attname), local, NAMEDATALEN);
		column_options[i] = NIL;
		remote_names[i] = local;
		if (byte(input) % 3 == 0)
		{
			remote_names[i] = name(input);
			column_options[i] = list_make1(option("column_name", (char *) remote_names[i]));
		}
		if (byte(input) % 4 == 0)
		{
			TupleDescAttr(desc, i)->attisdropped = true;
			remote_names[i] = NULL;
		}
	}
	relation.rd_att = desc;
}

Relation
make_relation(Input *input)
{
	char	   *local = name(input);

	relation.rd_id = RELATION_OID;
	relation.rd_rel = &class;
	class.relnamespace = NAMESPACE_OID;
	strlcpy(NameStr(class.relname), local, NAMEDATALEN);
	schema = "local schema";
	table = local;

	foreign_table.options = NIL;
	if (byte(input) % 2)
	{
		schema = name(input);
		foreign_table.options = lappend(foreign_table.options, option("schema_name", (char *) schema));
	}
	if (byte(input) % 2)
	{
		table = name(input);
		foreign_table.options = lappend(foreign_table.options, option("table_name", (char *) table));
	}
	make_columns(input);
	return &relation;
}

const char *
remote_schema(void)
{
	return schema;
}

const char *
remote_table(void)
{
	return table;
}

int
number_of_columns(void)
{
	return relation.rd_att->natts;
}

const char *
remote_column(int number)
{
	return remote_names[number];
}

char *
pstrdup_stub(const char *text)
{
	return strcpy(palloc(strlen(text) + 1), text);
}

/* foreign.c, lsyscache.c, define.c */

ForeignTable *
GetForeignTable(Oid relid)
{
	return &foreign_table;
}

List *
GetForeignColumnOptions(Oid relid, AttrNumber attnum)
{
	return column_options[attnum - 1];
}

char *
get_namespace_name(Oid nspid)
{
	return pstrdup_stub("local schema");
}

char *
defGetString(DefElem *def)
{
	return (char *) def->arg;
}

/* ruleutils.c: unlike the original, it quotes every identifier */

const char *
quote_identifier(const char *ident)
{
	char	   *result = palloc(2 * strlen(ident) + 3);
	char	   *end = result;

	*end++ = '"';
	for (const char *next = ident; *next; next++)
	{
		if (*next == '"')
			*end++ = '"';
		*end++ = *next;
	}
	*end++ = '"';
	*end = '\0';
	return result;
}

/* psprintf.c */

size_t
pvsnprintf(char *buf, size_t len, const char *fmt, va_list args)
{
	int			printed = vsnprintf(buf, len, fmt, args);

	return (size_t) printed < len ? printed : printed + 1;
}

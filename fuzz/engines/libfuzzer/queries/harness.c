/*
 * libFuzzer harness for planner and executor: queries return the same rows under drawn settings and the reference's.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_type_d.h"
#include "common/hashfn.h"
#include "executor/spi.h"
#include "in_process.h"
#include "queries/queries.h"
#include "tcop/dest.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "varatt.h"

#define QUERIES		16			/* of an input: a fork takes as long as several of them */
#define LENGTH		2048		/* more bytes than they read; those after the end would be zero */

/* The rows of a query, in any order */
typedef struct Rows
{
	DestReceiver receiver;
	uint64		count;
	uint64		checksum;
} Rows;

static uint64
hash_of(Datum value, Oid type)
{
	Oid			output;
	bool		varlena;
	text	   *string;

	if (type == INT4OID || type == INT8OID || type == BOOLOID)
		return murmurhash64(value);
	if (type == TEXTOID)
		string = DatumGetTextPP(value);
	else
	{
		getTypeOutputInfo(type, &output, &varlena);
		string = cstring_to_text(OidOutputFunctionCall(output, value));
	}
	return hash_bytes_extended((unsigned char *) VARDATA_ANY(string), VARSIZE_ANY_EXHDR(string), 0);
}

static bool
add_row(TupleTableSlot *slot, DestReceiver *receiver)
{
	Rows	   *rows = (Rows *) receiver;
	uint64		hash = 0;

	slot_getallattrs(slot);
	for (int i = 0; i < slot->tts_nvalid; i++)
	{
		Oid			type = TupleDescAttr(slot->tts_tupleDescriptor, i)->atttypid;

		hash = hash_combine64(hash, slot->tts_isnull[i] ? 1 : hash_of(slot->tts_values[i], type));
	}
	rows->count++;
	rows->checksum += murmurhash64(hash);
	return true;
}

static void
start_rows(DestReceiver *receiver, int operation, TupleDesc columns)
{
}

static void
end_rows(DestReceiver *receiver)
{
}

/* Run a query. A subtransaction of its own warns of resources that it leaves. */
static Rows
rows_of(const char *sql)
{
	Rows		rows = {.receiver = {add_row, start_rows, end_rows, end_rows, DestTuplestore}};
	SPIExecuteOptions options = {.read_only = true, .dest = &rows.receiver};
	MemoryContext context = CurrentMemoryContext;

	BeginInternalSubTransaction(NULL);
	SPI_connect();
	if (SPI_execute_extended(sql, &options) != SPI_OK_SELECT)
		fatal("the query is no SELECT");
	SPI_finish();
	rows.checksum += plant_failure();
	ReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(context);
	return rows;
}

static void
judge_query(Input *input)
{
	StringInfoData settings;
	StringInfoData reference;
	StringInfoData sql;
	Rows		rows;
	Rows		expected;

	initStringInfo(&settings);
	initStringInfo(&reference);
	initStringInfo(&sql);
	draw_settings(input, &settings);
	draw_query(input, &sql);
	describe("%s%s;", settings.data, sql.data);
	rows = rows_of(sql.data);
	reference_settings(&reference);
	describe("%s%s;", reference.data, sql.data);
	expected = rows_of(sql.data);
	describe("%s%s;\n\nThe reference:\n%s", settings.data, sql.data, reference.data);
	if (rows.count != expected.count)
		fatal("a query returns " UINT64_FORMAT " rows instead of " UINT64_FORMAT, rows.count, expected.count);
	if (rows.checksum != expected.checksum)
		fatal("a query returns other rows than those of the reference");
}

void
run_input(const uint8_t *data, size_t size)
{
	uint8_t		longer[LENGTH];
	Input		input = {longer, longer + LENGTH};

	lengthen(data, size, longer, LENGTH);
	for (int i = 0; i < QUERIES; i++)
		judge_query(&input);
}

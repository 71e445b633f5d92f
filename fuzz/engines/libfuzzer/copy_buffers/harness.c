/*
 * libFuzzer harness for the buffers of COPY FROM in commands/copyfrom.c. The input determines relations (plain and
 * foreign tables, with indexes and triggers), and rows in runs, each run for one relation. Functions are called as
 * CopyFrom calls them. They are static, so this file includes copyfrom.c.
 *
 * Checks: Buffers are full at the limits of rows or bytes. A flush inserts each row once, in the order of its relation;
 * indexes and triggers get each row with the number of its line. Then at most MAX_PARTITION_BUFFERS remain, the present
 * relation's among them. An error anywhere leaves nothing that is freed twice. No memory is left.
 *
 * The memory of a row ends with the next row, so AddressSanitizer detects slots that live too short.
 */
#include "src/backend/commands/copyfrom.c"

#include "backend_stubs.h"
#include "input.h"
#include "lib/ilist.h"

#define MAX_RELATIONS	48
#define MAX_KINDS		8
#define MAX_ROWS		3000
#define NONE			(-1)
#define COMMAND			7
#define OPTIONS			3

typedef enum Place
{
	BUFFERED,
	INSERTED,
	INDEXED
} Place;

typedef struct Row
{
	int			relation;
	Place		place;
} Row;

typedef struct Target
{
	RelationData data;
	FormData_pg_class form;
	TriggerDesc triggers;
	ResultRelInfo info;
	int			last;			/* number of the row that was inserted last */
} Target;

/* A slot, with a copy of its row's number that is allocated like a materialized tuple. */
typedef struct Slot
{
	TupleTableSlot base;
	int		   *row;
} Slot;

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static Target relations[MAX_RELATIONS];
static int	nrelations;
static Row	rows[MAX_ROWS];
static int	nrows;
static int	nflushed;			/* rows before the last flush */
static int	buffered_bytes;
static int	fail_after;			/* calls of the table, index or trigger code until an error; negative: none */
static int64 refused;			/* rows that a foreign server did not insert */

static EState estate;
static ExprContext per_tuple;
static dlist_head query_pieces;
static dlist_head tuple_pieces;
static struct CopyFromStateData cstate;
static CopyMultiInsertInfo miinfo;

void
on_warning(const char *text)
{
	fatal("a warning: %s", text);
}

static void
perhaps_fail(void)
{
	if (fail_after >= 0 && fail_after-- == 0)
		elog(ERROR, "as the input demands");
}

static Target *
relation_of(ResultRelInfo *info)
{
	return (Target *) ((char *) info - offsetof(Target, info));
}

/* Return the number of a slot's row, which must be in some place, and be one of the relation. */
static int
row_of(TupleTableSlot *slot, Target *relation, Place place)
{
	int			row = ((Slot *) slot)->row ? *((Slot *) slot)->row : NONE;

	if (row == NONE)
		fatal("a slot without a row");
	if (&relations[rows[row].relation] != relation)
		fatal("a row of another relation");
	if (rows[row].place != place)
		fatal("a row in place %d instead of %d", rows[row].place, place);
	return row;
}

/* heapam.c, tableam.c, execTuples.c, postgres_fdw.c */

static void
clear_slot(TupleTableSlot *slot)
{
	Slot	   *own = (Slot *) slot;

	if (own->row != NULL)
		pfree(own->row);
	own->row = NULL;
}

static const TupleTableSlotOps slot_ops = {.base_slot_size = sizeof(Slot), .clear = clear_slot};

TupleTableSlot *
table_slot_create(Relation relation, List **reglist)
{
	Slot	   *slot = palloc0(sizeof(Slot));

	*(const TupleTableSlotOps **) &slot->base.tts_ops = &slot_ops;
	slot->base.tts_mcxt = CurrentMemoryContext;
	return &slot->base;
}

void
ExecDropSingleTupleTableSlot(TupleTableSlot *slot)
{
	if (((Slot *) slot)->row != NULL)
		fatal("a slot that is dropped has a row");
	pfree(slot);
}

BulkInsertState
GetBulkInsertState(void)
{
	return (BulkInsertState) palloc(1);
}

void
FreeBulkInsertState(BulkInsertState bistate)
{
	pfree(bistate);
}

/* Insert rows: each must be the next one of its relation. */
static void
insert_rows(Target *relation, TupleTableSlot **slots, int nslots)
{
	perhaps_fail();
	for (int i = 0; i < nslots; i++)
	{
		int			row = row_of(slots[i], relation, BUFFERED);

		if (row <= relation->last)
			fatal("a row before an earlier one");
		relation->last = row;
		rows[row].place = INSERTED;
	}
}

static void
multi_insert(Relation rel, TupleTableSlot **slots, int nslots, CommandId cid, int options,
			 struct BulkInsertStateData *bistate)
{
	Target  *relation = (Target *) rel;

	if (cstate.line_buf_valid)
		fatal("an error would show another line");
	if (bistate == NULL)
		fatal("no state of bulk inserts");
	if (cid != COMMAND || options != OPTIONS)
		fatal("other options than those of COPY");
	palloc(1);					/* may leak, as the code says */
	insert_rows(relation, slots, nslots);
}

static const TableAmRoutine am = {.multi_insert = multi_insert};

/* postgres_fdw may insert fewer rows than it gets, for example if a remote trigger refuses some. */
static TupleTableSlot **
batch_insert(EState *state, ResultRelInfo *info, TupleTableSlot **slots, TupleTableSlot **plan_slots, int *number)
{
	int			kept = *number % 5 == 4 ? 0 : *number;

	if (*number < 1 || *number > info->ri_BatchSize)
		fatal("a batch of %d rows, where %d are allowed", *number, info->ri_BatchSize);
	if (!cstate.relname_only)
		fatal("an error would show a line of another row");
	insert_rows(relation_of(info), slots, *number);
	refused += *number - kept;
	*number = kept;
	return slots;
}

static FdwRoutine fdw = {.ExecForeignBatchInsert = batch_insert};

/* execIndexing.c, trigger.c, backend_progress.c */

/* Check the line number of a row, which is one more than the row's. */
static void
check_line(int row)
{
	if (cstate.cur_lineno != (uint64) row + 1 || cstate.line_buf_valid)
		fatal("an error would show another line");
}

List *
ExecInsertIndexTuples(ResultRelInfo *info, TupleTableSlot *slot, EState *state, bool update, bool noDupErr,
					  bool *specConflict, List *arbiterIndexes, bool onlySummarizing)
{
	int			row = row_of(slot, relation_of(info), INSERTED);

	check_line(row);
	perhaps_fail();
	rows[row].place = INDEXED;
	return row % 3 == 0 ? list_make1_oid(1) : NIL;
}

void
ExecARInsertTriggers(EState *state, ResultRelInfo *info, TupleTableSlot *slot, List *recheckIndexes,
					 TransitionCaptureState *transition_capture)
{
	int			row = row_of(slot, relation_of(info), info->ri_NumIndices > 0 ? INDEXED : INSERTED);

	if (info->ri_FdwRoutine == NULL)
		check_line(row);
	else if (slot->tts_tableOid != RelationGetRelid(info->ri_RelationDesc))
		fatal("a trigger would see another table");
	perhaps_fail();
}

void
pgstat_progress_update_param(int index, int64 val)
{
}

/* The scenario */

static void
make_relation(Target *relation, int kind, Oid oid)
{
	memset(relation, 0, sizeof(Target));
	relation->last = NONE;
	relation->data.rd_id = oid;
	relation->data.rd_rel = &relation->form;
	relation->data.rd_tableam = &am;
	relation->form.relkind = RELKIND_RELATION;
	relation->info.ri_RelationDesc = &relation->data;
	if (kind & 1)
		relation->info.ri_TrigDesc = &relation->triggers;
	relation->triggers.trig_insert_after_row = kind & 2;
	if ((kind & 12) == 12)
	{
		relation->info.ri_FdwRoutine = &fdw;
		relation->info.ri_BatchSize = 2 + kind / 16;
	}
	else
	{
		relation->triggers.trig_insert_new_table = kind & 16;
		relation->info.ri_NumIndices = (kind & 4) ? 1 : 0;
	}
}

/* Check the buffers after a flush. */
static void
check_flushed(void)
{
	int			tracked = 0;

	for (; nflushed < nrows; nflushed++)
		if (rows[nflushed].place == BUFFERED)
			fatal("a row is still in a buffer after a flush");
	for (int i = 0; i < nrelations; i++)
		tracked += relations[i].info.ri_CopyMultiInsertBuffer != NULL;
	if (tracked != list_length(miinfo.multiInsertBuffers))
		fatal("%d buffers, and %d relations that have one", list_length(miinfo.multiInsertBuffers), tracked);
	if (tracked > MAX_PARTITION_BUFFERS)
		fatal("%d buffers after a flush", tracked);
	if (!CopyMultiInsertInfoIsEmpty(&miinfo) || CopyMultiInsertInfoIsFull(&miinfo))
		fatal("the buffers are not empty after a flush");
}

static void
flush(ResultRelInfo *current, int64 *processed)
{
	uint64		line = cstate.cur_lineno;
	bool		in_use = current != NULL && current->ri_CopyMultiInsertBuffer != NULL;

	CopyMultiInsertInfoFlush(&miinfo, current, processed);
	if (cstate.cur_lineno != line || !cstate.line_buf_valid || cstate.relname_only)
		fatal("the line of the present row is lost");
	if (in_use && current->ri_CopyMultiInsertBuffer == NULL)
		fatal("the buffer in use was removed");
	buffered_bytes = 0;
	check_flushed();
	if (*processed != nrows - refused)
		fatal("%lld rows are counted of %d", (long long) *processed, nrows);
}

static void
add_row(int relation, int length, int64 *processed)
{
	ResultRelInfo *info = &relations[relation].info;
	TupleTableSlot *slot;

	MemoryContextReset((MemoryContext) &tuple_pieces);
	slot = CopyMultiInsertInfoNextFreeSlot(&miinfo, info);
	if (((Slot *) slot)->row != NULL)
		fatal("a free slot has a row");
	((Slot *) slot)->row = MemoryContextAlloc(slot->tts_mcxt, sizeof(int));
	*((Slot *) slot)->row = nrows;
	rows[nrows] = (Row) {.relation = relation, .place = BUFFERED};
	cstate.cur_lineno = ++nrows;
	CopyMultiInsertInfoStore(&miinfo, info, slot, length, cstate.cur_lineno);

	buffered_bytes += length;
	if (CopyMultiInsertInfoIsEmpty(&miinfo))
		fatal("the buffers are empty after a row");
	if (CopyMultiInsertInfoIsFull(&miinfo) !=
		(nrows - nflushed >= MAX_BUFFERED_TUPLES || buffered_bytes >= MAX_BUFFERED_BYTES))
		fatal("the buffers are full with %d rows and %d bytes, or not", nrows - nflushed, buffered_bytes);
	if (CopyMultiInsertInfoIsFull(&miinfo))
		flush(info, processed);
}

static void
copy(void *arg)
{
	Input	   *input = arg;
	int64		processed = 0;
	int			previous = NONE;
	bool		partitioned = nrelations > 1;
	RelationData root = {.rd_rel = &(FormData_pg_class) {.relkind = RELKIND_PARTITIONED_TABLE}};
	ResultRelInfo target = {.ri_RelationDesc = &root};

	CopyMultiInsertInfoInit(&miinfo, partitioned ? &target : &relations[0].info, &cstate, &estate, COMMAND, OPTIONS);
	while (input->next < input->end && nrows < MAX_ROWS)
	{
		int			relation = byte(input) % nrelations;
		int			how = byte(input);
		int			step = how % 8 == 5;	/* one row for each relation in turn */
		int			times = step ? nrelations : how % 8 == 7 ? 64 * (1 + how / 8) : 1 + how / 8;
		int			length = byte(input) * (how % 4 == 3 ? 256 : 1);

		if (relation != previous && how % 16 == 6)
		{
			/* a partition that needs single inserts, for example because of its triggers */
			if (!CopyMultiInsertInfoIsEmpty(&miinfo))
				flush(&relations[relation].info, &processed);
			previous = NONE;
			continue;
		}
		for (int i = 0; i < times && nrows < MAX_ROWS; i++)
		{
			if (relation != previous && relations[relation].info.ri_CopyMultiInsertBuffer == NULL)
				CopyMultiInsertInfoSetupBuffer(&miinfo, &relations[relation].info);
			add_row(relation, length, &processed);
			previous = relation;
			relation = (relation + step) % nrelations;
		}
	}
	if (!CopyMultiInsertInfoIsEmpty(&miinfo))
		flush(NULL, &processed);
	CopyMultiInsertInfoCleanup(&miinfo);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input		input = {data, data + size};
	long		before = stub_allocations();
	int			kinds[MAX_KINDS];
	const char *error;

	nrelations = 1 + byte(&input) % MAX_RELATIONS;
	fail_after = byte(&input);
	fail_after = fail_after % 4 == 0 ? fail_after * 4 : -1;
	for (int i = 0; i < nrelations; i++)
	{
		if (i < MAX_KINDS)
			kinds[i] = byte(&input);
		make_relation(&relations[i], kinds[i % MAX_KINDS], i + 1);
	}

	dlist_init(&query_pieces);
	dlist_init(&tuple_pieces);
	nrows = nflushed = buffered_bytes = 0;
	refused = 0;
	memset(&cstate, 0, sizeof(cstate));
	cstate.line_buf_valid = true;
	per_tuple.ecxt_per_tuple_memory = (MemoryContext) &tuple_pieces;
	estate.es_query_cxt = (MemoryContext) &query_pieces;
	estate.es_per_tuple_exprcontext = &per_tuple;

	CurrentMemoryContext = (MemoryContext) &query_pieces;
	error = error_of(copy, &input);
	if (error != NULL && strcmp(error, "as the input demands") != 0)
		fatal("another error: %s", error);
	MemoryContextReset((MemoryContext) &tuple_pieces);
	if (error != NULL)
		MemoryContextReset((MemoryContext) &query_pieces);
	CurrentMemoryContext = TopMemoryContext;
	if (stub_allocations() != before)
		fatal("%ld pieces of memory are left", stub_allocations() - before);
	return 0;
}

/*
 * Batch files in memory. Each tuple must be written to the file of its batch.
 */
#include "postgres.h"

#include "backend_stubs.h"
#include "commands/tablespace.h"
#include "join_filter/join_filter.h"
#include "storage/buffile.h"

struct BufFile
{
	char	   *data;
	size_t		size;
	size_t		capacity;
	size_t		position;
	uint32		hashvalue;		/* last one written, of the tuple to be written next */
	bool		is_tuple_next;
};

int			saved_inner;
int			saved_outer;

BufFile *
BufFileCreateTemp(bool interXact)
{
	BufFile    *file = palloc0(sizeof(BufFile));

	file->capacity = 1024;
	file->data = palloc(file->capacity);
	return file;
}

void
BufFileClose(BufFile *file)
{
	pfree(file->data);
	pfree(file);
}

static void
check_file(BufFile *file, MinimalTuple tuple)
{
	HashJoinTable table = current_table();
	Joined	   *relation;
	Row		   *row = row_of(tuple, &relation);
	BufFile   **files = relation == &inner ? table->innerBatchFile : table->outerBatchFile;
	int			batch = ExecHashGetBatch(table, row->key);

	if (file->hashvalue != row->key)
		fatal("a tuple is saved with another hash value");
	if (batch <= table->curbatch || files[batch] != file)
		fatal("a tuple of batch %d is saved in another file", batch);
	if (table->curbatch > 0)
		return;
	if (relation == &inner)
		saved_inner++;
	else
		saved_outer++;
}

/* Called with a hash value and a tuple by turns. */
void
BufFileWrite(BufFile *file, const void *data, size_t size)
{
	if (file->is_tuple_next)
		check_file(file, (MinimalTuple) data);
	else
		memcpy(&file->hashvalue, data, sizeof(uint32));
	file->is_tuple_next = !file->is_tuple_next;

	if (file->size + size > file->capacity)
	{
		file->capacity = (file->capacity + size) * 2;
		file->data = repalloc(file->data, file->capacity);
	}
	memcpy(file->data + file->size, data, size);
	file->size += size;
}

int
BufFileSeek(BufFile *file, int fileno, off_t offset, int whence)
{
	file->position = 0;
	check_batch(current_table());
	return 0;
}

void
BufFileReadExact(BufFile *file, void *data, size_t size)
{
	if (file->position + size > file->size)
		fatal("nothing is left in a batch file");
	memcpy(data, file->data + file->position, size);
	file->position += size;
}

size_t
BufFileReadMaybeEOF(BufFile *file, void *data, size_t size, bool eofOK)
{
	if (file->position == file->size)
		return 0;
	BufFileReadExact(file, data, size);
	return size;
}

void
PrepareTempTablespaces(void)
{
}

/*
 * Shared temporary files in memory. Each is written once by one process, and read only after that.
 */
#include "postgres.h"

#include "backend_stubs.h"
#include "common/hashfn.h"
#include "lib/ilist.h"
#include "parallel_join/files.h"
#include "parallel_join/scheduler.h"
#include "storage/buffile.h"
#include "storage/sharedfileset.h"
#include "utils/memutils.h"

#define NAME_SIZE		32
#define NBUCKETS		1024	/* of files, by name; there are hundreds of them */

typedef struct SharedFile
{
	dlist_node	node;
	char		name[NAME_SIZE];
	bool		written;		/* completely? */
	char	   *data;
	size_t		size;
	size_t		capacity;
} SharedFile;

/* A file that a process has opened */
struct BufFile
{
	SharedFile *file;
	bool		writing;
	size_t		position;
};

static dlist_head files[NBUCKETS];
static dlist_head pieces = DLIST_STATIC_INIT(pieces);
static int	nopen;

static dlist_head *
bucket_of(const char *name)
{
	return &files[hash_bytes((const unsigned char *) name, strlen(name)) % NBUCKETS];
}

static SharedFile *
find_file(const char *name)
{
	dlist_iter	iter;

	dlist_foreach(iter, bucket_of(name))
	{
		SharedFile *file = dlist_container(SharedFile, node, iter.cur);

		if (strcmp(file->name, name) == 0)
			return file;
	}
	return NULL;
}

static BufFile *
open_file(SharedFile *file, bool writing)
{
	BufFile    *opened = palloc0(sizeof(BufFile));

	opened->file = file;
	opened->writing = writing;
	nopen++;
	return opened;
}

void
check_files(void)
{
	if (nopen > 0)
		fatal("%d files are still open", nopen);
	SharedFileSetDeleteAll(NULL);
}

/* sharedfileset.c: there is one set only */

void
SharedFileSetInit(SharedFileSet *fileset, dsm_segment *seg)
{
}

void
SharedFileSetAttach(SharedFileSet *fileset, dsm_segment *seg)
{
}

void
SharedFileSetDeleteAll(SharedFileSet *fileset)
{
	for (int i = 0; i < NBUCKETS; i++)
		dlist_init(&files[i]);
	MemoryContextReset((MemoryContext) &pieces);
}

/* buffile.c */

BufFile *
BufFileCreateFileSet(FileSet *fileset, const char *name)
{
	SharedFile *file;

	maybe_switch();
	if (find_file(name))
		fatal("the file %s is made twice", name);
	file = MemoryContextAllocZero((MemoryContext) &pieces, sizeof(SharedFile));
	if (strlen(name) >= NAME_SIZE)
		fatal("the name of a file is too long: %s", name);
	strcpy(file->name, name);
	dlist_push_head(bucket_of(name), &file->node);
	return open_file(file, true);
}

BufFile *
BufFileOpenFileSet(FileSet *fileset, const char *name, int mode, bool missing_ok)
{
	SharedFile *file = find_file(name);

	maybe_switch();
	if (file == NULL)
		fatal("there is no file %s", name);
	if (!file->written)
		fatal("the file %s is read while it is written", name);
	return open_file(file, false);
}

void
BufFileClose(BufFile *opened)
{
	maybe_switch();
	if (opened->writing)
		opened->file->written = true;
	pfree(opened);
	nopen--;
}

void
BufFileWrite(BufFile *opened, const void *data, size_t size)
{
	SharedFile *file = opened->file;

	maybe_switch();
	if (file->data == NULL)
	{
		file->capacity = size;
		file->data = MemoryContextAlloc((MemoryContext) &pieces, size);
	}
	if (file->size + size > file->capacity)
	{
		file->capacity = (file->size + size) * 2;
		file->data = repalloc(file->data, file->capacity);
	}
	memcpy(file->data + file->size, data, size);
	file->size += size;
}

int
BufFileSeekBlock(BufFile *opened, int64 block)
{
	opened->position = block * BLCKSZ;
	return 0;
}

void
BufFileReadExact(BufFile *opened, void *data, size_t size)
{
	if (opened->position + size > opened->file->size)
		fatal("nothing is left in the file %s", opened->file->name);
	memcpy(data, opened->file->data + opened->position, size);
	opened->position += size;
}

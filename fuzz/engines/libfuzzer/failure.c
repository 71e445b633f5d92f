/*
 * Failure of a harness: one line with the reason, and an abort, after which libFuzzer stores the input.
 */
#include "postgres.h"

#include "failure.h"

#undef vfprintf

void
fatal(const char *format,...)
{
	va_list		args;

	fputs("\npgduel harness: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	abort();
}

void
ExceptionalCondition(const char *condition, const char *file, int line)
{
	fatal("failed assertion: %s, line %d", condition, line);
}

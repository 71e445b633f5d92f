"""Tests of the lines of internal errors, which coverage leaves out."""

from collections import defaultdict

from fuzz.servers.coverage import Covered, FileCoverage
from fuzz.servers.internal_errors import InternalErrors, internal_errors

SOURCE = """\
static Oid
strategy_of(Node *node, int kind)
{
	if (node == NULL ||
		kind < 0)
		elog(ERROR, "no strategy %d for %s",
			kind,
			nodeToString(node));
	switch (kind)
	{
		case 1:
			if (kind == 2)
				ereport(ERROR,
						(errcode(ERRCODE_SYNTAX_ERROR),
						errmsg("no")));
			return kind;
		default:
			elog(ERROR, "unrecognized kind: %d", kind);
			break;
	}
	elog(DEBUG1, "done");
	foo(kind);
	elog(PANIC, "never");
	return InvalidOid;			/* keep compiler quiet */
}
"""


def test_errors_and_conditions_that_lead_to_nothing_else_are_found() -> None:
    assert internal_errors(SOURCE) == InternalErrors(frozenset((6, 7, 8, 17, 18, 19, 23, 24)), frozenset((4, 5)))


def test_an_error_on_the_last_line_of_a_cut_file_ends_there() -> None:
    assert internal_errors('\tx();\n\telog(ERROR, "a",\n\t\t b') == InternalErrors(frozenset((2, 3)), frozenset())


def test_coverage_counts_neither_the_errors_nor_the_branches_to_them() -> None:
    branches = defaultdict(list, {4: [0, 5], 5: [0, 5], 12: [0, 1], 17: [0, 3]})
    counted = FileCoverage({line: int(line < 6) for line in range(3, 26)}, branches)
    without = counted.without_internal_errors(SOURCE)
    assert without.covered == Covered(lines=15, lines_reached=3, branches=2, branches_reached=1)
    assert without.left_out == {6, 7, 8, 17, 18, 19, 23, 24}

"""An arm with an injected bug, and a script that shows the bug."""

from pathlib import Path

from fuzz import workdir
from tests.injected_bugs.injected_bug import bug_of, sound_patches

# On top of the arm `patched`: run-time pruning loses the rows at the lower bound of a partition.
BUG = workdir.PROJECT / "tests" / "injected_bugs" / "join_drops_row_at_partition_bound.patch"
JOIN_AT_BOUNDS = """\
CREATE TABLE duel.p (k int PRIMARY KEY) PARTITION BY RANGE (k);
CREATE TABLE duel.p1 PARTITION OF duel.p FOR VALUES FROM (0) TO (10);
CREATE TABLE duel.p2 PARTITION OF duel.p FOR VALUES FROM (10) TO (20);
INSERT INTO duel.p SELECT generate_series(0, 19);
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET enable_seqscan = off;
SELECT o.x, p.k FROM (VALUES (5), (10), (15)) AS o (x) JOIN duel.p ON p.k = o.x;
"""


def bugged_arms(directory: Path) -> tuple[str, ...]:
    """Return options for two arms; the second has the bug."""
    patches = [*sound_patches(bug_of(BUG)), BUG]
    (directory / "series").write_text("".join(f"{patch}\n" for patch in patches))
    return ("--arm", "patched", "--arm", f"bugged={directory}")

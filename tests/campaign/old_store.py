"""A campaign's store as an older version wrote it.

`store_0.sql` is the dump of a store of version 0: 60 cases of seed 5 on `master`, `patched` and `bugged`, which has
`join_drops_row_at_partition_bound.patch`. An unreduced finding and one of a spec were added by hand.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from fuzz.campaign.sqlite import FILE

DUMP = Path(__file__).with_name("store_0.sql")
BUG = "join_drops_row_at_partition_bound.patch"


@contextmanager
def database(directory: Path) -> Iterator[sqlite3.Connection]:
    """Open the database of a campaign's directory, and commit at the end."""
    with closing(sqlite3.connect(directory / FILE, timeout=0)) as connection:
        yield connection
        connection.commit()


def old_campaign(campaigns: Path) -> Path:
    """Create campaign 1 with a store of version 0, and return its directory."""
    directory = campaigns / "1"
    directory.mkdir(parents=True)
    with database(directory) as connection:
        connection.executescript(DUMP.read_text().replace("/campaigns/1", str(directory)))
        connection.execute("PRAGMA journal_mode = WAL")
    return directory

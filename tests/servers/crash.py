"""A crash after which a server does not start again."""

from oracles.model.case import Case, Kind, Step

_ON_B = "current_setting('data_directory') LIKE '%/b-%'"
_DAMAGE = (
    "echo restart_after_crash=off >>postgresql.auto.conf; kill -HUP $(head -n 1 postmaster.pid); sleep 1; "
    "echo damaged >>postgresql.auto.conf; kill -SEGV $PPID"
)
# Server b ends after the crash. Then its configuration is damaged.
CRASH_OF_B = Case(
    "by_hand",
    (),
    (
        Step("SELECT 1", Kind.QUERY),
        Step(f"DO $$ BEGIN IF {_ON_B} THEN COPY (SELECT 1) TO PROGRAM '{_DAMAGE}'; END IF; END $$"),
    ),
)

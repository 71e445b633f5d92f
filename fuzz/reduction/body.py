"""What a script does, whoever reads it: surroundings, settings, statements, what is left, and cleaning up."""

import re
from collections.abc import Sequence

from fuzz.execution.session import SEARCH_PATH
from fuzz.reduction.copy_text import SPOOL_VARIABLE
from fuzz.reduction.quoting import sql_literal
from fuzz.reduction.script import write_beside, write_modes, write_steps
from fuzz.sources.replaying.roles import role_made
from oracles.case import Case
from oracles.finding import Finding
from oracles.mode import Protocol, protocol_of

_OPENS_BLOCK = re.compile(r"\s*(BEGIN|START)\b", re.IGNORECASE)
_USES_SPOOL = '"$PGDUEL_DATA"'
_MAKE_SPOOL = f"\\set {SPOOL_VARIABLE} `mktemp`\n\\setenv PGDUEL_DATA :{SPOOL_VARIABLE}"
_REMOVE_SPOOL = '\\! rm -f "$PGDUEL_DATA"'
_SEARCH_PATH = f"""\
SET search_path = {SEARCH_PATH.replace(",", ", ")};"""
_CLEAN_UP = """\
SET client_min_messages = warning;
DROP SCHEMA duel CASCADE;"""
_BE_ONESELF = "RESET SESSION AUTHORIZATION;\nRESET ROLE;"
_REMOVE_ROLES = """\
SELECT format('DROP OWNED BY %1$I CASCADE; DROP ROLE %1$I', rolname) FROM pg_roles WHERE rolname IN ({0})
\\gexec"""
_CURSOR_PLANS = "SET cursor_tuple_fraction = 1;  -- pgduel fetched by protocol, which plans for all rows"
_EXTENSION = "CREATE EXTENSION IF NOT EXISTS {0} SCHEMA public;"
_LOOPBACK = f"""\
{_EXTENSION.format("postgres_fdw")}
CREATE SERVER loopback FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host :'HOST', port :'PORT', dbname :'DBNAME');
CREATE USER MAPPING FOR CURRENT_USER SERVER loopback OPTIONS (user :'USER');"""
# What a case may find in its database beside its own schema: how its mention looks, how to make it, how to remove it.
_SURROUNDINGS = (
    (re.compile(r"\bgist\b", re.IGNORECASE), _EXTENSION.format("btree_gist"), ""),
    (re.compile(r"\bloopback\b"), _LOOPBACK, "DROP SERVER loopback CASCADE;"),
)
_WHAT_IS_LEFT = """\
-- Rows and a hash of every table, view and sequence that the case leaves.
SELECT format(CASE relkind
              WHEN 'S' THEN 'SELECT %L AS sequence, last_value, is_called FROM %s'
              WHEN 'v' THEN 'SELECT %L AS view, count(*), sum(hashtextextended((r.*)::text, 0)) AS hash FROM %s AS r'
              ELSE 'SELECT %L AS "table", count(*), '
                   'sum(hashtextextended(tableoid::regclass || (r.*)::text, 0)) AS hash FROM %s AS r'
              END, oid::regclass, oid::regclass)
FROM pg_class
WHERE relnamespace IN ('duel'::regnamespace, pg_my_temp_schema())
  AND relkind IN ('r', 'p', 'm', 'v', 'S') AND NOT relispartition
ORDER BY relname COLLATE "C"
\\gexec"""

_WHAT_IS_HELD = """\
-- What the session still holds.
SELECT locktype, relation::regclass, mode, objid FROM pg_locks
WHERE pid = pg_backend_pid() AND locktype <> 'virtualxid' AND relation IS DISTINCT FROM 'pg_locks'::regclass;
SELECT name FROM pg_cursors;
SELECT name FROM pg_ls_tmpdir() WHERE name LIKE format('pgsql_tmp%s.%%', pg_backend_pid());
SELECT name, count(*), sum(total_bytes) FROM pg_backend_memory_contexts
GROUP BY name ORDER BY sum(total_bytes) DESC, name LIMIT 10;"""


def body(case: Case, finding: Finding) -> Sequence[str]:
    """Return the blocks of a script for psql, in a session that has an empty schema `duel`, which goes in the end."""
    blocks = list(write_steps(case))
    if finding.step is not None and finding.beside:
        blocks.insert(finding.step + 1, write_beside(case, finding.step, finding.beside))
    steps = "\n\n".join(blocks)
    mentioned = [each for each in _SURROUNDINGS if each[0].search(steps)]
    spool = _USES_SPOOL in steps
    roles = ", ".join(sorted({sql_literal(role) for step in case.all_steps if (role := role_made(step.sql))}))
    parts = (
        *(make for _, make, _ in mentioned),
        _SEARCH_PATH,
        _MAKE_SPOOL if spool else "",
        _CURSOR_PLANS if protocol_of(case.modes) is Protocol.CLOSED_EARLY else "",
        *write_modes(case),
        steps,
        "ROLLBACK;" if any(_OPENS_BLOCK.match(step.sql) for step in case.all_steps) else "",
        _BE_ONESELF if roles else "",
        _WHAT_IS_LEFT if finding.step is None and finding.oracle != "leak" else "",
        _WHAT_IS_HELD if finding.oracle == "leak" else "",
        _CLEAN_UP,
        _REMOVE_ROLES.format(roles) if roles else "",
        *(remove for _, _, remove in mentioned),
        _REMOVE_SPOOL if spool else "",
    )
    return [part for part in parts if part]

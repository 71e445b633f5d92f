"""Reproducer: a psql script that shows a finding without pgduel, and from which pgduel restores the case.

A script creates the objects that the case needs, applies settings, executes the statements, prints the remains, and
cleans up. A case to replay comes from a script, pgduel's or any other for psql, or from the identity of a case.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from shlex import quote
from textwrap import wrap
from typing import Any

from fuzz import __version__, documents
from fuzz.documents import DocumentError
from fuzz.engines.seeded import case_of
from fuzz.errors import CaseError
from fuzz.execution.modes.roles import ORDINARY, ROLE, ROLE_MADE
from fuzz.execution.session import SEARCH_PATH
from fuzz.generators.generator import Scale
from fuzz.output import visible_line
from fuzz.servers.settings import start_options
from fuzz.sources.scripts.psql import BLANK, tokens
from fuzz.sources.scripts.roles import role_made
from fuzz.sources.source import SourceContext
from fuzz.triage.reproducer.copy_text import SERVER_FILE, SPOOL_VARIABLE
from fuzz.triage.reproducer.quoting import sql_literal
from fuzz.triage.reproducer.script import read_case, write_evidence, write_modes, write_settings, write_steps
from oracles.framework.comparison import Aspect
from oracles.model.case import Case, CaseId
from oracles.model.feature import Feature
from oracles.model.finding import Finding
from oracles.model.mode import Protocol, protocol_of, settings_of
from oracles.model.oracle import oracle_named

_SETS = re.compile(r"\s*(SET|RESET)\b|.*\bset_config\b", re.IGNORECASE | re.DOTALL)
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
_GIVE_SCHEMA = f"{ROLE_MADE};\nALTER SCHEMA duel OWNER TO {ROLE};"
_MAY_READ_FILES = f"GRANT pg_read_server_files TO {ROLE};  -- the server reads data below at which psql would stop"
_REMOVE_ORDINARY = f"""\
DISCARD TEMP;
DO $$ BEGIN DROP ROLE {ROLE}; EXCEPTION WHEN dependent_objects_still_exist THEN NULL; END $$;"""
_CURSOR_PLANS = "SET cursor_tuple_fraction = 1;  -- pgduel fetched by protocol, which plans for all rows"
_ALL_FIELDS = "\\set VERBOSITY verbose"
_EXTENSION = "CREATE EXTENSION IF NOT EXISTS {0} SCHEMA public;"
_LOOPBACK = f"""\
{_EXTENSION.format("postgres_fdw")}
CREATE SERVER loopback FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host :'HOST', port :'PORT', dbname :'DBNAME');
CREATE USER MAPPING FOR CURRENT_USER SERVER loopback OPTIONS (user :'USER');"""
# Objects that a case may use besides its own schema: pattern of their use, statements that create and remove them.
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


def body(case: Case, finding: Finding, *, stable: bool = False) -> Sequence[str]:
    """Return the blocks of a psql script, for a session with an empty schema `duel`. The script drops it at the end.

    `stable` omits the oracle's own statements, whose output may differ from run to run.
    """
    oracle = None if stable else oracle_named(finding.oracle)
    begin, end = (oracle.script_begin, oracle.script_end) if oracle else ("", "")
    blocks = list(write_steps(case))
    if finding.step is not None and finding.evidence:
        blocks.insert(finding.step + 1, write_evidence(case, finding.step, finding.evidence))
    steps = "\n\n".join(blocks)
    mentioned = [each for each in _SURROUNDINGS if each[0].search(steps)]
    spool = _USES_SPOOL in steps
    roles = ", ".join(sorted({sql_literal(role) for step in case.all_steps if (role := role_made(step.sql))}))
    ordinary = ORDINARY.name in {mode.name for mode in case.modes}
    parts = (
        *(make for _, make, _ in mentioned),
        _SEARCH_PATH,
        _MAKE_SPOOL if spool else "",
        _CURSOR_PLANS if protocol_of(case.modes) is Protocol.CLOSED_EARLY else "",
        begin,
        _ALL_FIELDS if finding.origin.startswith(Aspect.FIELDS) else "",
        _GIVE_SCHEMA if ordinary else "",
        _MAY_READ_FILES if ordinary and SERVER_FILE in steps else "",
        *write_modes(case),
        steps,
        "ROLLBACK;" if any(_opens_block(step.sql) for step in case.all_steps) else "",
        _BE_ONESELF if roles or ordinary else "",
        _settings_again(case) if any(_SETS.match(step.sql) for step in case.all_steps) else "",
        _WHAT_IS_LEFT if finding.step is None and not end else "",
        end,
        _CLEAN_UP,
        _REMOVE_ROLES.format(roles) if roles else "",
        _REMOVE_ORDINARY if ordinary else "",
        *(remove for _, _, remove in mentioned),
        _REMOVE_SPOOL if spool else "",
    )
    return [part for part in parts if part]


def _opens_block(sql: str) -> bool:
    """Return whether a statement of the text may open a transaction block."""
    solid = (token.text.upper() for token in tokens(sql) if token.kind not in BLANK)
    return any(before == ";" and word in ("BEGIN", "START") for before, word in pairwise((";", *solid)))


def _settings_again(case: Case) -> str:
    """Return the statements that restore the settings from before the case, because they determine the text of rows."""
    settings = settings_of([mode for mode in case.modes if mode != ORDINARY])
    return "\n".join(("RESET ALL;", _SEARCH_PATH, *write_settings(settings.items())))


_ABOUT = re.compile(r"^-- pgduel: (\{.*\})$", re.MULTILINE)
_WIDTH = 110
_SHOWN_LINES, _SHOWN_WIDTH = 12, 160
_SESSION = """\
\\encoding UTF8
\\set ON_ERROR_STOP off
\\set ECHO queries
\\pset pager off
\\pset null '(null)'
SET client_min_messages = warning;
DROP SCHEMA IF EXISTS duel CASCADE;
CREATE SCHEMA duel;
RESET client_min_messages;"""


@dataclass(frozen=True, slots=True)
class About:
    """The data about a finding in its script."""

    generator: str
    case_id: str
    oracle: str
    fingerprint: str
    arms: tuple[str, ...]


def render(case: Case, finding: Finding, arms: Mapping[str, Mapping[str, Any]], case_id: str, replay: str) -> str:
    """Return the script. `arms` has the build, base and series of each arm; `replay` is the command that judges it."""
    about = About(case.generator, case_id, finding.oracle, finding.fingerprint, finding.arms)
    parts = (
        "\n".join(_comment(line) for line in _explain(case, finding, arms, case_id, replay)),
        f"-- pgduel: {documents.dumps(about)}",
        _SESSION,
        *body(case, finding),
    )
    return "\n\n".join(parts) + "\n"


def _comment(text: str) -> str:
    """Return a comment on one line. It has three spaces, because markers have one."""
    return f"--   {visible_line(text)}".rstrip()


def _explain(
    case: Case, finding: Finding, arms: Mapping[str, Mapping[str, Any]], case_id: str, replay: str
) -> Iterator[str]:
    yield finding.summary
    yield ""
    yield f"finding   {finding.fingerprint}, by the oracle {finding.oracle} ({finding.origin})"
    yield f"case      {case_id}" + ("" if finding.step is None else f"; it shows at step {finding.step} below")
    yield f"modes     {', '.join(mode.name for mode in case.modes) or 'plain'}"
    if case.samples:
        yield f"samples   {', '.join(case.samples)}"
    if finding.vote:
        yield f"suspect   {finding.vote}"
    for name, facts in arms.items():
        yield from wrap(f"arm       {name}: {_facts(facts)}", _WIDTH, subsequent_indent=" " * 10)
    for title, text in finding.sides():
        yield from _block(title, text)
    yield ""
    yield "See it:   psql -X -f THIS_FILE   as a superuser on a server of each arm, and compare what they print"
    yield from _on_one_server([{**arms[name], "name": name} for name in dict.fromkeys(finding.arms) if name in arms])
    yield f"Judge it: {replay}"
    yield f"Written by pgduel {__version__}."


def _on_one_server(arms: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the commands of two arms that are one build, and differ only in settings that a session may set."""
    if len({tuple(each.get("settings", ())) for each in arms}) < 2:
        return
    if len({(each["build"], *each.get("server_settings", ())) for each in arms}) > 1:
        return
    yield "          or on one server, because these arms are one build and differ in settings of a session:"
    for each in arms:
        options = start_options(dict(text.split("=", 1) for text in each.get("settings", ())))
        yield f"          {each['name']}: {f'PGOPTIONS={quote(options)} ' if options else ''}psql -X -f THIS_FILE"


def noted(script: str, notes: Mapping[str, str]) -> str:
    """Return a script with these notes in its header, below the case. They replace notes of the same names."""
    head, about, rest = script.partition("\n-- pgduel: ")
    for name in notes:
        head = re.sub(rf"^--   {name:9} .*\n(?:--             .*\n)*", "", head, flags=re.MULTILINE)
    lines = [
        line for name, text in notes.items() for line in wrap(f"{name:9} {text}", _WIDTH, subsequent_indent=" " * 10)
    ]
    added = "".join(f"{_comment(line)}\n" for line in lines)
    return (
        re.sub(r"^--   modes     .*\n", lambda match: match[0] + added, head, count=1, flags=re.MULTILINE)
        + about
        + rest
    )


def _facts(facts: Mapping[str, Any]) -> str:
    shown = ((key.replace("_", " "), value) for key, value in facts.items() if value not in (None, "", [], ()))
    return ", ".join(f"{key} {_words(value)}" for key, value in shown)


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        value = tuple(value.values())
    return " ".join(map(str, value)) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)


def _block(title: str, text: str) -> Iterator[str]:
    lines = text.split("\n")
    yield ""
    yield f"{title}:"
    for line in lines[:_SHOWN_LINES]:
        yield f"  {line[:_SHOWN_WIDTH]}" + ("..." if len(line) > _SHOWN_WIDTH else "")
    if len(lines) > _SHOWN_LINES:
        yield f"  ... {len(lines) - _SHOWN_LINES} more lines"


def parse(script: str) -> Case:
    """Return the case of a script: exactly the rendered one, unless the script was edited. Raises CaseError."""
    about = read_about(script)
    return read_case(script, about.generator if about else "script")


def read_about(script: str) -> About | None:
    """Return the script's data about its finding, or None if pgduel did not write it. Raises CaseError."""
    match = _ABOUT.search(script)
    if match is None:
        return None
    try:
        return documents.loads(match[1], About)
    except DocumentError as error:
        line = script.count("\n", 0, match.start()) + 1
        raise CaseError(f"line {line}: the text after `-- pgduel:` is damaged ({error})") from error


_CASE_ID = re.compile(r"(\d+)/(\w+)/(\d+)")


@dataclass(frozen=True, slots=True)
class Replay:
    """A case to replay. `about` has the data of its reproducer, if it comes from one."""

    case: Case
    about: About | None = None


def load(
    what: str,
    scale: Scale | None = None,
    target: SourceContext | None = None,
    features: Sequence[Feature] = (),
) -> Replay:
    """Return the case of a file, or of an identity SEED/GENERATOR/INDEX. Raises CaseError.

    Scale, source context and the arms' features matter only for an identity. They must be those of the first
    generation of the case.
    """
    path = Path(what)
    if path.is_file():
        return _from_script(path)
    return Replay(case_of(case_id_of(what), scale or Scale(), target, features))


def case_id_of(what: str) -> CaseId:
    """Return the identity SEED/GENERATOR/INDEX. Raises CaseError."""
    match = _CASE_ID.fullmatch(what)
    if match is None:
        raise CaseError(f"{what} is neither an existing file nor a case; name a case by SEED/GENERATOR/INDEX")
    return CaseId(int(match[1]), match[2], int(match[3]))


def _from_script(path: Path) -> Replay:
    try:
        script = path.read_text(encoding="utf-8")
        replay = Replay(parse(script), read_about(script))
    except (OSError, UnicodeDecodeError) as error:
        raise CaseError(f"{path} cannot be read ({error}); a script must be a text file in UTF-8") from error
    except CaseError as error:
        raise CaseError(f"{path}, {error}") from error
    if not replay.case.all_steps:
        raise CaseError(f"{path} has no statement")
    return replay

"""Notifications of a continuous campaign: a command of the user, called when a bug comes or goes, or a run fails.

A file beside the campaign has the bugs of which the command was told. So each change is told once, also that of a run
that was killed, and a call that fails is repeated later. Events are JSON on stdin: no argument of the command, and no
shell, has any text of a finding.
"""

import json
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from fuzz import documents, workdir
from fuzz.campaign.bug_history import BugHistory, BugStatus, CampaignRun, history
from fuzz.campaign.continuous import file_of
from fuzz.campaign.database import Say, outlasted
from fuzz.campaign.known import fault_of
from fuzz.campaign.plan import Plan
from fuzz.errors import CaseError, PgduelError, last_line

_LIMIT: Final = 30.0  # seconds of a call
_TOLD: Final = ".notified.json"
_Told = dict[str, bool]  # fingerprint → whether the bug was fixed at the last call


def command_of(text: str) -> tuple[str, ...]:
    """Return the words of a command, whose program is an absolute path; () for no command. Raises CaseError."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise CaseError(f"--notify {text!r} is no command ({error}); quote its words as for a shell") from error
    if not words:
        return ()
    program = shutil.which(words[0])
    if program is None:
        raise CaseError(f"--notify: there is no program {words[0]!r}; give the path of one that you may execute")
    return os.path.abspath(program), *words[1:]


def notify_of_bugs(plan: Plan, runs: Sequence[CampaignRun], say: Say) -> None:
    """Call the plan's command for each bug that is new, fixed or back again since the last call. Known faults are none.

    The first time, no bug is news. After a call that fails, `say` gets a line, and the other calls wait for the next
    time. Raises StorageError.
    """
    if not plan.notify:
        return
    file = file_of(plan.name, _TOLD)
    bugs = [bug for bug in reversed(history(runs)) if fault_of(bug.finding, plan.known) is None]
    told = _read(file)
    after = _with(bugs, {}) if told is None else _tell(plan, bugs, told, say)
    if after != told:
        outlasted(partial(workdir.write, file, documents.dumps(after)), say)


@contextmanager
def notified_of_errors(plan: Plan, say: Say) -> Iterator[None]:
    """Call the plan's command if the context ends with an error, which is raised again."""
    try:
        yield
    except Exception as error:
        if plan.notify:
            text = str(error) if isinstance(error, PgduelError) else repr(error)
            _called(plan.notify, {"event": "error", "campaign": plan.name, "error": text}, say)
        raise


def _read(file: Path) -> _Told | None:
    try:
        return documents.loads(file.read_text(encoding="utf-8"), _Told)
    except FileNotFoundError:
        return None


def _tell(plan: Plan, bugs: Sequence[BugHistory], told: _Told, say: Say) -> _Told:
    """Call the command for each change, the oldest bug first, until a call fails. Return the state after the calls."""
    for bug in bugs:
        event = _event(bug, told)
        if event and not _called(plan.notify, {"event": event, "campaign": plan.name, **bug.to_json()}, say):
            break
        told = _with([bug], told)
    return told


def _event(bug: BugHistory, told: _Told) -> BugStatus | None:
    """Return the change of a bug that its user has not been told, if any."""
    now = _is_fixed(bug, told)
    if not _known(bug, told):
        return BugStatus.FIXED if now else BugStatus.NEW
    if now == _was_fixed(bug, told):
        return None
    return BugStatus.FIXED if now else BugStatus.BACK_AGAIN


def _with(bugs: Sequence[BugHistory], told: _Told) -> _Told:
    return told | {name: _is_fixed(bug, told) for bug in bugs for name in _names(bug)}


def _is_fixed(bug: BugHistory, told: _Told) -> bool:
    """Return whether a bug is fixed; as before, if the last run has no evidence."""
    return bug.status is BugStatus.FIXED or (bug.status is BugStatus.NOT_SEEN and _was_fixed(bug, told))


def _was_fixed(bug: BugHistory, told: _Told) -> bool:
    """Return whether a bug was fixed. Its findings may have been several bugs before, of which some were not."""
    before = _known(bug, told)
    return bool(before) and all(before)


def _known(bug: BugHistory, told: _Told) -> list[bool]:
    return [told[name] for name in _names(bug) if name in told]


def _names(bug: BugHistory) -> list[str]:
    return [found.finding.fingerprint for found in bug.findings]


def _called(command: Sequence[str], event: Mapping[str, Any], say: Say) -> bool:
    """Call the command, and return whether it succeeded. Otherwise `say` gets a line."""
    failure = _failure(command, f"{json.dumps(event)}\n")
    if failure:
        about = f"{event['event']} bug {event['bug']}" if "bug" in event else "the error"
        later = "; it is tried again after the next run" if "bug" in event else ""
        say(f"no notification of {about}: {command[0]} {failure}{later}")
    return not failure


def _failure(command: Sequence[str], line: str) -> str:
    """Run a command with a line on stdin, in a session of its own. Return its failure in words, or ""."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        return f"cannot be started ({error.strerror})"
    with process:
        try:
            _, errors = process.communicate(line, timeout=_LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return f"did not end within {_LIMIT:g} s, and was killed"
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)  # Ctrl-C does not reach its session
            raise
    return f"ended with status {process.returncode} ({last_line(errors)})" if process.returncode else ""

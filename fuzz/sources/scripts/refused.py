"""Statements of a patch's own tests that the reference refuses, because only the patched server knows them.

A test of a new setting, function or syntax fails on a server without the patch. That is no fault, and after it the arms
would hold different data. Two executions of the test, one on each arm, show which statements are refused so. These are
replaced by statements that leave the same state on both arms:

- A setting is set where it exists.
- Any other statement runs in a DO block that undoes it. So its rows and its effects are not compared.

Both catch all errors but internal ones. So a crash, a leak or an internal error of such statements is still found.
A statement that does not end is the last one of the case, because nothing is known of the statements after it.

Statements that depend on a replaced one fail on both arms alike.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from pglast import ast
from pglast.enums import VariableSetKind

from fuzz.sources.context import Ended
from fuzz.sources.scripts.steps import quoted
from oracles.model.case import Case, Step
from oracles.sql.parsing import trees

# The statement itself is refused, whatever the data: feature not supported, and errors about syntax, names and objects
# (src/backend/utils/errcodes.txt).
_OF_STATEMENTS: Final = frozenset(
    {"0A000", "42601", "42703", "42704", "42809", "42883", "42P01", "42P16", "42P17", "HV00D"}
)
_UNDEFINED_OBJECT: Final = "42704"
_OF_VALUES: Final = "22023"  # an option's value, but in queries also an argument of a function
_WITH_OPTIONS: Final = ("ALTER", "CREATE", "SET")
_TAG: Final = "known to the patch only"
_ROUNDS: Final = 30  # a refused statement may hide others, as it ends a transaction
_CATCH: Final = "EXCEPTION WHEN OTHERS THEN IF SQLSTATE LIKE 'XX%' THEN RAISE; END IF; END"


@dataclass(frozen=True, slots=True)
class Refusals:
    """The statements of a case that only the suspect knows, by position.

    `known` is the number of steps up to the first that did not end on both arms. Nothing is known of the others.
    """

    statements: Mapping[int, Ended]
    known: int


def refusals(case: Case, tried: Callable[[Case], Sequence[Ended]]) -> Refusals:
    """Return the statements that only the suspect knows. `tried` executes a case on both arms."""
    found = Refusals({}, len(case.all_steps))
    for _ in range(_ROUNDS):
        ends = tried(comparable(case, found))
        pairs = enumerate(zip(case.all_steps, ends, strict=False))  # the case may be cut
        more = {position: ended for position, (step, ended) in pairs if _is_refused(step, ended)}
        unended = (position + 1 for position, ended in enumerate(ends) if None in (ended.reference, ended.suspect))
        found = Refusals(_with_settings(case, more | dict(found.statements)), next(unended, found.known))
        if not more:
            break
    return found


def comparable(case: Case, refused: Refusals) -> Case:
    """Return the known steps of a case, with replacements for statements that only the suspect knows."""
    statements = refused.statements
    steps = [
        _replaced(step, statements[position]) if position in statements else step
        for position, step in enumerate(case.all_steps[: refused.known])
    ]
    scene = len(case.scene)
    return replace(case, scene=tuple(steps[:scene]), steps=tuple(steps[scene:]))


def _with_settings(case: Case, found: Mapping[int, Ended]) -> dict[int, Ended]:
    """Return refused statements with all others about the same settings, which may be in an aborted transaction."""
    names = {_setting(case.all_steps[position].sql): ended for position, ended in found.items() if _of_setting(ended)}
    names.pop("", None)
    alike = {position: names.get(_setting(step.sql)) for position, step in enumerate(case.all_steps)}
    return {position: ended for position, ended in alike.items() if ended is not None} | dict(found)


def _of_setting(ended: Ended) -> bool:
    return ended.reference == _UNDEFINED_OBJECT


def _is_refused(step: Step, ended: Ended) -> bool:
    """Return whether the reference refuses a statement as such, and the suspect ends it in another way."""
    if ended.suspect is None or ended.suspect == ended.reference:
        return False
    has_options = step.sql.upper().startswith(_WITH_OPTIONS)
    return ended.reference in _OF_STATEMENTS or (ended.reference == _OF_VALUES and has_options)


def _replaced(step: Step, ended: Ended) -> Step:
    """Return the statement for both arms. COPY with data does nothing, because no DO block can execute it."""
    if step.copy_data is not None:
        body = "BEGIN END"
    elif _of_setting(ended) and (conditional := _if_known(step.sql)):
        body = conditional
    else:
        body = _undone(step.sql)
    return Step(f"DO {quoted(body)}", may_fail=True, tags=(f"{_TAG} ({ended.reference})",))


def _undone(sql: str) -> str:
    quiet = "PERFORM set_config('client_min_messages', 'error', true)"
    return f"BEGIN {quiet}; EXECUTE {quoted(sql)}; RAISE EXCEPTION 'undone'; {_CATCH}"


def _if_known(sql: str) -> str:
    """Return the body that sets or resets a setting where it exists; "" for other statements."""
    tree = _set_statement(sql)
    value = None if tree is None else _value(tree)
    if tree is None or value is None:
        return ""
    local, name = str(bool(tree.is_local)).lower(), quoted(_setting(sql))
    return f"BEGIN PERFORM set_config(name, {value}, {local}) FROM pg_settings WHERE lower(name) = {name}; {_CATCH}"


def _setting(sql: str) -> str:
    """Return the setting that a statement sets or resets, or ""."""
    tree = _set_statement(sql)
    return "" if tree is None else str(tree.name or "").lower()


def _set_statement(sql: str) -> Any:
    statements = trees(sql)
    tree = statements[0].stmt if len(statements) == 1 else None
    return tree if isinstance(tree, ast.VariableSetStmt) else None


def _value(tree: Any) -> str | None:
    """Return the expression of a setting's value; None if it is not a single constant."""
    if tree.kind in (VariableSetKind.VAR_RESET, VariableSetKind.VAR_SET_DEFAULT):
        return "reset_val"
    constants = [each.val for each in tree.args or () if isinstance(each, ast.A_Const)]
    if tree.kind is not VariableSetKind.VAR_SET_VALUE or len(constants) != 1 or len(tree.args) != 1:
        return None
    (constant,) = constants
    for attribute in ("sval", "ival", "fval"):
        if hasattr(constant, attribute):
            return quoted(str(getattr(constant, attribute)))
    return None

"""Assertions of the plugin: statements of a test become a case, and oracles judge it.

An assertion fails with a finding, whose reproducer is written; the case of a generator is reduced first. It also fails
if it would prove nothing: if a statement of the test does not succeed, or if an oracle cannot decide. Generated cases
have intended errors, and oracles may leave a few undecided. So a test on these fails at its end if no example proves
anything.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from textwrap import indent
from typing import Any, Final

from fuzz import workdir
from fuzz.engines.seeded import draw_case
from fuzz.errors import CaseError, ServerError
from fuzz.execution.executor import Executor
from fuzz.execution.judging import Assignment, JudgedCase, assignments, judge_case
from fuzz.execution.modes import composed
from fuzz.execution.modes.roles import ORDINARY, may_be_ordinary
from fuzz.generators.generator import all_generators
from fuzz.servers.arm import Arm, features_of
from fuzz.sources.scripts.psql import tokens
from fuzz.triage.blame import Blame
from fuzz.triage.findings import StoredFinding
from fuzz.triage.interestingness import ReducedCase
from fuzz.triage.reproducer.script import read_case
from fuzz.triage.triage import Triage, as_executed, replay_command
from oracles.crash import Crash
from oracles.framework.difference_text import ended, row_values
from oracles.framework.shared_runs import PLANNED, REPEATED
from oracles.hang import Hang
from oracles.internal_error import InternalError
from oracles.leak import Leak
from oracles.lost_connection import LostConnection
from oracles.model.case import Case, Kind, Step
from oracles.model.finding import Finding
from oracles.model.mode import Mode
from oracles.model.observation import Observation, Outcome, Run
from oracles.model.oracle import Agree, Inconclusive, Observations, Unstable
from oracles.plan import Plan
from oracles.result import Result

GENERATOR: Final = "pytest"  # in place of a generator's name, for statements of a test
# The last oracle of each assertion is the one that must agree.
_SAME: Final = (Crash(), Hang(), InternalError(), LostConnection(), Result())
_LEAK: Final = (Crash(), Leak())
_PLAN: Final = Plan()
_SHOWN_LINES: Final = 40  # of a case
_PARAMETER: Final = re.compile(r"\$\d+")
_SUCCESSES: Final = (Outcome.OK, Outcome.TOO_LARGE)
_FAILURES: Final = {  # outcome -> text about a statement with it, and advice
    Outcome.ERROR: ("fails", "correct it"),
    Outcome.TIMEOUT: ("reaches the time limit", "make it shorter, or raise --pgduel-timeout"),
    Outcome.LOST: ("loses its connection", "correct it"),
    Outcome.SKIPPED: ("is not executed", "correct the statements before it"),
}


class Failed(Exception):
    """An assertion that failed. The message has several lines."""


class Unshrunk(Failed):
    """An assertion that failed on a generated case not to be shrunk: it is reduced, or the user's scene failed."""


class _Unrecorded:
    """A log of triage that keeps nothing but the directory: a run of pytest has no store."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def record_reproducer(self, fingerprint: str, reproducer: Path) -> None:
        """Do nothing."""

    def record_progress(self, fingerprint: str, smallest: ReducedCase) -> None:
        """Do nothing."""

    def record_reduction(self, fingerprint: str, smallest: ReducedCase, seconds: float) -> None:
        """Do nothing."""

    def record_blame(self, fingerprint: str, blame: Blame) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statements:
    """Arguments of an assertion: a scene and statements, or the number of a generated case."""

    scene: tuple[str, ...]
    sql: tuple[str, ...] = ()
    case: int | None = None
    mode: str = "plain"
    settings: Mapping[str, str] = field(default_factory=dict)
    params: tuple[str | None, ...] = ()
    ordered: bool = False
    may_fail: bool = False


def unknown_setting(name: str) -> CaseError:
    """Return the error about a setting that no arm has."""
    return CaseError(f"no arm has the setting {name!r}; correct its name")


def steps_of(texts: Sequence[str]) -> tuple[Step, ...]:
    """Return the statements of scripts for psql. Raises CaseError."""
    return tuple(step for text in texts for step in read_case(text, GENERATOR).all_steps)


def _with_params(steps: Sequence[Step], params: Sequence[str | None]) -> tuple[Step, ...]:
    """Return the steps with the parameters that each query has, because the server refuses more. Raises CaseError."""
    counts = [_highest_parameter(step.sql) if step.kind is Kind.QUERY else 0 for step in steps]
    if params and max(counts) != len(params):
        raise CaseError(
            f"params has {len(params)} values, but the highest parameter of a query is ${max(counts)}; "
            "give a value for each parameter of SELECT, VALUES, TABLE or WITH"
        )
    return tuple(replace(step, params=tuple(params[:count])) for step, count in zip(steps, counts, strict=True))


def _highest_parameter(sql: str) -> int:
    return max((int(token.text[1:]) for token in tokens(sql) if _PARAMETER.fullmatch(token.text)), default=0)


class Checks:
    """Assertions on running arms, and the observations of the current test."""

    def __init__(
        self,
        arms: Sequence[Arm],
        executor: Executor,
        options: str,
        records: Mapping[str, Any],
        directory: Path,
    ) -> None:
        """`options` open the same arms on the command line. Reproducers are written to the directory."""
        self._arms = arms
        self._names = tuple(arm.name for arm in arms)
        self._features = features_of(arms)
        self._executor = executor
        self._triage = Triage(options, records, _Unrecorded(directory))
        self._numbers = count()
        self.begin("")

    def begin(self, test: str) -> None:
        """Begin a test."""
        self._test = test
        self._drawn: dict[int, Case] = {}
        self._ran: dict[Case, Observations] = {}  # the test's cases so far, for no_leak without arguments
        # oracle -> reason why the first of its generated cases proved nothing; "" if one did
        self._missing_proof: dict[str, str] = {}

    def conclude(self) -> None:
        """End a test that passed on generated cases. Raises Failed if none of them proved anything."""
        for reason in filter(None, self._missing_proof.values()):
            raise Failed(f"no example proves anything; the first one: {reason}")

    def draw(self, generator: str, rng: Any) -> tuple[int, str]:
        """Return number and text of a new case of a generator, and forget earlier observations. Raises CaseError."""
        from fuzz.engines.property_based import SMALL  # not at the top: Hypothesis may not be installed

        found = all_generators().get(generator)
        if found is None:
            raise CaseError(f"no generator is called {generator!r}; give one of {', '.join(all_generators())}")
        case = draw_case(rng, found, SMALL, self._features)
        self._ran.clear()
        number = next(self._numbers)
        self._drawn[number] = case
        return number, _text_of(case)

    def same(self, **given: Any) -> None:
        """Require that arms behave alike. Raises Failed, CaseError, ServerError."""
        self._require_two("same")
        statements = Statements(**given)
        case = self._case(statements)
        self._judge(case, assignments(_SAME, self._arms), statements)

    def same_plan(self, **given: Any) -> None:
        """Require equal plans and costs of all queries. Raises Failed, CaseError, ServerError."""
        self._require_two("same_plan")
        statements = Statements(**given)
        case = replace(self._case(statements), samples=(PLANNED.name,))
        if not any(step.kind is Kind.QUERY for step in case.steps):
            raise CaseError("duel.same_plan needs a query: SELECT, VALUES, TABLE or WITH")
        self._judge(case, [Assignment(_PLAN.of(self._features), self._names)], statements)

    def no_leak(self, **given: Any) -> None:
        """Require that nothing remains after the statements, or after all that ran. Raises Failed, CaseError."""
        statements = Statements(**given)
        cases = dict(self._ran)
        if statements.sql or statements.case is not None:
            cases = {self._case(statements): {}}
        elif statements.mode != "plain" or statements.settings:
            raise CaseError(
                "duel.no_leak without statements judges earlier ones in their own modes; "
                "give mode and settings to the earlier assertion, or give duel.no_leak statements"
            )
        elif cases:
            statements = replace(statements, scene=(), may_fail=True)  # an earlier assertion judged that
        else:
            raise CaseError("duel.no_leak has nothing to judge; give it statements, or call it after another assertion")
        judges = assignments(_LEAK, self._arms)
        for case, known in cases.items():
            self._judge(replace(case, samples=(*case.samples, REPEATED.name)), judges, statements, known)

    def query(self, *, arm: str, **given: Any) -> list[tuple[str | None, ...]]:
        """Return the rows of the last statement on one arm. Raises Failed, CaseError, ServerError."""
        case = self._case(Statements(**given))
        if case.steps[-1].kind is Kind.COPY_OUT:
            raise CaseError("arm.query returns rows, and COPY TO STDOUT has none; give it a query")
        run = Run(arm, case.modes)
        seen = self._executor.observe(case, [run])[run]
        for step, observed in zip(case.all_steps, seen.steps, strict=True):
            if observed.outcome is not Outcome.OK:
                raise Failed(_text(f"a statement fails on {arm}", step, [("outcome", ended(observed))]))
        values = (row_values(row) or [] for row in seen.steps[-1].rows)
        return [tuple(None if value is None else _decoded(value) for value in row) for row in values]

    def _require_two(self, assertion: str) -> None:
        if len(self._arms) < 2:
            raise CaseError(f"duel.{assertion} compares arms, but {self._names[0]} is the only one; name another")

    def _case(self, given: Statements) -> Case:
        """Return the case of a test's statements. Raises CaseError."""
        scene = steps_of(given.scene)
        modes = composed(given.mode, self._features)
        for name in given.settings:
            if not self._executor.has_setting(name):
                raise unknown_setting(name)
        if given.settings:
            modes += (Mode("settings", tuple(given.settings.items()), optional=True),)
        if given.case is not None:
            return _generated_case(self._drawn[given.case], scene, modes, given)
        steps = tuple(replace(step, ordered=given.ordered) for step in steps_of(given.sql))
        if not steps:
            raise CaseError("an assertion needs a statement; give it one")
        return Case(GENERATOR, scene, _with_params(steps, given.params), modes)

    def _judge(
        self,
        case: Case,
        judges: Sequence[Assignment],
        given: Statements,
        known: Observations | None = None,
    ) -> None:
        judged = judge_case(self._executor, judges, case, known)
        self._ran[replace(case, samples=())] = judged.observations
        for finding in judged.findings:
            raise self._failure(case, finding, judged)
        if case.generator != GENERATOR:
            self._judge_example(case, judges, judged, len(steps_of(given.scene)))
            return
        advice = ", or give may_fail=True" if judges[-1].oracle.name == Result.name else ""
        failure = _failed_statement(case, judges, judged, len(case.all_steps), advice, may_fail=given.may_fail)
        if reason := _doubt(case, judged) or failure or _disagreement(case, judges, judged):
            raise Failed(reason)

    def _judge_example(self, case: Case, judges: Sequence[Assignment], judged: JudgedCase, scene: int) -> None:
        """Require that the user's scene succeeds, which has so many steps, and record whether the case proves anything.

        It does if the generator's scene and a later statement succeed, and the oracle of the assertion agrees. Raises
        Unshrunk.
        """
        if reason := _failed_statement(case, judges, judged, scene):
            raise Unshrunk(reason)
        later = judged.observations[Run(self._names[0], case.modes)].steps[len(case.scene) :]
        succeeds = any(seen.outcome in _SUCCESSES for seen in later)
        required = len(case.scene if succeeds else case.all_steps)
        reason = _failed_statement(case, judges, judged, required) or _disagreement(case, judges, judged)
        name = judges[-1].oracle.name
        self._missing_proof[name] = reason and self._missing_proof.get(name, reason)

    def _failure(self, case: Case, finding: Finding, judged: JudgedCase) -> Failed:
        """Write the reproducer of a finding, reduced if a generator made the case, and return the failure.

        Raises StorageError.
        """
        generated = case.generator != GENERATOR
        executed, finding = as_executed(case, finding, judged.observations)
        whole = StoredFinding(finding, self._test, executed, 1, None, reduced=False)
        path = self._triage.path(whole)
        with workdir.writing(path.parent):
            path.parent.mkdir(parents=True, exist_ok=True)
        self._triage.write(whole)
        least = self._reduced(whole) if generated else whole.least
        return (Unshrunk if generated else Failed)(self._report(least, path))

    def _reduced(self, whole: StoredFinding) -> ReducedCase:
        """Return the smallest case that shows the finding, or the whole one if a server fails."""
        try:
            return self._triage.reduce(whole, self._arms)
        except ServerError:
            return whole.least

    def _report(self, least: ReducedCase, path: Path) -> str:
        """Return the text of a finding."""
        case, found = least.case, least.finding
        step = None if found.step is None else case.all_steps[found.step]
        statements = [] if case.generator == GENERATOR else [("case", _shortened(_text_of(case)))]
        rate = [("rate", least.how_often)] if least.runs and not least.always else []
        vote = [("suspect", str(found.vote))] if found.vote else []
        notes = [("reproducer", str(path)), ("to judge it again", replay_command(path, self._triage.options))]
        parts = [*statements, *found.sides(), *vote, *rate, *notes]
        return _text(f"{found.oracle}: {found.summary}", None if statements else step, parts)


def _decoded(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        advice = "use another mode than binary, and leave client_encoding as it is"
        raise CaseError(f"arm.query got {value!r}, which is no text in UTF-8; {advice}") from error


def _generated_case(drawn: Case, scene: tuple[Step, ...], modes: tuple[Mode, ...], given: Statements) -> Case:
    """Return a generator's case after the user's scene. Raises CaseError.

    It does not run as an ordinary role if that scene needs a superuser.
    """
    if given.ordered or given.params or given.may_fail:
        raise CaseError(
            "a generated case has its own order, parameters and intended errors; "
            "give ordered, params and may_fail to an assertion about statements"
        )
    ordinary = may_be_ordinary(replace(drawn, scene=scene, steps=()))
    own = tuple(mode for mode in drawn.modes if ordinary or mode != ORDINARY)
    return replace(drawn, scene=scene + drawn.scene, modes=own + modes)


def _doubt(case: Case, judged: JudgedCase) -> str:
    """Return the text of the first verdict that is unstable or inconclusive, or ""."""
    for oracle, verdict in judged.verdicts:
        if isinstance(verdict, Unstable | Inconclusive):
            step = None if verdict.step is None else case.all_steps[verdict.step]
            sides = [each for each in zip(("expected", "actual"), verdict.sides, strict=True) if each[1]]
            return _text(f"{oracle}: the arms cannot be compared: {verdict.reason}", step, sides)
    return ""


def _failed_statement(
    case: Case,
    judges: Sequence[Assignment],
    judged: JudgedCase,
    steps: int,
    advice: str = "",
    *,
    may_fail: bool = False,
) -> str:
    """Return the text of the first statement that does not succeed in the runs that the oracles begin with, or "".

    Only so many first steps of the case count. `may_fail` excuses errors. `advice` on them is added to the text.
    """
    runs = dict.fromkeys(run for judge in judges for run in judge.oracle.runs(case, judge.arms))
    failed = {run: _failed_steps(case, run, judged.observations, may_fail=may_fail) for run in runs}
    for run in runs:
        for position, observed in failed[run].items():
            if position < steps:
                alike = [each for each in runs if replace(each, arm=run.arm) == run]
                arms = [each.arm for each in alike if position in failed[each]]
                where = "every arm" if len(arms) == len(alike) else ", ".join(arms)
                what, own_advice = _FAILURES[observed.outcome]
                more = advice if observed.outcome is Outcome.ERROR else ""
                title = f"a statement {what} on {where}; {own_advice}{more}"
                return _text(title, case.all_steps[position], [("outcome", ended(observed))])
    return ""


def _failed_steps(case: Case, run: Run, observations: Observations, *, may_fail: bool) -> dict[int, Observation]:
    """Return the observations of the steps that did not succeed, by position, in order.

    In a repeated run, errors are excused: objects outside of the case's schema remain, so making them again may fail.
    """
    seen = observations[run]
    return {
        position: observed
        for position, step in enumerate(case.all_steps)
        for observed in (repetition[position] for repetition in (*seen.earlier, seen.steps))
        if observed.outcome not in _SUCCESSES
        and not (observed.outcome is Outcome.ERROR and (may_fail or step.may_fail or run.repeats > 1))
    }


def _disagreement(case: Case, judges: Sequence[Assignment], judged: JudgedCase) -> str:
    """Return the reason why the assertion's oracle agreed on no statement, or ""."""
    name = judges[-1].oracle.name
    agrees = any(oracle == name and isinstance(verdict, Agree) for oracle, verdict in judged.verdicts)
    return "" if agrees else _doubt(case, judged) or f"{name}: no statement could be judged"


def _text(title: str, step: Step | None, parts: Sequence[tuple[str, str]]) -> str:
    """Return a title, the statement in question, and named parts. One line stands beside its name, several below."""
    statement = [] if step is None else [("statement", step.sql)]
    lines = [title]
    for name, text in (*statement, *parts):
        lines.append(f"{name}:\n{indent(text, '    ')}" if "\n" in text else f"{name}: {text}")
    return "\n".join(lines)


def _text_of(case: Case) -> str:
    """Return a case as SQL, without data of COPY."""
    modes = "+".join(mode.name for mode in case.modes) or "plain"
    return "\n".join((f"-- {case.generator}, mode {modes}", *(f"{step.sql};" for step in case.all_steps)))


def _shortened(text: str) -> str:
    lines = text.splitlines()
    more = [f"... {len(lines) - _SHOWN_LINES} more lines"] if len(lines) > _SHOWN_LINES else []
    return "\n".join([*lines[:_SHOWN_LINES], *more])

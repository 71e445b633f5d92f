"""`pgduel replay`: another run of a case, script or finding."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from fuzz.campaign.catalog import find_doubt, find_finding, find_input, opened
from fuzz.campaign.plan import Plan
from fuzz.campaign.user_files import FileKind, load_recorded, read_and_load
from fuzz.cli import options
from fuzz.cli.app import app, console, say, write_json
from fuzz.engines.guided.inputs import PREFIX, case_of_input
from fuzz.errors import CaseError
from fuzz.execution.executor import Executor
from fuzz.execution.judging import Assignment, JudgedCase, absences, assignments, judge_case
from fuzz.execution.source_database import SourceDatabase
from fuzz.generators.generator import Scale
from fuzz.report.terminal import display
from fuzz.servers.arm import Arm, features_of, open_arms
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.flavor import DEFAULT_FLAVOR
from fuzz.sources.source import UserInput
from fuzz.sources.workloads import require_workload
from fuzz.triage.reproducer.reproducer import case_id_of, load
from oracles.model.case import Case
from oracles.model.observation import Outcome
from oracles.model.oracle import Agree, NotApplicable, all_oracles, duel

_SYNTAX_ERROR = "42601"


@dataclass(frozen=True, slots=True)
class _Replay:
    """A requested case and its arms."""

    case: Case | None  # None: the arms are needed to make it
    fingerprint: str | None  # of the finding that the case showed, if any
    arms: ArmOptions
    plan: Plan | None = None  # of the campaign that has it, if any
    facts: Mapping[str, Any] = field(default_factory=dict)  # recorded by that campaign about its arms


@app.command()
def replay(
    *,
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="A reproducer or any other SQL script; a finding, [CAMPAIGN/]FINGERPRINT; a doubt, "
            "[CAMPAIGN/]NAME; or a case, SEED/GENERATOR/INDEX or libfuzzer/GENERATOR/INPUT.",
        ),
    ],
    times: Annotated[int, typer.Option(min=1, help="Maximum number of runs, if the arms agree in each.")] = 5,
    sql: options.Sql = None,
    generator: options.GeneratorFile = None,
    oracle: options.OracleOption = None,
    base: options.Base = None,
    series: options.SeriesOption = None,
    repo: options.Repo = None,
    commits: options.Range = None,
    arm: options.ArmOption = None,
    flavor: options.FlavorOption = DEFAULT_FLAVOR,
    manifest: options.Manifest = None,
    setting: options.SetOption = None,
    json_file: options.JsonFile = None,
) -> None:
    """Run one case on the arms again: exit status 1 if they differ, else 0.

    A finding or doubt has its own arms, and the oracles of its campaign's files unless --oracle names others. A script
    or case needs --arm unless its arms were the default.
    """
    given = options.given(sql)
    read_and_load(FileKind.GENERATOR, generator or ())
    judges = read_and_load(FileKind.ORACLE, oracle or ())
    requested = _replay_of(what, ArmOptions.given(base, series, repo, commits, arm, flavor, manifest, setting), given)
    for line in () if judges or requested.plan is None else load_recorded(requested.plan.judging):
        say(line)
    with display(console, None) as shown:
        specs = requested.arms.specs(shown.progress)
        same = requested.arms.same_build_wanted
        with open_arms(specs, shown.progress, allow_same_build=same) as arms, Executor(arms, "replay") as executor:
            for line in options.other_builds(requested.facts, arms):
                shown.say(line)
            names = tuple(each.name for each in arms)
            case = requested.case or _made(what, arms, given)
            judged = _tried(executor, assignments(all_oracles(), arms), case, times)
    if not judged.findings:
        _require_syntax(what, case, judged, names)
    _print(requested, judged, absences(all_oracles(), arms))
    write_json(json_file, _json(requested, judged))
    raise typer.Exit(1 if judged.findings else 0)


def _tried(executor: Executor, judging: Sequence[Assignment], case: Case, times: int) -> JudgedCase:
    """Run a case until it shows a finding, because some bugs do not show in each run."""
    for _ in range(times):
        judged = judge_case(executor, judging, case)
        if judged.findings:
            break
    return judged


def _made(what: str, arms: Sequence[Arm], given: UserInput) -> Case:
    prefix, generator, name = what.split("/")
    if prefix == PREFIX:
        return case_of_input(find_input(generator, name), generator, features_of(arms))
    if len(arms) == 1:
        say(f"{what} is the case of a campaign on one arm; campaigns on more arms have another case of this name")
    with closing(SourceDatabase(arms[0], "replay", given, arms)) as target:
        return load(what, Scale.of_arms(len(arms)), target, features_of(arms)).case


def _replay_of(what: str, arms: ArmOptions, given: UserInput) -> _Replay:
    """Return the case of a script, finding or seed, and its arms. Raises CaseError."""
    is_file, words = Path(what).is_file(), what.split("/")
    if not is_file and len(words) == 3:
        require_workload(words[1] if words[0] == PREFIX else case_id_of(what).generator, given)
        return _Replay(None, None, arms)
    if is_file:
        loaded = load(what)
        return _Replay(loaded.case, None if loaded.about is None else loaded.about.fingerprint, arms)
    return _stored(what, arms)


def _stored(what: str, arms: ArmOptions) -> _Replay:
    """Return the case of a doubt or finding, and its arms. Raises CaseError."""
    if doubted := find_doubt(what):
        directory, doubt = doubted
        case, fingerprint = doubt.case, None
    else:
        directory, found = find_finding(what)
        case, fingerprint = found.case, found.finding.fingerprint
    with opened(directory) as store:
        return _Replay(case, fingerprint, arms.instead_of(store.plan.arms), store.plan, store.arms)


def _require_syntax(what: str, case: Case, judged: JudgedCase, arms: tuple[str, ...]) -> None:
    """Check that a script is SQL. If all arms reject a statement, they cannot differ. Raises CaseError."""
    reference, *_ = duel(case, arms)
    steps = zip(case.all_steps, judged.observations[reference].steps, strict=True)
    for number, (step, seen) in enumerate(steps, start=1):
        if seen.outcome is Outcome.ERROR and seen.sqlstate == _SYNTAX_ERROR and not step.may_fail:
            text = next((message.text for message in seen.messages if message.sqlstate == _SYNTAX_ERROR), "")
            raise CaseError(f"{what}: statement {number} fails on every arm: {text}; correct the script")


def _print(requested: _Replay, judged: JudgedCase, not_compared: Iterable[str]) -> None:
    for line in not_compared:
        say(line)
    for oracle, verdict in judged.verdicts:
        if isinstance(verdict, Agree):
            say(f"{oracle}: no difference in {verdict.statements} statements")
        elif isinstance(verdict, NotApplicable):
            say(f"{oracle}: nothing to compare")
        elif verdict not in judged.findings:
            say(f"{oracle}: {verdict}")
    for finding in judged.findings:
        say(f"finding {finding.fingerprint}, {finding.oracle}: {finding.summary}")
        if finding.vote:
            say(f"  suspect: {finding.vote}")
        for title, text in finding.sides():
            say(f"  {title}:\n{_indented(text)}")
    say(_conclusion(requested, judged))


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines()[:20])


def _conclusion(requested: _Replay, judged: JudgedCase) -> str:
    fingerprints = {finding.fingerprint for finding in judged.findings}
    if requested.fingerprint in fingerprints:
        return f"It still differs: finding {requested.fingerprint}."
    if fingerprints:
        return "It differs" + (f", but not as finding {requested.fingerprint}." if requested.fingerprint else ".")
    return "It does not differ."


def _json(requested: _Replay, judged: JudgedCase) -> dict[str, Any]:
    return {
        "differs": bool(judged.findings),
        "fingerprint": requested.fingerprint,
        "statements_judged": judged.statements,
        "findings": [
            {"fingerprint": each.fingerprint, "oracle": each.oracle, "arms": each.arms, "summary": each.summary}
            for each in judged.findings
        ],
    }

"""`pgduel harness`: libFuzzer on single C files of an arm, or in a server's process."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from fuzz import workdir
from fuzz.campaign.catalog import harness_replay, last_seed, opened_new, require_store
from fuzz.campaign.counters import Counters
from fuzz.campaign.harnesses import NAME, HarnessCampaign, HarnessResult, compiled
from fuzz.campaign.plan import Plan
from fuzz.campaign.stop import INTERRUPTED, interruptible
from fuzz.campaign.store import HarnessFinding, Store, harness_findings
from fuzz.cli import options
from fuzz.cli.app import app, console, say, write_json
from fuzz.engines.libfuzzer.build import Harness, all_harnesses, harness_named
from fuzz.engines.libfuzzer.kept import kept_inputs, kept_of, minimal_corpus, replay
from fuzz.errors import CaseError
from fuzz.report.terminal import Display, display
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.build import build_key
from fuzz.servers.flavor import DEFAULT_FLAVOR
from fuzz.servers.series import apply_series
from oracles.model.finding import Finding

_SEEDS: Final = workdir.PROJECT / "corpus" / "libfuzzer"
_Programs = Mapping[Harness, Path]


@app.command()
def harness(
    *,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Harnesses. Default: all that can test the series.",
            show_default=False,
        ),
    ] = None,
    minutes: Annotated[float, options.minutes_option("Minutes to fuzz, in equal shares for all harnesses.")] = 5.0,
    seed: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=0xFFFFFFFF,
            metavar="N",
            help="libFuzzer's seed. Default: the one after that of the last run on the same code, or 1.",
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the harnesses, and run nothing.")] = False,
    replayed: Annotated[
        Path | None,
        typer.Option("--replay", metavar="FILE", help="Run one harness on one input.", show_default=False),
    ] = None,
    minimize: Annotated[
        bool,
        typer.Option(
            "--minimize",
            help="Fuzz nothing; write a small corpus that reaches all edges of corpus/libfuzzer and the kept inputs to "
            "corpus/libfuzzer.",
        ),
    ] = False,
    inputs: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory of the kept inputs. Default: in the cache.", show_default=False),
    ] = None,
    base: options.Base = None,
    series: options.SeriesOption = None,
    repo: options.Repo = None,
    commits: options.Range = None,
    arm: options.ArmOption = None,
    json_file: options.JsonFile = None,
) -> None:
    """Fuzz the last arm with libFuzzer and sanitizers: single C files without a server, and planner and executor.

    A run begins with the inputs of corpus/libfuzzer and those that earlier runs kept, and keeps each that reaches new
    code. A harness ends with its first failure, whose input is stored and minimized. Exit status 1 if there is one.
    """
    wanted = [harness_named(name) for name in dict.fromkeys(names or ())] or list(all_harnesses().values())
    if list_:
        _list(wanted, inputs, json_file)
        return
    if replayed is not None and len(wanted) != 1:
        raise CaseError("--replay runs one harness; give its name")
    arms = ArmOptions.given(base, series, repo, commits, arm, DEFAULT_FLAVOR)
    with display(console, minutes * 60) as shown:
        spec = arms.specs(shown.progress)[-1]
        trees = apply_series(spec.base.tree, spec.series)
        programs = compiled(wanted, trees, shown.progress, shown.say)
        if replayed is not None:
            status = _replay(wanted[0].name, programs[wanted[0]], replayed, json_file)
        elif minimize:
            status = _minimize(programs, inputs, shown)
        else:
            require_store()
            facts = options.arms_json([spec], [build_key(trees[-1], spec.flavor)])
            plan = Plan(seed or 1, {NAME: 1}, minutes, None, stop_at_first=False, arms=arms)
            with opened_new(shown.say) as store:
                store.begin(plan, facts, partial(last_seed, facts) if seed is None else None)
                status = _fuzz(store, spec.name, programs, inputs, shown, json_file)
    raise typer.Exit(status)


def _fuzz(
    store: Store,
    arm: str,
    programs: _Programs,
    inputs: Path | None,
    shown: Display,
    json_file: Path | None,
) -> int:
    """Run the harnesses one after the other, print the result, and return the exit status."""
    plan = store.plan

    def found(finding: Finding, file: Path) -> None:
        shown.say(f"finding {finding.fingerprint} in {finding.summary}\n  {file}")

    with interruptible() as interrupt:
        shown.say(
            f"campaign {store.directory.name}: {arm}, seed {plan.seed}, {', '.join(each.name for each in programs)}"
        )
        campaign = HarnessCampaign(arm, store, shown.progress, found, lambda: bool(interrupt))
        until = time.monotonic() + (plan.limits.seconds or 0.0)
        results: list[HarnessResult] = []
        broken: list[str] = []
        for number, (harness_, program) in enumerate(programs.items()):
            if interrupt:
                break
            share = max(1.0, until - time.monotonic()) / (len(programs) - number)
            try:
                with kept_inputs(harness_.name, inputs) as kept:
                    results.append(campaign.fuzz(harness_, program, kept, _SEEDS / harness_.name, share, plan.seed))
            except CaseError as error:
                broken.append(str(error))
                shown.say(f"{harness_.name}: {error}")
                continue
            _report(results[-1], shown)
            _note_progress(store, results)
        store.record_end(INTERRUPTED if interrupt else "time is up")
    findings = harness_findings(store)
    for each in findings:
        say(f"finding {each.finding.fingerprint} in {each.finding.summary}")
        say(f"  replay: {harness_replay(each, plan)}")
    if not findings:
        say("No finding.")
    write_json(json_file, {"campaign": store.directory.name, "seed": plan.seed, **_json(results, findings, plan)})
    if broken and not findings:
        raise CaseError(f"{len(broken)} of {len(programs)} harnesses failed: {broken[0]}")
    return 1 if findings else 0


def _report(result: HarnessResult, shown: Display) -> None:
    shown.say(_line(result))
    if result.remark:
        shown.say(result.remark)


def _note_progress(store: Store, results: Sequence[HarnessResult]) -> None:
    executions = Counter({each.name: each.run.executions for each in results})
    cpu = sum(each.run.cpu_seconds for each in results)
    store.progress(Counters(cases=executions, seconds=sum(each.seconds for each in results), client_cpu=cpu), {})


def _line(result: HarnessResult) -> str:
    run, (called, functions) = result.run, result.functions
    covered = f", {called} of {functions} functions" if functions else ""
    return (
        f"{result.name}: {run.executions} executions, {_rate(result):.0f} a second of CPU; "
        f"{run.ended.edges} edges, {run.ended.features} features ({run.begun.features} at the start){covered}; "
        f"{result.kept} inputs kept"
    )


def _rate(result: HarnessResult) -> float:
    return result.run.executions / max(result.run.cpu_seconds, 0.01)


def _json(results: Sequence[HarnessResult], findings: Sequence[HarnessFinding], plan: Plan) -> dict[str, Any]:
    return {
        "harnesses": {
            each.name: {
                "executions": each.run.executions,
                "cpu_seconds": each.run.cpu_seconds,
                "executions_per_cpu_second": _rate(each),
                "begun": asdict(each.run.begun),
                "ended": asdict(each.run.ended),
                "kept": each.kept,
                "functions": {"called": each.functions[0], "all": each.functions[1]},
            }
            for each in results
        },
        "findings": [
            {
                "fingerprint": each.finding.fingerprint,
                "harness": each.harness,
                "origin": each.finding.origin,
                "summary": each.finding.summary,
                "input": str(each.input),
                "replay": harness_replay(each, plan),
            }
            for each in findings
        ],
    }


def _replay(name: str, program: Path, file: Path, json_file: Path | None) -> int:
    """Run a harness on one input, print its message, and return the exit status."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise CaseError(f"cannot read {file} ({error.strerror}); give --replay the file of an input") from error
    failure = replay(program, data)
    if failure is None:
        say(f"{name} passes.")
    else:
        say(f"{name}: {failure.message}")
        say(f"  origin: {failure.origin}")
    write_json(json_file, {"fails": failure is not None, "origin": failure.origin if failure else ""})
    return 0 if failure is None else 1


def _minimize(programs: _Programs, inputs: Path | None, shown: Display) -> int:
    """Write the minimal corpora to the checkout. Raises CaseError, StorageError."""
    if not workdir.IS_CHECKOUT:
        raise CaseError("--minimize writes to corpus/libfuzzer; run it in a checkout")
    for harness_, program in programs.items():
        directory = _SEEDS / harness_.name
        shown.progress(f"{harness_.name}: minimizing the corpus")
        with kept_inputs(harness_.name, inputs) as kept:
            corpus = minimal_corpus(program, kept, directory)
        before = {path.name for path in directory.glob("*")}
        with workdir.writing(directory):
            directory.mkdir(parents=True, exist_ok=True)
            for name, data in corpus.items():
                (directory / name).write_bytes(data)
            for name in before - corpus.keys():
                (directory / name).unlink()
        shown.say(f"{harness_.name}: {len(corpus)} inputs in {directory}, {len(before)} before")
    return 0


def _list(harnesses: Sequence[Harness], inputs: Path | None, json_file: Path | None) -> None:
    rows = [
        {
            "harness": each.name,
            "checks": each.checks,
            "inputs": len(list((_SEEDS / each.name).glob("*"))),
            "kept": len(kept_of(each.name, inputs).names()),
        }
        for each in harnesses
    ]
    for row in rows:
        say(f"{row['harness']}: {row['checks']} ({row['inputs']} inputs in the corpus, {row['kept']} kept)")
    write_json(json_file, rows)

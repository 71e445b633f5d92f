"""A campaign from start to summary: open the arms, plant canaries, run the plan, summarize."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path

from fuzz import workdir
from fuzz.campaign.campaign import Campaign, Environment
from fuzz.campaign.canaries import counts, plant_all, require_caught
from fuzz.campaign.catalog import last_seed, new_campaign, opened
from fuzz.campaign.counters import Counters
from fuzz.campaign.database import outlasted
from fuzz.campaign.direction.direction import directed_workloads, patches_between
from fuzz.campaign.direction.discoveries import weighed
from fuzz.campaign.edges import keep_places, number_of_edges, reached_edges
from fuzz.campaign.plan import Plan
from fuzz.campaign.pool import Pool, Workers
from fuzz.campaign.schedule import Job, Result, Schedule
from fuzz.campaign.stop import Interrupt, interruptible
from fuzz.campaign.store import Store
from fuzz.campaign.usage import usage_of
from fuzz.campaign.worker import ERRORS, CaseWork, append, attached, log_killed, require_room, revive, server_cpu
from fuzz.cli.options import facts_of
from fuzz.engines.engine import EngineName
from fuzz.engines.guided.driver import ensure_driver
from fuzz.errors import CanaryMissed, CaseError, PgduelError
from fuzz.execution.executor import Executor
from fuzz.execution.judging import absences, assignments
from fuzz.execution.source_database import SourceDatabase
from fuzz.generators.generator import all_generators
from fuzz.report.console import Console
from fuzz.report.summary import Summary, numbered, summary_of
from fuzz.report.terminal import INTERVAL, Display, clock, display
from fuzz.servers import owners
from fuzz.servers.arm import Arm, ArmSpec, features_of, missing_features, newer_bases, open_arms, remarks
from fuzz.servers.edges.counters import ensure_modules
from fuzz.sources.source import Source
from fuzz.sources.workloads import workload_named
from fuzz.triage.findings import StoredFinding
from fuzz.triage.replays import FailedReplay, KnownFinding, replays
from oracles.model.oracle import all_oracles

Parts = Mapping[str, tuple[int, int]]  # source -> numbers of its first parts, and of all others


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes that run cases: so many on this machine, or those of a Dask scheduler, which build the arms."""

    count: int
    dask: str | None = None
    specs: Sequence[ArmSpec] = ()

    @contextmanager
    def started(
        self, work: CaseWork, store: Store, plan: Plan, interrupt: Interrupt, shown: Display
    ) -> Iterator[Workers[Job, Result]]:
        """Start or connect the processes. Raises PgduelError."""
        if self.dask is None:
            with Pool(work, self.count) as pool:
                yield pool
            return
        # not at the top, because Dask is not always installed
        from fuzz.campaign.dask_pool import DaskPool, connected, remote_work

        remote = remote_work(store, plan, self.specs, same_build=plan.arms.same_build_wanted)
        with (
            connected(self.dask, self.count) as client,
            DaskPool(client, remote, store, shown.say, interrupt.__bool__) as pool,
        ):
            yield pool


def run_campaign(
    directory: Path | None,
    plan: Plan,
    workers: int,
    console: Console,
    *,
    dask: str | None = None,
    new_seed: bool = False,
    known_bugs: Sequence[KnownFinding] = (),
    unreduced: Sequence[StoredFinding] = (),
    while_open: Callable[[Sequence[Arm]], AbstractContextManager[object]] = nullcontext,
) -> Summary:
    """Run the plan in a new campaign, or in the directory of a resumed one. Raises PgduelError.

    With `dask`, cases run on the workers of its scheduler, or of a cluster of its own with so many workers.
    With `new_seed`, the plan gets a higher seed than all earlier campaigns on these builds, so its cases are new.
    Findings of `known_bugs` are tried on the arms before the first case. Those of `unreduced`, of an earlier run on the
    same builds, are reduced.
    The context of `while_open` begins with running arms, and ends before they are deleted.
    """
    options = plan.arms
    limit = plan.limits.seconds
    with display(console, limit) as shown:
        specs = options.specs(shown.progress)
        if dask is not None and any(spec.flavor.counts_edges for spec in specs):
            raise CaseError("--dask runs no flavor that counts edges, so no --engine libfuzzer; leave one of them out")
        for line in remarks(specs):
            shown.say(line)
        with open_arms(specs, shown.progress, allow_same_build=options.same_build_wanted) as arms:
            facts = facts_of(specs, arms)
            if directory is None:
                plan = _completed(plan, specs[0].base.version, arms, shown)
                for line in _remarks(plan, arms[0]):
                    shown.say(line)
                directory = outlasted(new_campaign, shown.say)
            parts = _parts(plan, arms)
            plan = replace(plan, first=_first(parts, plan.begin))
            with opened(directory, shown.say) as store:
                store.begin(plan, facts, partial(last_seed, facts) if new_seed else None)
                for found in unreduced:
                    store.take_over(found)
                plan = replace(plan, seed=store.plan.seed)
                if store.arms != facts:
                    raise PgduelError(f"campaign {directory.name} ran other builds; start a new campaign for these")
                for line in missing_features(specs, arms):
                    shown.say(line)
                with while_open(arms):
                    summary = _run(store, plan, arms, Processes(workers, dask, specs), shown, parts, known_bugs)
                return replace(summary, newer_bases=newer_bases(specs))


def _completed(plan: Plan, version: str, arms: Sequence[Arm], shown: Display) -> Plan:
    """Return the plan of a new campaign with the faults of this version, and the default workloads if it has none."""
    plan = replace(plan, known=tuple(fault for fault in plan.known if fault.is_expected(version, date.today())))
    if plan.generators:
        return plan
    with closing(SourceDatabase(arms[0], "default", plan.given)) as target:
        among = all_generators() if plan.engine is EngineName.LIBFUZZER else None
        direction, left_out = directed_workloads(target, () if plan.even else patches_between(arms), among)
    direction = weighed(direction, plan.discoveries)
    if direction.reasons:
        shown.say(str(direction))
    return replace(plan, generators=direction.cases, left_out=left_out)


def _run(
    store: Store,
    plan: Plan,
    arms: Sequence[Arm],
    processes: Processes,
    shown: Display,
    parts: Parts,
    known_bugs: Sequence[KnownFinding],
) -> Summary:
    with Executor(arms, "canaries") as executor:
        missed = ""
        try:
            plant_canaries(store, executor, arms, shown)
        except CanaryMissed as error:
            missed = str(error)
    store.record_start(features_of(arms), tuple(absences(all_oracles(), arms)))
    if known_bugs and not missed:
        replay_known(store, arms, known_bugs, shown)
    store.record_end("a canary was missed" if missed else run(store, plan, arms, processes, shown))
    return summary_of(store, missed, {name: first + others for name, (first, others) in parts.items()})


def _parts(plan: Plan, arms: Sequence[Arm]) -> Parts:
    """Return the numbers of parts of each source that replays whole items. Raises CaseError, ServerError."""
    with closing(SourceDatabase(arms[0], "parts", plan.given, arms)) as target:
        named = (workload_named(name, target) for name in plan.generators)
        replaying = [each for each in named if isinstance(each, Source) and each.rounds]
        return {each.name: (len(each.first_parts()), len(each.parts())) for each in replaying}


def _first(parts: Parts, begin: Mapping[str, int]) -> dict[str, int]:
    """Return the numbers of cases that precede all others: those of first parts, as far as `begin` leaves them."""
    return {name: max(0, first - begin.get(name, 0)) for name, (first, _) in parts.items()}


def _remarks(plan: Plan, arm: Arm) -> tuple[str, ...]:
    """Return the remarks of the plan's sources. Raises CaseError if one of them has no statements, and ServerError."""
    with closing(SourceDatabase(arm, "remarks", plan.given)) as target:
        named = (workload_named(name, target) for name in plan.generators)
        return tuple(line for each in named if isinstance(each, Source) for line in each.remarks())


def plant_canaries(store: Store, executor: Executor, arms: Sequence[Arm], shown: Display) -> None:
    """Plant a bug for each oracle, and record the outcomes. Raises CanaryMissed."""
    outcomes = []
    for outcome in plant_all(assignments(all_oracles(), arms), executor, arms):
        outcomes.append(outcome)
        shown.progress(f"planting bugs to prove the oracles: {outcome.oracle} ({outcome.fault})")
    store.record_canaries(counts(outcomes))
    require_caught(outcomes)


def replay_known(store: Store, arms: Sequence[Arm], findings: Sequence[KnownFinding], shown: Display) -> None:
    """Try findings of earlier runs on new servers of the arms, and record the outcomes. Raises PgduelError."""
    shown.say(f"replaying {numbered(len(findings), 'finding')} of earlier builds")
    for outcome in replays(findings, arms):
        if isinstance(outcome, FailedReplay):
            _say_failed_replay(outcome, store.directory / ERRORS, shown)
            continue
        store.record_replay(outcome)
        where = "all arms show it" if outcome.of_base else "still there" if outcome.shown else "not there"
        shown.say(f"finding {outcome.fingerprint}: {where}")


def _say_failed_replay(failed: FailedReplay, log: Path, shown: Display) -> None:
    """Print an error, and log its traceback if it is one of pgduel itself."""
    if failed.traceback:
        outlasted(partial(append, log, f"replay of finding {failed.fingerprint}\n{failed.traceback}\n"), shown.say)
    see = f" (see {log})" if failed.traceback else ""
    shown.say(f"finding {failed.fingerprint} could not be replayed: {failed.error}{see}")


def run(store: Store, plan: Plan, arms: Sequence[Arm], processes: Processes, shown: Display) -> str:
    """Run the plan on open arms, with an initialized store; return the reason for its end. Raises PgduelError."""
    number = store.directory.name
    environment = Environment(
        revive=lambda: revive(arms),
        require_room=lambda: require_room(arms),
        server_cpu=lambda: server_cpu(arms),
        client_cpu=time.process_time,
        usage=partial(usage_of, store.directory),
        say=shown.say,
        edges=partial(number_of_edges, store.directory),
        show=with_edges(partial(shown.show, features=features_of(arms)), store.directory, shown),
    )
    schedule = Schedule(plan.generators, plan.cases, store.done(), first=plan.first, begin=plan.begin)
    options = plan.replay_options()
    work = CaseWork(
        attached(arms), store.directory, plan.seed, options, store.arms, plan.given, plan.files, plan.engine
    )
    if all(arm.build.flavor.counts_edges for arm in arms):
        ensure_modules(arms)
        shown.progress("reading the places of edges")
        keep_places(arms, store.directory)
    if plan.engine is EngineName.LIBFUZZER:
        ensure_driver()
        outlasted(partial(log_killed, store.directory), shown.say)  # also if fewer workers run than before
    try:
        with interruptible() as interrupt, processes.started(work, store, plan, interrupt, shown) as pool:
            shown.say(f"campaign {number}: {_who(arms)}, seed {plan.seed}")
            for line in (*_left_out(plan), *absences(all_oracles(), arms)):
                shown.say(line)
            return Campaign(store, schedule, plan.limits, pool, environment).run(interrupt)
    except (PgduelError, KeyboardInterrupt):
        command = f"{workdir.COMMAND} fuzz --resume {number}{f' --dask {processes.dask}' if processes.dask else ''}"
        shown.say(f"all findings and counts are kept; continue with: {command}")
        raise
    finally:
        owners.clean_up()  # a worker that is killed during a reduction leaves its servers behind


def with_edges(
    show: Callable[[Counters, Sequence[StoredFinding]], None], directory: Path, shown: Display
) -> Callable[[Counters, Sequence[StoredFinding]], None]:
    """Return `show`, which also prints the number of edges that a campaign reached, at intervals."""
    due = INTERVAL

    def show_both(counters: Counters, findings: Sequence[StoredFinding]) -> None:
        nonlocal due
        show(counters, findings)
        if counters.seconds >= due and (edges := reached_edges(directory)):
            due = counters.seconds + INTERVAL
            shown.say(f"{clock(counters.seconds)}: {edges}")

    return show_both


def _left_out(plan: Plan) -> Sequence[str]:
    """Return a line about the sources that the plan leaves out, if any."""
    reasons = ", ".join(f"{name} ({why})" for name, why in plan.left_out.items())
    return [f"left out: {reasons}"] if reasons else []


def _who(arms: Sequence[Arm]) -> str:
    reference, *others = (arm.name for arm in arms)
    return f"{' and '.join(others)} against {reference}" if others else reference

"""`pgduel sqlancer`: bug reports of SQLancer's own oracles, judged by pgduel's oracles."""

from enum import StrEnum
from typing import Annotated, Final

import typer

from fuzz.campaign.plan import Plan
from fuzz.cli import options
from fuzz.cli.app import app, write_json
from fuzz.cli.external_run import ExternalRun, external_run, print_results
from fuzz.errors import CaseError
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.flavor import DEFAULT_FLAVOR
from fuzz.sources.sqlancer.logs import case_of
from fuzz.sources.sqlancer.options import ORACLES, REPORTS, SqlancerRun
from fuzz.sources.sqlancer.running import Server, class_path, fetch, run

_ROUND: Final = 60  # seconds of one run of SQLancer; then its reports are judged, and the next run has other seeds
_PREFIX: Final = "duel_lancer"
Which = StrEnum("Which", {name: name for name in ORACLES})  # type: ignore[misc]  # its members are the table's keys
DEFAULT: Final = Which("QUERY_PARTITIONING")


@app.command()
def sqlancer(
    *,
    oracle: Annotated[Which, typer.Option(help="SQLancer's oracle.")] = DEFAULT,
    minutes: Annotated[float, options.minutes_option("Minutes to run.", least=0.1)] = 5.0,
    seed: Annotated[int, typer.Option(metavar="N", help="SQLancer's first seed.")] = 1,
    jar: options.Jar = None,
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
    """Run SQLancer's oracles on the last arm. Its reports run on all arms and are judged again.

    A report that pgduel does not confirm is no finding. With `pgduel fuzz --generator sqlancer`, pgduel's own oracles
    judge SQLancer's statements.
    """
    arms = ArmOptions.given(base, series, repo, commits, arm, flavor, manifest, setting)
    given = options.given(jar=jar)
    if given.sqlancer_jar is None:
        fetch()
    path = class_path(given.sqlancer_jar)
    plan = Plan(seed, {"sqlancer": 1}, minutes, None, stop_at_first=False, arms=arms, given=given)
    with external_run(plan) as external:
        external.counts = {"oracle": str(oracle), "seed": seed, "rounds": 0, "queries": 0, "reports": 0}
        while external.seconds:
            _round(external, path, str(oracle))
    write_json(json_file, external.to_json())
    counts = external.counts
    headline = f"SQLancer {oracle}, seed {seed}: {counts['queries']} queries, {counts['reports']} reports"
    raise print_results(external, f"{headline}, {external.confirmed} of them confirmed here")


def _round(external: ExternalRun, path: str, oracle: str) -> None:
    """Run SQLancer once, then judge its reports."""
    seed = external.counts["seed"] + external.counts["rounds"] * REPORTS
    external.counts["rounds"] += 1
    external.shown.progress(
        f"SQLancer {oracle}, seed {seed}: {external.counts['reports']} reports, {external.confirmed} confirmed"
    )
    call = SqlancerRun.search(oracle, seed, max(1, round(min(_ROUND, external.seconds))))
    suspect = external.arms[-1].cluster
    ran = run(Server(str(suspect.socket_dir), suspect.port), path, call, _PREFIX)
    external.await_servers()
    external.counts["queries"] += ran.queries
    for log in ran.reports.values():
        external.counts["reports"] += 1
        try:
            case = case_of(log, external.target)
        except CaseError as error:
            external.failed += 1
            external.shown.say(f"not judged, seed {log.seed}: {error}")
            continue
        if not external.judge(case, f"sqlancer --random-seed {log.seed} --oracle {oracle}"):
            external.shown.say(f"not confirmed, seed {log.seed}: {' '.join(log.error.split())[:160]}")

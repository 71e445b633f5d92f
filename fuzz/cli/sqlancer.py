"""`pgduel sqlancer`: SQLancer looks for bugs by its own oracles; what it reports is judged again."""

from enum import StrEnum
from typing import Annotated, Final

import typer

from fuzz.campaign.plan import Plan
from fuzz.cli import options
from fuzz.cli.app import app, write_json
from fuzz.cli.hunting import Hunt, hunting, told
from fuzz.sources.sqlancer.jar import class_path, fetch
from fuzz.sources.sqlancer.options import ORACLES, REPORTS, Call
from fuzz.sources.sqlancer.reports import case_of
from fuzz.sources.sqlancer.running import Server, run

_ROUND: Final = 60  # seconds after which its reports are looked at, and it starts anew with other seeds
_PREFIX: Final = "duel_lancer"
Which = StrEnum("Which", {name: name for name in ORACLES})  # type: ignore[misc]  # its members are the table's
DEFAULT: Final = Which("QUERY_PARTITIONING")


@app.command()
def sqlancer(
    *,
    oracle: Annotated[Which, typer.Option(help="Which of SQLancer's oracles looks.")] = DEFAULT,
    minutes: Annotated[float, typer.Option(min=0.1, metavar="N", help="How long to look.")] = 5.0,
    seed: Annotated[int, typer.Option(metavar="N", help="SQLancer's first seed.")] = 1,
    jar: options.Jar = None,
    base: options.Base = None,
    series: options.SeriesOption = None,
    repo: options.Repo = None,
    commits: options.Range = None,
    arm: options.ArmOption = None,
    flavor: options.FlavorOption = options.DEFAULT_FLAVOR,
    json_file: options.JsonFile = None,
) -> None:
    """Run SQLancer's oracles on the last arm; what they report is played on all arms and judged again.

    A report that does not show here is not a finding. `pgduel fuzz --generator sqlancer` has SQLancer's statements
    judged by pgduel's own oracles.
    """
    arms = options.ArmOptions.given(base, series, repo, commits, arm, flavor)
    given = options.given(jar=jar)
    if given.sqlancer_jar is None:
        fetch()
    path = class_path(given.sqlancer_jar)
    plan = Plan(seed, ("sqlancer",), minutes, None, stop_at_first=False, arms=arms.to_json(), given=given)
    with hunting(plan) as hunt:
        hunt.counts = {"oracle": str(oracle), "seed": seed, "rounds": 0, "queries": 0, "reports": 0}
        while hunt.seconds:
            _round(hunt, path, str(oracle))
    write_json(json_file, hunt.to_json())
    counts = hunt.counts
    told_of = f"SQLancer {oracle}, seed {seed}: {counts['queries']} queries, {counts['reports']} reports"
    raise told(hunt, f"{told_of}, {hunt.confirmed} of them confirmed here")


def _round(hunt: Hunt, path: str, oracle: str) -> None:
    """Run SQLancer for a while, then judge what it reports."""
    seed = hunt.counts["seed"] + hunt.counts["rounds"] * REPORTS
    hunt.counts["rounds"] += 1
    hunt.shown.progress(f"SQLancer {oracle}, seed {seed}: {hunt.counts['reports']} reports, {hunt.confirmed} confirmed")
    call = Call.hunt(oracle, seed, max(1, round(min(_ROUND, hunt.seconds))))
    suspect = hunt.arms[-1].cluster
    ran = run(Server(str(suspect.socket_dir), suspect.port), path, call, _PREFIX)
    hunt.await_servers()
    hunt.counts["queries"] += ran.queries
    for log in ran.reports.values():
        hunt.counts["reports"] += 1
        case = case_of(log, hunt.target)
        if not hunt.judge(case, f"sqlancer --random-seed {log.seed} --oracle {oracle}"):
            hunt.shown.say(f"not confirmed, seed {log.seed}: {' '.join(log.complaint.split())[:160]}")

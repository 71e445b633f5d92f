"""`pgduel sqlsmith`: SQLsmith's own execution on one arm, which finds crashes and internal errors."""

import random
from typing import Annotated, Final

import typer

from fuzz.campaign.plan import Plan
from fuzz.cli import options
from fuzz.cli.app import app, write_json
from fuzz.cli.external_run import ExternalRun, external_run, print_results
from fuzz.engines.sqlsmith import Smith, cases, run
from fuzz.generators.generator import Scale, small_scene
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.flavor import DEFAULT_FLAVOR
from fuzz.sources.sqlsmith import SEEDS
from fuzz.sources.workloads import require_workload
from oracles.model.case import Case
from oracles.model.oracle import Unstable

_STATEMENTS: Final = 2000  # on one scene
_ROUND: Final = 60.0  # seconds at most on one scene


@app.command()
def sqlsmith(
    *,
    minutes: Annotated[float, options.minutes_option("Minutes to run.", least=0.1)] = 5.0,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the scenes, and of SQLsmith on each.")] = 1,
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
    """Run SQLsmith on the last arm, over scenes of the generators, to find crashes and internal errors.

    The statements before a crash, and those that end in an internal error, run again on all arms. With `pgduel fuzz
    --generator sqlsmith`, all oracles judge SQLsmith's statements.
    """
    arms = ArmOptions.given(base, series, repo, commits, arm, flavor, manifest, setting)
    given = options.given()
    require_workload("sqlsmith", given)
    plan = Plan(seed, {"sqlsmith": 1}, minutes, None, stop_at_first=False, arms=arms, given=given)
    with external_run(plan) as external:
        external.counts = {"seed": seed, "scenes": 0, "statements": 0, "crashes": 0, "internal_errors": 0}
        while external.seconds:
            _round(external)
    write_json(json_file, external.to_json())
    counts = external.counts
    headline = f"SQLsmith, seed {seed}: {counts['statements']} statements on {counts['scenes']} scenes"
    seen = f"{counts['crashes']} crashes, {counts['internal_errors']} internal errors"
    raise print_results(external, f"{headline}, {seen}, {external.confirmed} of them confirmed")


def _round(external: ExternalRun) -> None:
    """Create a scene, and run SQLsmith on it."""
    counts = external.counts
    drawn = f"{counts['seed']}/sqlsmith/scene {counts['scenes']}"
    rng = random.Random(drawn)
    scene = small_scene(rng, Scale())
    smith = Smith(rng.randrange(SEEDS), _STATEMENTS)
    with external.target.session(scene) as connection:
        database = connection.info.dbname
    external.shown.progress(f"SQLsmith, scene {counts['scenes']}: {counts['statements']} statements so far")
    found = run(smith, external.arms[-1].cluster, database, min(_ROUND, max(1.0, external.seconds)))
    counts["scenes"] += 1
    counts["statements"] += found.statements
    counts["crashes"] += len(found.deaths)
    counts["internal_errors"] += len(found.errors)
    for failure in (*found.deaths, *found.errors):
        external.await_servers()
        origin = f"sqlsmith --seed={smith.seed} on {drawn}"
        tried = list(cases(scene, failure.statements))
        if not any(external.judge(case, origin) for case in tried):
            external.shown.say(f"not confirmed, {origin}: after {failure.statements[-1][:100]!r}")
            doubt = Unstable("SQLsmith caused it once, and never again", sides=("no failure", failure.report))
            external.add_doubt(
                failure.oracle, doubt, origin, tried[-1] if tried else Case("sqlsmith", tuple(scene), ())
            )

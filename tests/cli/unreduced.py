"""A campaign that ended before the reduction of its only finding."""

from pathlib import Path

from fuzz.campaign.catalog import opened
from fuzz.campaign.plan import Plan
from fuzz.cli.options import arms_json
from fuzz.servers.arm import build_arms
from fuzz.servers.arm_options import ArmOptions
from oracles.model.case import Case, Kind, Step
from oracles.model.finding import Finding
from tests.cli.bug import JOIN_AT_BOUNDS
from tests.cli.command import Command

CASE_ID = "1/by_hand/0"
FINDING = Finding("result", ("patched", "bugged"), "rows under plan x", None, "rows", "", "")
*_SCENE, _QUERY = (line.removesuffix(";") for line in JOIN_AT_BOUNDS.splitlines())
SCENE, QUERY = tuple(map(Step, _SCENE)), Step(_QUERY, Kind.QUERY)


def unreduced(pgduel: Command, bugged: tuple[str, ...], case: Case) -> Path:
    """Create the command's first campaign, with one unreduced finding, and return its directory."""
    options = ArmOptions.given(None, None, None, None, bugged[1::2], "assert")
    plan = Plan(1, {"partitioned_joins": 1}, None, 1, stop_at_first=False, arms=options)
    specs = options.specs(print)
    directory = pgduel.campaigns / "1"
    directory.mkdir(parents=True, exist_ok=True)
    with opened(directory) as store:
        store.begin(plan, arms_json(specs, [build.key for build, _ in build_arms(specs, print)]))
        store.add_finding(FINDING, CASE_ID, case)
        store.progress(store.counters, {0: 1})
    return directory

"""`pgduel build`: compile arms, list builds, delete old ones."""

import time
from typing import Annotated

import typer

from fuzz.cli import options
from fuzz.cli.app import app, console, say, write_json
from fuzz.report.terminal import display
from fuzz.servers.arm import build_arms, remarks
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.build import list_builds, prune_builds
from fuzz.servers.flavor import DEFAULT_FLAVOR


@app.command()
def build(
    *,
    base: options.Base = None,
    series: options.SeriesOption = None,
    repo: options.Repo = None,
    commits: options.Range = None,
    arm: options.ArmOption = None,
    flavor: options.FlavorOption = DEFAULT_FLAVOR,
    manifest: options.Manifest = None,
    list_: Annotated[bool, typer.Option("--list", help="List builds, and compile nothing.")] = False,
    prune: Annotated[bool, typer.Option("--prune", help="Delete builds and object files.")] = False,
    keep: Annotated[int, typer.Option(min=0, metavar="N", help="With --prune: number of newest builds to keep.")] = 0,
    json_file: options.JsonFile = None,
) -> None:
    """Compile the arms, each once. Builds are kept under the hash of their source and flavor.

    `fuzz`, `replay`, `shell` and `bench` compile what they need by themselves.
    """
    if prune:
        deleted = prune_builds(keep)
        say(f"deleted {len(deleted)} builds")
        write_json(json_file, {"deleted": [each.key for each in deleted]})
        return
    if list_:
        _list(json_file)
        return
    wanted = ArmOptions.given(base, series, repo, commits, arm, flavor, manifest)
    started = time.monotonic()
    with display(console, None) as shown:
        specs = wanted.specs(shown.progress)
        for line in remarks(specs):
            shown.say(line)
        built = build_arms(specs, shown.progress)
    for spec, (made, _) in zip(specs, built, strict=True):
        patches = f"{len(spec.series.patches)} patches, tree {made.tree[:12]}"
        say(f"{spec.name}: {made.version}, {spec.flavor.name}, {patches}, {made.prefix}")
    say(f"built in {time.monotonic() - started:.0f} s")
    write_json(json_file, options.arms_json(specs, [made.key for made, _ in built]))


def _list(json_file: options.JsonFile) -> None:
    builds = list_builds()
    for each in builds:
        say(f"{each.key}  {each.version:10} {each.flavor.name:9} tree {each.tree[:12]}  {each.prefix}")
    if not builds:
        say("no builds yet; `pgduel build` makes those of master and patched")
    rows = [
        {"build": each.key, "version": each.version, "flavor": each.flavor.name, "tree": each.tree} for each in builds
    ]
    write_json(json_file, rows)

"""The options that select the arms, shared by several commands."""

import os
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from fuzz.engines.engine import EngineName
from fuzz.errors import CaseError, PgduelError
from fuzz.servers.arm import Arm, ArmSpec, settings_json
from fuzz.servers.flavor import FLAVORS
from fuzz.servers.release import DEFAULT as DEFAULT_BASE
from fuzz.sources.source import UserInput
from fuzz.sources.sqlancer.running import JAR_VARIABLE
from fuzz.sources.user_sql import read_files

_PANEL = "Arms"
_RUN_PANEL = "What runs"


def minutes_option(help_: str, *, least: float = 0.01, **others: Any) -> Any:
    """Return an option for minutes, with `others` for Typer. Infinity is refused, because it cannot be a timeout."""
    return typer.Option(min=least, max=1e6, metavar="N", help=help_, **others)


Minutes = Annotated[
    float | None,
    minutes_option("Minutes to fuzz. Default: 5, or no limit with --cases.", rich_help_panel=_RUN_PANEL),
]
Cases = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Maximum number of cases.", rich_help_panel=_RUN_PANEL)
]
Seed = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Seed of the cases: equal seeds run equal cases. Default: the one after the last campaign's "
        "on the same builds, or 1.",
        rich_help_panel=_RUN_PANEL,
    ),
]
GeneratorOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME|FILE.py",
        help="Generator or source to run, or a file with your own (docs/generators.md); repeat the option for more. "
        "Each runs equally many cases. Default: all generators, and all sources that can run for a part of the time; "
        "with --sql, user_sql alone.",
        rich_help_panel=_RUN_PANEL,
    ),
]
EngineOption = Annotated[
    EngineName,
    typer.Option(
        "--engine",
        help="Who makes the generators' random choices: a plain seed, or libFuzzer, which keeps inputs that reach new "
        "code in the server (docs/engines.md) and builds the arms in flavor guided.",
        rich_help_panel=_RUN_PANEL,
    ),
]


def with_dask(address: str | None) -> str | None:
    """Return the address. Raises PgduelError if there is one, and Dask is not installed."""
    if address is not None and find_spec("distributed") is None:
        raise PgduelError(
            "many machines need the Python package distributed, which is not installed; install pgduel[dask]"
        )
    return address


DaskOption = Annotated[
    str | None,
    typer.Option(
        "--dask",
        metavar="ADDRESS",
        help="Run cases on the workers of this Dask scheduler, or of 'local', a cluster on this machine "
        "(docs/campaigns.md).",
        callback=with_dask,
        rich_help_panel=_RUN_PANEL,
        show_default=False,
    ),
]
GeneratorFile = Annotated[
    list[str] | None,
    typer.Option("--generator", metavar="FILE.py", help="File with the generator of yours that made the case."),
]
OracleOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE.py",
        help="File with an oracle of your own (docs/oracles.md), which judges beside those of pgduel; repeat the "
        "option for more.",
        rich_help_panel=_RUN_PANEL,
    ),
]
Base = Annotated[
    str | None,
    typer.Option(
        "--base",
        metavar="BASE",
        help=f"PostgreSQL source: pg17 or pg18 (newest minor release), a directory, a tarball, or "
        f"CHECKOUT@REVISION. Default: {DEFAULT_BASE}, or the start of --range.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
SeriesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--series",
        metavar="PATH",
        help="Patches of the arm 'patched': a directory of patches (in the order of its file 'series', else of their "
        "names), a mail or mailbox, or patch files in order (repeat the option). 'master' is then the unchanged base.",
        rich_help_panel=_PANEL,
    ),
]
Repo = Annotated[
    Path | None,
    typer.Option(
        "--repo",
        metavar="DIR",
        help="Git checkout of --range and of ranges in --arm.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
Range = Annotated[
    str | None,
    typer.Option(
        "--range",
        metavar="A..B",
        help="Commits A..B of --repo as patches of the arm 'patched'; 'master' is the merge base of A and B.",
        rich_help_panel=_PANEL,
    ),
]
ArmOption = Annotated[
    list[str] | None,
    typer.Option(
        "--arm",
        metavar="NAME[@BASE]=SERIES",
        help="An arm (repeat the option; the first is the reference for the others, and a single one is judged alone). "
        "SERIES is nothing for the unchanged base, or parts separated by commas: shipped arms (master, patched, "
        "upstream; patched:0010 ends with patch 0010), directories, patch files, mails, mailboxes, git ranges of "
        "--repo. @BASE is a base for this arm alone. "
        "The same SERIES twice compares a build with itself. Default: master and patched; for fuzz, campaign start and "
        "corpus run also upstream, if memory allows and the base has a baseline.",
        rich_help_panel=_PANEL,
    ),
]
Manifest = Annotated[
    Path | None,
    typer.Option(
        "--manifest",
        metavar="FILE",
        help="TOML file that describes the patches: their features, and whether plans stay (docs/manifest.md). "
        "A file manifest.toml in the directory of a series needs no option.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="[ARM:]NAME=VALUE",
        help="Setting of the servers of all arms, or of one (repeat the option). Arms of one build may differ in it: "
        "--arm off=patched --arm on=patched --set off:enable_x=off.",
        rich_help_panel=_PANEL,
    ),
]
FlavorOption = Annotated[
    str,
    typer.Option(
        "--flavor", metavar="NAME", help=f"Flavor of the builds: {', '.join(FLAVORS)}.", rich_help_panel=_PANEL
    ),
]


def _writable(file: Path | None) -> Path | None:
    """Return the file. Raises PgduelError if it cannot be written: now, not after hours of fuzzing."""
    if file is not None:
        there = file if os.path.exists(file) else file.parent
        if os.path.isdir(file) or not os.path.isdir(file.parent) or not os.access(there, os.W_OK):
            raise PgduelError(f"cannot write {file}; give --json a file in a directory that exists and is writable")
    return file


def writable_directory(option: typer.CallbackParam, path: Path | None) -> Path | None:
    """Return the directory of an option. Raises PgduelError if it cannot be written: now, not after hours."""
    if path is not None:
        there = next(each for each in (path, *path.absolute().parents) if os.path.lexists(each))
        if not os.path.isdir(there) or not os.access(there, os.W_OK):
            raise PgduelError(f"cannot write below {path}; give {option.opts[0]} a directory that is writable, or new")
    return path


JsonFile = Annotated[
    Path | None,
    typer.Option(
        "--json",
        metavar="FILE",
        help="Write the result to FILE, as JSON.",
        callback=_writable,
        show_default=False,
    ),
]
Sql = Annotated[
    Path | None,
    typer.Option(
        "--sql",
        metavar="PATH",
        help="Your own SQL, for the source user_sql: a file (a dump, a script, pg_stat_statements as "
        "CSV), or a directory of files, in the order of their names.",
        rich_help_panel=_RUN_PANEL,
        show_default=False,
    ),
]
Jar = Annotated[
    Path | None,
    typer.Option(
        "--sqlancer-jar",
        metavar="PATH",
        envvar=JAR_VARIABLE,
        help="SQLancer's jar, beside its libraries. Default: the one that pgduel sqlancer fetches by Maven.",
        show_default=False,
    ),
]


def given(sql: Path | None = None, jar: Path | str | None = None) -> UserInput:
    """Return the input of sources from the command line and the environment. Raises CaseError."""
    jar = jar or os.environ.get(JAR_VARIABLE)
    return UserInput(None if sql is None else _readable(sql), _resolved(Path(jar)) if jar else None)


def _readable(sql: Path) -> str:
    """Return the resolved path of SQL that can be read. Raises CaseError: now, not in each case."""
    path = _resolved(sql)
    if not os.path.exists(path):
        raise CaseError(f"{sql} does not exist; give --sql a file or a directory of SQL")
    if not (os.path.isfile(path) or os.path.isdir(path)):
        raise CaseError(f"{sql} is no ordinary file, but each case reads it; give --sql a file or a directory of SQL")
    read_files(Path(path))
    return path


def _resolved(path: Path) -> str:
    return os.path.realpath(os.path.expanduser(path))


def arms_json(specs: Sequence[ArmSpec], builds: Sequence[str]) -> dict[str, Any]:
    """Return the record of the arms for results in JSON. `builds` are the builds' keys."""
    return {
        spec.name: {
            "build": build,
            "flavor": spec.flavor.name,
            "base": {"name": spec.base.name, "version": spec.base.version, "sha256": spec.base.sha256},
            "tree": spec.base.tree,
            "series": [patch.name for patch in spec.series.patches],
        }
        for spec, build in zip(specs, builds, strict=True)
    }


def facts_of(specs: Sequence[ArmSpec], arms: Sequence[Arm]) -> dict[str, Any]:
    """Return the record of running arms: as `arms_json`, and their settings."""
    facts = arms_json(specs, [arm.build.key for arm in arms])
    return {arm.name: settings_json(arm) | facts[arm.name] for arm in arms}


def other_builds(facts: Mapping[str, Any], arms: Sequence[Arm]) -> Iterator[str]:
    """Yield a line if running arms have other builds than a campaign recorded by `facts_of`."""
    if names := [arm.name for arm in arms if arm.name in facts and facts[arm.name]["build"] != arm.build.key]:
        yield f"not the campaign's build: {', '.join(names)}; base, patches, flavor or compiler are others now"

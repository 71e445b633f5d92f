"""The options that say which arms there are, shared by the commands that need any."""

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import psutil
import typer

from fuzz.errors import CaseError, SourceError
from fuzz.servers import Report, git
from fuzz.servers.arm import SHIPPED, ArmSpec, parse_arm, parse_series, shipped_series, split_arm
from fuzz.servers.base import resolve_base
from fuzz.servers.flavor import FLAVORS, flavor_named
from fuzz.servers.release import DEFAULT as DEFAULT_BASE
from fuzz.servers.release import RELEASES
from fuzz.servers.series import Series
from fuzz.sources.context import UserInput
from fuzz.sources.sqlancer.jar import VARIABLE

DEFAULT_FLAVOR = "assert"
_PANEL = "Arms"
_ROOM = 6 << 30  # bytes that are there for three servers and what runs in them

Base = Annotated[
    str | None,
    typer.Option(
        "--base",
        metavar="BASE",
        help=f"PostgreSQL to start from: pg17 or pg18 (newest minor release), a directory, a tarball, or "
        f"CHECKOUT@REVISION. Default: {DEFAULT_BASE}, or where --range begins.",
        rich_help_panel=_PANEL,
        show_default=False,
    ),
]
SeriesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--series",
        metavar="PATH",
        help="Patches of the arm 'patched': a directory with a file 'series', or patch files in order (repeat the "
        "option). 'master' is then the base as it is.",
        rich_help_panel=_PANEL,
    ),
]
Repo = Annotated[
    Path | None,
    typer.Option(
        "--repo", metavar="DIR", help="Git checkout that --range refers to.", rich_help_panel=_PANEL, show_default=False
    ),
]
Range = Annotated[
    str | None,
    typer.Option(
        "--range",
        metavar="A..B",
        help="Commits A..B of --repo as patches of the arm 'patched'; 'master' is where B left A.",
        rich_help_panel=_PANEL,
    ),
]
ArmOption = Annotated[
    list[str] | None,
    typer.Option(
        "--arm",
        metavar="NAME[@BASE]=SERIES",
        help="An arm (repeat the option; the first is the one others are held against, and a single one is held "
        "against itself). SERIES is a directory, patch files (a,b), a git range of --repo, a shipped arm (master, "
        "patched, upstream), or nothing: the base as it is; with @BASE, a base of the arm's own. "
        "Naming one SERIES twice compares a build with itself. Default: master and patched; upstream too, for fuzz, "
        "where memory allows.",
        rich_help_panel=_PANEL,
    ),
]
FlavorOption = Annotated[
    str,
    typer.Option(
        "--flavor", metavar="NAME", help=f"How arms are compiled: {', '.join(FLAVORS)}.", rich_help_panel=_PANEL
    ),
]
JsonFile = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write the result to FILE, as JSON.", show_default=False)
]
Sql = Annotated[
    Path | None,
    typer.Option(
        "--sql",
        metavar="PATH",
        help="SQL of yours to draw cases from, as source user_sql: a file (a dump, a script, pg_stat_statements as "
        "CSV), or a directory of them in the order of their names.",
        rich_help_panel="What runs",
        show_default=False,
    ),
]
Jar = Annotated[
    Path | None,
    typer.Option(
        "--sqlancer-jar",
        metavar="PATH",
        envvar=VARIABLE,
        help="SQLancer's jar, beside what it needs. Default: the one that pgduel sqlancer has Maven fetch.",
        show_default=False,
    ),
]


def given(sql: Path | None = None, jar: Path | str | None = None) -> UserInput:
    """Return what sources get of the command line, and of the environment. Raises CaseError."""
    jar = jar or os.environ.get(VARIABLE)
    if sql is not None and not sql.expanduser().exists():
        raise CaseError(f"there is no {sql}: give --sql a file or a directory of SQL")
    return UserInput(None if sql is None else _resolved(sql), _resolved(Path(jar)) if jar else None)


def _resolved(path: Path) -> str:
    return str(path.expanduser().resolve())


@dataclass(frozen=True, slots=True)
class ArmOptions:
    """Which arms the user asked for, in words that survive a change of directory."""

    base: str | None = None
    series: tuple[str, ...] = ()
    repo: str | None = None
    range: str | None = None
    arms: tuple[str, ...] = ()
    flavor: str = DEFAULT_FLAVOR

    @classmethod
    def given(
        cls,
        base: str | None,
        series: Sequence[str] | None,
        repo: Path | None,
        commits: str | None,
        arms: Sequence[str] | None,
        flavor: str,
    ) -> "ArmOptions":
        """Return the options as the command line gave them, paths made absolute. Raises SourceError."""
        if commits is not None and repo is None:
            raise SourceError("--range needs the checkout it refers to: give --repo")
        if arms and (series or commits):
            raise SourceError("give the series either with --arm or with --series and --range, not both")
        return cls(
            base=None if base is None else _absolute(base),
            series=tuple(_absolute(part) for each in series or () for part in each.split(",")),
            repo=None if repo is None else _absolute(str(repo)),
            range=commits,
            arms=tuple(_absolute_arm(arm) for arm in arms or ()),
            flavor=flavor_named(flavor).name,
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "ArmOptions":
        """Return the options that `to_json` wrote."""
        return cls(**{**data, "series": tuple(data["series"]), "arms": tuple(data["arms"])})

    def to_json(self) -> dict[str, Any]:
        """Return the options as JSON can keep them."""
        return asdict(self)

    def command_line(self) -> str:
        """Return the options as a command line has them, each after a space; nothing where all are the defaults."""
        words: list[str] = []
        for name, value in self.to_json().items():
            if value != getattr(ArmOptions(), name):
                option = "--arm" if name == "arms" else f"--{name}"
                words += [word for each in ([value] if isinstance(value, str) else value) for word in (option, each)]
        return "".join(f" {shlex.quote(word)}" for word in words)

    def with_referee(self) -> "ArmOptions":
        """Return all shipped arms where none is named: upstream is the third opinion, if memory allows for it."""
        if self.arms or self.series or self.range or psutil.virtual_memory().available < _ROOM:
            return self
        return replace(self, arms=("master", "patched", "upstream"))

    @property
    def same_build_wanted(self) -> bool:
        """Return whether the user named one series twice, which says that a build shall duel itself."""
        named = [split_arm(arm)[1:] for arm in self.arms]
        return len(set(named)) < len(named)

    def specs(self, report: Report) -> tuple[ArmSpec, ...]:
        """Return the arms. Raises SourceError, BuildError."""
        flavor = flavor_named(self.flavor)
        repo = None if self.repo is None else Path(self.repo)
        base = resolve_base(self.base or self._default_base(), report)
        if self.arms:
            return tuple(parse_arm(arm, base, flavor, report, repo) for arm in self.arms)
        text = self.range or ",".join(self.series)
        if text:
            return (
                ArmSpec("master", base, Series("base"), flavor),
                ArmSpec("patched", base, parse_series(text, base, repo), flavor),
            )
        return tuple(ArmSpec(name, base, shipped_series(name, base), flavor) for name in ("master", "patched"))

    @property
    def count(self) -> int:
        """Return how many arms these are."""
        return len(self.arms) or 2

    def _default_base(self) -> str:
        if self.range is None or self.repo is None:
            return DEFAULT_BASE
        first, dots, last = self.range.partition("..")
        if not dots:
            raise SourceError(f"--range {self.range} is no range of commits: give A..B")
        failing = f"cannot find where {self.range} begins in {self.repo}"
        begin = git.output("-C", self.repo, "merge-base", first, last.lstrip(".") or "HEAD", failing=failing)
        return f"{self.repo}@{begin.decode().strip()}"


def _absolute(text: str) -> str:
    """Return the text with an existing path at its start made absolute: PATH or CHECKOUT@REVISION."""
    if text in SHIPPED or text in RELEASES:
        return text
    path, at, revision = text.rpartition("@") if not Path(text).expanduser().exists() else (text, "", "")
    expanded = Path(path).expanduser()
    return f"{expanded.resolve()}{at}{revision}" if path and expanded.exists() else text


def _absolute_arm(arm: str) -> str:
    named, equals, series = arm.partition("=")
    name, at, base = named.partition("@")
    return name + at + _absolute(base) + equals + ",".join(_absolute(part) for part in series.split(","))


def arms_json(specs: Sequence[ArmSpec], builds: Sequence[str]) -> dict[str, Any]:
    """Return what every result records of its arms; `builds` are the builds' keys."""
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

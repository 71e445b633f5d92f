"""The options that select arms, as they are stored with a campaign."""

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Final

import psutil

from fuzz.errors import SourceError
from fuzz.servers import Report, git
from fuzz.servers.arm import (
    SHIPPED,
    ArmSpec,
    described,
    has_baseline,
    parse_arm,
    parse_series,
    shipped_series,
    split_arm,
    split_series,
)
from fuzz.servers.arm_settings import ArmSetting, settings_by_arm
from fuzz.servers.base import resolve_base
from fuzz.servers.flavor import DEFAULT_FLAVOR, flavor_named
from fuzz.servers.manifest import read_manifest
from fuzz.servers.release import DEFAULT as DEFAULT_BASE
from fuzz.servers.release import RELEASES
from fuzz.servers.series import Series

_OPTIONS = {"arms": "--arm", "settings": "--set"}  # field → option, unless it has the field's name
_ROOM = 6 << 30  # bytes of memory that three servers and their load need
_RANGE: Final = re.compile(r"(?P<first>.*?)(?P<dots>\.{2,3})(?P<last>[^.].*|)")
_COMMIT: Final = r"([0-9a-f]{40})\b"


@dataclass(frozen=True, slots=True)
class ArmOptions:
    """The user's choice of arms, independent of the working directory."""

    base: str | None = None
    series: tuple[str, ...] = ()
    repo: str | None = None
    range: str | None = None
    arms: tuple[str, ...] = ()
    flavor: str = DEFAULT_FLAVOR
    manifest: str | None = None
    settings: tuple[str, ...] = ()

    @classmethod
    def given(
        cls,
        base: str | None,
        series: Sequence[str] | None,
        repo: Path | None,
        commits: str | None,
        arms: Sequence[str] | None,
        flavor: str,
        manifest: Path | None = None,
        settings: Sequence[str] | None = None,
    ) -> "ArmOptions":
        """Return the options of the command line, with absolute paths. Raises SourceError."""
        empty = {"--base": base == "", "--series": "" in (series or ()), "--range": commits == ""}
        if wrong := next((option for option, is_empty in empty.items() if is_empty), None):
            raise SourceError(f"the value of {wrong} is empty; give one, or leave the option out")
        if commits is not None and repo is None:
            raise SourceError("--range needs a checkout; give --repo")
        if repo is not None and commits is None and ".." not in "".join((*(series or ()), *(arms or ()))):
            raise SourceError("--repo is only the checkout of a range; give --range A..B or --arm NAME=A..B, too")
        if len([each for each in (arms, series, commits) if each]) > 1:
            raise SourceError("the patches are given by more than one of --arm, --series and --range; give one of them")
        if manifest is not None and not (arms or series or commits):
            raise SourceError("--manifest needs patches; give --series, --range or --arm")
        for text in settings or ():
            ArmSetting.parse(text)
        return cls(
            base=None if base is None else _absolute(base),
            series=tuple(_absolute(part) for each in series or () for part in split_series(each)),
            repo=None if repo is None else _absolute(str(repo)),
            range=commits,
            arms=tuple(_absolute_arm(arm) for arm in arms or ()),
            flavor=flavor_named(flavor).name,
            manifest=None if manifest is None else _absolute(str(manifest)),
            settings=tuple(settings or ()),
        )

    def instead_of(self, recorded: "ArmOptions") -> "ArmOptions":
        """Return these options for a finding with recorded ones. Without arms, they change its flavor and settings."""
        if replace(self, flavor=DEFAULT_FLAVOR, settings=()) != ArmOptions():
            return self
        flavor = recorded.flavor if self.flavor == DEFAULT_FLAVOR else self.flavor
        return replace(recorded, flavor=flavor, settings=recorded.settings + self.settings)

    def command_line(self) -> str:
        """Return the options as text of a command line, each after a space; empty if all have their defaults."""
        words: list[str] = []
        for each in fields(self):
            value = getattr(self, each.name)
            if value != each.default:
                option = _OPTIONS.get(each.name, f"--{each.name}")
                words += [word for text in ([value] if isinstance(value, str) else value) for word in (option, text)]
        return "".join(f" {shlex.quote(word)}" for word in words)

    def with_third_arm(self, report: Report) -> "ArmOptions":
        """Return all shipped arms if none is named, with upstream as third arm of a majority if memory allows.

        Raises SourceError.
        """
        return self if psutil.virtual_memory().available < _ROOM else self.with_upstream(report)

    def with_upstream(self, report: Report) -> "ArmOptions":
        """Return all shipped arms if none is named: three, or two where upstream is master. Raises SourceError."""
        if self.arms or self.series or self.range or not has_baseline(self._shipped_major(report)):
            return self
        return replace(self, arms=("master", "patched", "upstream"))

    def _shipped_major(self, report: Report) -> int:
        """Return the major version of the base. The source of a release is not needed for that. Raises SourceError."""
        base = self.base or DEFAULT_BASE
        return RELEASES[base].major if base in RELEASES else resolve_base(base, report).major

    @property
    def same_build_wanted(self) -> bool:
        """Return whether a series is named twice, so that a build is compared with itself."""
        named = [split_arm(arm)[1:] for arm in self.arms]
        return len(set(named)) < len(named)

    def pinned(self) -> "ArmOptions":
        """Return the options with the present commits of their branches, so that they name the same arms later.

        Raises SourceError.
        """
        repo = None if self.repo is None else Path(self.repo)
        base = self._default_base() if self.base is None and self.range is not None else self.base
        return replace(
            self,
            base=None if base is None else _pinned_base(base),
            range=None if self.range is None else _pinned_part(self.range, repo),
            arms=tuple(_pinned_arm(arm, repo) for arm in self.arms),
        )

    @property
    def commits(self) -> tuple[str, ...]:
        """Return the last commit of each pinned range, or else the commits of pinned bases; () without any."""
        text = "\n".join((self.base or "", self.range or "", *self.arms))
        return tuple(dict.fromkeys(re.findall(rf"\.\.{_COMMIT}", text) or re.findall(f"@{_COMMIT}", text)))

    def specs(self, report: Report) -> tuple[ArmSpec, ...]:
        """Return the arms. Raises SourceError, BuildError."""
        names = [split_arm(arm)[0] for arm in self.arms] or ["master", "patched"]
        settings = settings_by_arm(self.settings, names)
        manifest = None if self.manifest is None else read_manifest(Path(self.manifest))
        specs = tuple(replace(spec, settings=settings[spec.name]) for spec in self._specs(report))
        return specs if manifest is None else described(specs, manifest)

    def _specs(self, report: Report) -> tuple[ArmSpec, ...]:
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

    def _default_base(self) -> str:
        if self.range is None or self.repo is None:
            return DEFAULT_BASE
        first, dots, last = self.range.partition("..")
        if not dots:
            raise SourceError(f"--range {self.range} is no range of commits; give A..B")
        failing = f"cannot find the start of {self.range} in {self.repo}"
        begin = git.output("-C", self.repo, "merge-base", first, last.lstrip(".") or "HEAD", failing=failing)
        return f"{self.repo}@{begin.decode().strip()}"


def _absolute(text: str) -> str:
    """Return the text with an absolute path if it starts with an existing one: PATH or CHECKOUT@REVISION."""
    if text in SHIPPED or text in RELEASES:
        return text
    path, at, revision = text.rpartition("@") if not Path(os.path.expanduser(text)).exists() else (text, "", "")
    expanded = Path(os.path.expanduser(path))
    return f"{expanded.resolve()}{at}{revision}" if path and expanded.exists() else text


def _absolute_arm(arm: str) -> str:
    named, equals, series = arm.partition("=")
    name, at, base = named.partition("@")
    return name + at + _absolute(base) + equals + ",".join(_absolute(part) for part in split_series(series))


def _pinned_base(base: str) -> str:
    """Return CHECKOUT@COMMIT for CHECKOUT@REVISION; any other base unchanged. Raises SourceError."""
    checkout, at, revision = base.rpartition("@")
    if not at or Path(os.path.expanduser(base)).exists() or not Path(os.path.expanduser(checkout)).is_dir():
        return base
    return f"{checkout}@{_commit(Path(os.path.expanduser(checkout)), revision)}"


def _pinned_part(part: str, repo: Path | None) -> str:
    """Return the range of commits for a range A..B; any other part of a series unchanged. Raises SourceError."""
    found = _RANGE.fullmatch(part)
    if found is None or repo is None or part in SHIPPED or Path(os.path.expanduser(part)).exists():
        return part
    return "".join((_commit(repo, found["first"]), found["dots"], _commit(repo, found["last"])))


def _pinned_arm(arm: str, repo: Path | None) -> str:
    named, equals, series = arm.partition("=")
    name, at, base = named.partition("@")
    return name + at + _pinned_base(base) + equals + ",".join(_pinned_part(part, repo) for part in split_series(series))


def _commit(checkout: Path, revision: str) -> str:
    wanted = f"{revision or 'HEAD'}^{{commit}}"
    failing = f"{checkout} has no revision {revision!r}"
    return git.output("-C", checkout, "rev-parse", "--verify", wanted, failing=failing).decode().strip()

"""Arm: a named build with its running cluster. Arms are opened together, because they must be comparable."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import combinations, groupby
from pathlib import Path

import psycopg

from fuzz import workdir
from fuzz.errors import BuildError, ServerError, SourceError, first_line
from fuzz.servers import Report
from fuzz.servers.arm_settings import Settings, configuration, require_accepted, texts
from fuzz.servers.attachments import series_from_saved
from fuzz.servers.base import Base, resolve_base
from fuzz.servers.build import Build, ensure_build
from fuzz.servers.cluster import Cluster
from fuzz.servers.flavor import Flavor
from fuzz.servers.known_good import newer_than_known
from fuzz.servers.mails import is_mail, series_from_mails
from fuzz.servers.manifest import Manifest
from fuzz.servers.series import (
    SERIES,
    Series,
    applied,
    apply_series,
    series_from_directory,
    series_from_files,
    series_from_range,
)
from fuzz.servers.sessions import session
from fuzz.servers.settings import FUZZING
from oracles.model.feature import Feature

SHIPPED = {  # name -> directories of patches/pgNN that form its series; not every version has a baseline
    "upstream": (),
    "master": ("baseline",),
    "patched": ("baseline", "optimizations"),
}
UP_TO = ":"  # NAME:NUMBER is a shipped arm up to a patch
_CRASH = re.compile(r"^TRAP|terminated by signal|PANIC|FATAL")
_FIXED_AT_INITDB = (
    "block_size",
    "data_checksums",
    "debug_assertions",
    "max_identifier_length",
    "max_index_keys",
    "segment_size",
    "server_encoding",
    "wal_block_size",
    "wal_segment_size",
)


@dataclass(frozen=True, slots=True)
class ArmSpec:
    """The parts from which an arm is built."""

    name: str
    base: Base
    series: Series
    flavor: Flavor
    settings: Settings = ()

    @property
    def label(self) -> str:
        """Return its name, with that of its series if that is another."""
        return self.name if self.name == self.series.name else f"{self.name}: {self.series.name}"


@dataclass(frozen=True, slots=True)
class Arm:
    """A running arm. `trees` are the trees after each prefix of its series, from the base to its own.

    `planner` has the last of them that is not the work of a plan-neutral patch, and the settings; it determines plans
    and costs. `features` are those of its series whose settings it has. `settings` are the user's.
    """

    name: str
    build: Build
    cluster: Cluster
    trees: tuple[str, ...]
    planner: str = ""
    features: tuple[Feature, ...] = ()
    settings: Settings = ()


def has_baseline(major: int) -> bool:
    """Return whether the arm `master` of a major version has patches. Without them, it is the arm `upstream`."""
    return (_shipped(major) / "baseline" / SERIES).exists()


def shipped_series(name: str, base: Base) -> Series:
    """Return the series of a shipped arm for the base's major version. Raises SourceError."""
    patches = _shipped(base.major)
    series = Series(name)
    for part in SHIPPED[name]:
        if part == "baseline" and not has_baseline(base.major):
            continue
        if not patches.is_dir():
            raise SourceError(f"no patches for PostgreSQL {base.major} are shipped; give some with --series")
        series += series_from_directory(patches / part)
    return replace(series, name=name)


def _shipped(major: int) -> Path:
    return workdir.PROJECT / "patches" / f"pg{major}"


def parse_series(text: str, base: Base, repo: Path | None = None) -> Series:
    """Return the series that `text` names.

    `text` is empty (the base itself), or has parts in order, separated by commas. A part is a shipped arm, a directory
    of patches, a patch file, a mail or mailbox, or a git range A..B in `repo`. NAME:NUMBER is a shipped arm up to the
    patch of that number. Raises SourceError.
    """
    if not text:
        return Series("base")
    parts = list(_parts(text, base, repo))
    return parts[0] if len(parts) == 1 else replace(sum(parts, start=Series(text)), name=text)


def split_series(text: str) -> list[str]:
    """Return the parts of a series. A comma in the path of a file separates no parts: maildirs have such files."""
    parts, words = [], text.split(",")
    while words:
        lengths = range(len(words), 1, -1)
        length = next((each for each in lengths if os.path.exists(os.path.expanduser(",".join(words[:each])))), 1)
        parts.append(",".join(words[:length]))
        words = words[length:]
    return parts


def _parts(text: str, base: Base, repo: Path | None) -> Iterator[Series]:
    """Yield the series of all parts. Neighbouring patch files are one, so that manifests beside them are read once."""
    for are_files, group in groupby(split_series(text), _is_patch_file):
        if are_files:
            yield series_from_files([Path(os.path.expanduser(part)) for part in group], name=text)
        else:
            yield from (_part(part, base, repo) for part in group)


def _is_patch_file(part: str) -> bool:
    path = Path(os.path.expanduser(part))
    return part not in SHIPPED and path.is_file() and not is_mail(path)


def _part(text: str, base: Base, repo: Path | None) -> Series:
    """Return the series of one part. Raises SourceError."""
    if text in SHIPPED:
        return shipped_series(text, base)
    name, up_to, number = text.partition(UP_TO)
    if up_to and name in SHIPPED:
        return _up_to(shipped_series(name, base), number)
    if not text:
        raise SourceError("a series has an empty part; correct the commas between its parts")
    path = Path(os.path.expanduser(text))
    if is_mail(path):
        return series_from_mails(path, name=text)
    if path.is_dir():
        return series_from_directory(path) if (path / SERIES).exists() else series_from_saved(path)
    if ".." not in text:
        shipped = ", ".join(SHIPPED)
        raise SourceError(
            f"no series found for {text!r}; give {shipped}, a directory, patch files, a mail, a git range, or nothing"
        )
    if repo is None:
        raise SourceError(f"{text!r} looks like a git range; give its repository with --repo")
    return series_from_range(repo, text)


def _up_to(series: Series, number: str) -> Series:
    """Return the series up to the last patch of a number. Raises SourceError."""
    found = [place for place, patch in enumerate(series.patches, 1) if patch.name.partition("-")[0] == number]
    if not found:
        numbers = ", ".join(patch.name.partition("-")[0] for patch in series.patches) or "another arm"
        raise SourceError(f"{series.name} has no patch {number!r}; give {numbers}")
    return replace(series, name=f"{series.name}{UP_TO}{number}", patches=series.patches[: found[-1]])


def split_arm(text: str) -> tuple[str, str, str]:
    """Return name, base and series of NAME@BASE=SERIES as text.

    Without @BASE, the base is empty. A shipped arm's name needs no =SERIES. Raises SourceError.
    """
    named, equals, series = text.partition("=")
    name, at, base = named.partition("@")
    if not equals and name in SHIPPED:
        series = name
    elif not equals or not name.replace("_", "").isalnum():
        raise SourceError(
            f"cannot read the arm {text!r}; give NAME=SERIES or NAME@BASE=SERIES, with letters, digits and _ in NAME"
        )
    if at and not base:
        raise SourceError(f"arm {text!r} has no base after @; give NAME@BASE=SERIES")
    return name, base, series


def parse_arm(text: str, base: Base, flavor: Flavor, report: Report, repo: Path | None = None) -> ArmSpec:
    """Return the arm of NAME=SERIES on a base, or of NAME@BASE=SERIES on its own base. Raises SourceError."""
    name, own, series = split_arm(text)
    base = resolve_base(own, report) if own else base
    return ArmSpec(name, base, parse_series(series, base, repo), flavor)


def described(specs: Sequence[ArmSpec], manifest: Manifest) -> tuple[ArmSpec, ...]:
    """Return the arms with patches as the manifest describes them. Raises SourceError if it fits none."""
    manifest.require_patches(*([patch.name for patch in spec.series.patches] for spec in specs))
    return tuple(
        replace(spec, series=spec.series.described(manifest)) if spec.series.patches else spec for spec in specs
    )


def build_arms(specs: Sequence[ArmSpec], report: Report) -> tuple[tuple[Build, tuple[str, ...]], ...]:
    """Return build and trees (after each prefix) of each arm. Raises SourceError, BuildError."""
    trees = [apply_series(spec.base.tree, spec.series) for spec in specs]  # all, before anything is compiled
    return tuple(
        (ensure_build(prefixes[-1], spec.flavor, report, label=spec.label), prefixes)
        for spec, prefixes in zip(specs, trees, strict=True)
    )


def remarks(specs: Sequence[ArmSpec]) -> tuple[str, ...]:
    """Return a line for each choice that reading the arms' series made for the user."""
    return tuple(dict.fromkeys(line for spec in specs for line in spec.series.remarks))


def newer_bases(specs: Sequence[ArmSpec]) -> tuple[str, ...]:
    """Return a line for each base newer than the known-good version, and for each patch that moved there."""
    return tuple(dict.fromkeys(line for spec in specs for line in _newer_base(spec)))


def _newer_base(spec: ArmSpec) -> Iterator[str]:
    version = spec.base.version
    if known := newer_than_known(version):
        yield f"base {spec.base.name} is {version}; the shipped patches and corpus were last tested on {known}"
        for patch in applied(spec.base.tree, spec.series).moved:
            yield f"patch {patch} applied to {version} only with less context; check and rebase it"


@contextmanager
def open_arms(
    specs: Sequence[ArmSpec],
    report: Report,
    *,
    allow_same_build: bool = False,
    settings: dict[str, str] | None = None,
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
    data: Callable[[Build], Path | None] = lambda _: None,
) -> Iterator[tuple[Arm, ...]]:
    """Build and start all arms, in workdir.clusters() or another directory, and stop them at the end.

    The first arm is the reference. `environment` replaces that of the flavor. `data` returns the directory of a stopped
    server that an arm's server continues, or None for an empty one. Raises SourceError, BuildError, ServerError; the
    last also if arms are not comparable: the same build twice (unless allowed, or with different settings), different
    configure flags, or different initdb settings. The arms' own settings override `settings`.
    """
    if len({spec.name for spec in specs}) < len(specs):
        raise SourceError(
            f"two arms have the same name; give each its own, instead of {', '.join(spec.name for spec in specs)}"
        )
    built = [(_in_environment(build, environment), trees) for build, trees in build_arms(specs, report)]
    builds = {spec.name: build for spec, (build, _) in zip(specs, built, strict=True)}
    differing = len({spec.settings for spec in specs}) > 1
    require_comparable(builds, allow_same_build=allow_same_build or differing)
    for spec in specs:
        require_accepted(builds[spec.name], spec.name, spec.settings)
    given = frozenset(name.lower() for spec in specs for name, _ in spec.settings)
    with ExitStack() as stack:
        arms = []
        for spec, (build, trees) in zip(specs, built, strict=True):
            report(f"starting {spec.name}")
            own = configuration(spec.settings, settings)
            made = Cluster(build, spec.name, settings=own, directory=directory, data=data(build))
            cluster = stack.enter_context(made)
            planner = " ".join((trees[spec.series.deciding], *texts(spec.settings)))
            features = tuple(_unforced(feature, given) for feature in _features_of(spec, cluster))
            arms.append(Arm(spec.name, build, cluster, trees, planner, features, spec.settings))
        require_same_initdb(arms)
        yield tuple(arms)


@contextmanager
def _session(cluster: Cluster) -> Iterator[psycopg.Connection]:
    """Open a session on a server that has started. Raises ServerError, because a patch may break sessions alone."""
    try:
        with session(cluster.connect_kwargs) as connection:
            yield connection
    except psycopg.Error as error:
        lines = cluster.log_since(0).splitlines()
        reason = next((line.rpartition("|")[2] for line in lines if _CRASH.search(line)), first_line(str(error)))
        raise ServerError(f"the server of arm {cluster.name} starts, but its sessions fail: {reason}") from error


def _in_environment(build: Build, environment: Mapping[str, str] | None) -> Build:
    """Return the build with another environment of its programs, or with that of its flavor."""
    if environment is None:
        return build
    return replace(build, flavor=replace(build.flavor, environment=dict(environment)))


def _features_of(spec: ArmSpec, cluster: Cluster) -> tuple[Feature, ...]:
    """Return the arm's features. Raises SourceError if one needs a setting that the arm lacks."""
    if not spec.series.features:
        return ()
    with _session(cluster) as connection:
        known = {name for (name,) in connection.execute("SELECT lower(name) FROM pg_settings")}
    features = tuple(each for each in spec.series.features if not each.setting or each.setting in known)
    for feature in features:
        for key, settings in (("force", feature.force), ("off", feature.off)):
            for name, _ in settings:
                if (
                    name.lower() not in known and "." not in name
                ):  # a setting with a dot belongs to an extension, perhaps not loaded yet
                    raise SourceError(
                        f"{feature.manifest}: feature {feature.name}: {key}: arm {spec.name} has no setting {name!r}; "
                        "correct its name, or add the key 'setting' with one that only arms with the feature have"
                    )
    return features


def _unforced(feature: Feature, given: frozenset[str]) -> Feature:
    """Return the feature without forced settings that the user gave to an arm, which the mode would override."""
    return replace(feature, force=tuple(each for each in feature.force if each[0].lower() not in given))


def settings_json(arm: Arm) -> dict[str, list[str]]:
    """Return the arm's settings as NAME=VALUE: those that a session may set, and those of the server alone."""
    if not arm.settings:
        return {}
    with _session(arm.cluster) as connection:
        query = "SELECT lower(name) FROM pg_settings WHERE context IN ('postmaster', 'sighup')"
        fixed = {name for (name,) in connection.execute(query)}
    parts = {
        "settings": tuple(each for each in arm.settings if each[0].lower() not in fixed),
        "server_settings": tuple(each for each in arm.settings if each[0].lower() in fixed),
    }
    return {key: texts(part) for key, part in parts.items() if part}


def session_defaults(arm: Arm) -> dict[str, str]:
    """Return the values, without `--set`, of those of the arm's settings that a session may change."""
    if not arm.settings:
        return {}
    with _session(arm.cluster) as connection:
        query = (
            "SELECT lower(name), coalesce(boot_val, '') FROM pg_settings"
            " WHERE context NOT IN ('internal', 'postmaster', 'sighup')"
        )
        defaults: dict[str, str] = dict(connection.execute(query).fetchall())
    names = (name.lower() for name, _ in arm.settings)
    return {name: FUZZING.get(name, defaults[name]) for name in names if name in defaults}


def explained_arm(arms: Sequence[Arm]) -> Arm:
    """Return the arm whose reach is measured: the last one with features, or the last one.

    Arms without features lack the branches to be counted.
    """
    return next((arm for arm in reversed(arms) if arm.features), arms[-1])


def features_of(arms: Iterable[Arm]) -> tuple[Feature, ...]:
    """Return the features of all arms."""
    return tuple(dict.fromkeys(feature for arm in arms for feature in arm.features))


def missing_features(specs: Sequence[ArmSpec], arms: Sequence[Arm]) -> Iterator[str]:
    """Yield a line for each feature of a manifest that no arm has."""
    for feature in dict.fromkeys(feature for spec in specs for feature in spec.series.features):
        if feature not in features_of(arms):
            yield f"feature {feature.name}: not tested, no arm has the setting {feature.setting}"


@contextmanager
def fresh_servers(arms: Sequence[Arm]) -> Iterator[tuple[Arm, ...]]:
    """Start a new server of each arm's build, and stop it at the end. Raises ServerError."""
    with ExitStack() as stack:
        yield tuple(
            replace(
                arm,
                cluster=stack.enter_context(Cluster(arm.build, arm.name, settings=configuration(arm.settings))),
            )
            for arm in arms
        )


def require_comparable(builds: Mapping[str, Build], *, allow_same_build: bool) -> None:
    """Check the builds of arms. Raises BuildError if a comparison would be meaningless."""
    for (first, one), (second, other) in combinations(builds.items(), 2):
        if one.key == other.key and not allow_same_build:
            raise BuildError(
                f"arms {first} and {second} are the same build ({one.key}), so nothing can differ; "
                "to test pgduel itself, name a series twice (--arm a=master --arm b=master)"
            )
        if one.configure != other.configure:
            differing = ", ".join(sorted(set(one.configure) ^ set(other.configure)))
            raise BuildError(
                f"arms {first} and {second} differ in configure flags: {differing}; give them the same flavor"
            )


def require_same_initdb(arms: Sequence[Arm]) -> None:
    """Check running arms. Raises ServerError if initdb made different settings."""
    first, *others = arms
    expected = _initdb_settings(first)
    for arm in others:
        for name, value in _initdb_settings(arm).items():
            if value != expected[name]:
                raise ServerError(
                    f"arms {first.name} and {arm.name} differ in {name} ({expected[name]}, {value}), set by initdb"
                )


def _initdb_settings(arm: Arm) -> dict[str, str]:
    with _session(arm.cluster) as connection:
        fixed = connection.execute(
            "SELECT name, setting FROM pg_settings WHERE name = ANY (%s)", [list(_FIXED_AT_INITDB)]
        ).fetchall()
        locale = connection.execute(
            "SELECT 'locale', concat_ws(' ', datlocprovider, datcollate, datctype) FROM pg_database"
            " WHERE datname = 'template1'"
        ).fetchall()
    return dict(fixed + locale)

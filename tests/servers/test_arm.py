"""Tests of arms: they are opened together, and meaningless comparisons are refused."""

import dataclasses

import pytest

from fuzz.errors import BuildError, ServerError, SourceError
from fuzz.servers.arm import (
    ArmSpec,
    features_of,
    missing_features,
    open_arms,
    parse_arm,
    require_comparable,
    require_same_initdb,
)
from fuzz.servers.base import Base
from fuzz.servers.build import Build
from fuzz.servers.flavor import FLAVORS
from oracles.model.feature import Feature

pytestmark = pytest.mark.servers


def specs(base: Base, *texts: str) -> list[ArmSpec]:
    return [parse_arm(text, base, FLAVORS["assert"], silent) for text in texts]


def silent(_line: str) -> None:
    """Ignore a line of progress."""


def test_two_arms_of_one_build_run_side_by_side_if_allowed(base: Base, build: Build) -> None:
    with open_arms(specs(base, "a=", "b="), silent, allow_same_build=True) as (first, second):
        assert first.build == second.build == build
        assert first.cluster.pid != second.cluster.pid
        assert first.trees == (base.tree,)
        assert first.cluster.alive()
        assert second.cluster.alive()
    assert not first.cluster.alive()
    assert not second.cluster.alive()


def test_an_arm_has_the_features_whose_settings_its_server_has(base: Base, build: Build) -> None:
    there, absent = Feature("there", "there", "enable_seqscan"), Feature("absent", "absent", "enable_telepathy")
    (spec,) = specs(base, "a=")
    series = dataclasses.replace(spec.series, features=(there, absent))
    with open_arms([dataclasses.replace(spec, series=series)], silent) as arms:
        assert arms[0].features == features_of(arms) == (there,)
        lines = list(missing_features([dataclasses.replace(spec, series=series)], arms))
        assert lines == ["feature absent: not tested, no arm has the setting enable_telepathy"]


def test_a_setting_that_an_arm_lacks_is_refused(base: Base, build: Build) -> None:
    (spec,) = specs(base, "a=")
    series = dataclasses.replace(
        spec.series, features=(Feature("x", "x", off=(("enable_telepathy", "off"),), manifest="m.toml"),)
    )
    message = "m.toml: feature x: off: arm a has no setting 'enable_telepathy'; correct its name"
    with pytest.raises(SourceError, match=message), open_arms([dataclasses.replace(spec, series=series)], silent):
        pass


def test_two_arms_of_one_build_are_refused(base: Base) -> None:
    with pytest.raises(BuildError, match="arms a and b are the same build"), open_arms(specs(base, "a=", "b="), silent):
        pass


def test_two_arms_of_one_name_are_refused(base: Base) -> None:
    with pytest.raises(SourceError, match="two arms have the same name"), open_arms(specs(base, "a=", "a="), silent):
        pass


def test_arms_that_differ_in_flags_are_refused(build: Build) -> None:
    other = dataclasses.replace(build, key="other", configure=(*build.configure, "-Dcassert=false"))
    with pytest.raises(BuildError, match="a and b differ in configure flags: -Dcassert=false"):
        require_comparable({"a": build, "b": other}, allow_same_build=False)


def test_arms_that_differ_in_options_of_initdb_are_refused(base: Base, build: Build) -> None:
    with open_arms(specs(base, "a=", "b="), silent, allow_same_build=True) as arms:
        arms[1].cluster.stop()
        tool = build.bindir / "pg_checksums"
        arms[1].cluster.run(tool, "--enable", "--pgdata", str(arms[1].cluster.data))
        arms[1].cluster.start()
        with pytest.raises(ServerError, match=r"a and b differ in data_checksums \(off, on\), set by initdb"):
            require_same_initdb(arms)

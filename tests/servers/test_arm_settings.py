"""Tests of the settings of arms: mistakes, precedence, and what servers refuse."""

from dataclasses import replace

import psycopg
import pytest

from fuzz.documents import from_data, to_data
from fuzz.errors import SourceError
from fuzz.servers.arm import fresh_servers, open_arms, parse_arm, session_defaults, settings_json
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.arm_settings import (
    ArmSetting,
    configuration,
    known_settings,
    require_accepted,
    settings_by_arm,
)
from fuzz.servers.base import Base
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster
from fuzz.servers.flavor import FLAVORS

_UNREADABLE = "give NAME=VALUE or ARM:NAME=VALUE"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("work_mem", f"cannot read --set 'work_mem'; {_UNREADABLE}"),
        ("on:work_mem", f"cannot read --set 'on:work_mem'; {_UNREADABLE}"),
        ("=1", f"cannot read --set '=1'; {_UNREADABLE}"),
        ("on:=1", f"cannot read --set 'on:=1'; {_UNREADABLE}"),
        ("work-mem=1", f"cannot read --set 'work-mem=1'; {_UNREADABLE}"),
        ("a\nb=1", _UNREADABLE),
        ("Port=1", "--set Port=1: pgduel itself sets Port on all arms; leave it out"),
        ("on:search_path=x", "pgduel itself sets search_path on all arms"),
    ],
)
def test_text_that_is_no_setting_is_refused(text: str, message: str) -> None:
    with pytest.raises(SourceError) as refused:
        ArmOptions.given(None, None, None, None, None, "assert", None, [text])
    assert message in str(refused.value)


def test_a_value_may_have_any_characters() -> None:
    assert ArmSetting.parse("a:b.c=x=y:z 'q'\n\\") == ArmSetting("a", "b.c", "x=y:z 'q'\n\\")
    assert ArmSetting.parse("b=x:y=z") == ArmSetting(None, "b", "x:y=z")
    assert ArmSetting.parse("b=") == ArmSetting(None, "b", "")


def test_a_setting_of_an_arm_replaces_one_of_all_arms() -> None:
    given = ("off:Work_Mem=1MB", "work_mem=2MB", "jit=on", "on:jit=off", "on:jit=on")
    assert settings_by_arm(given, ("off", "on")) == {
        "off": (("jit", "on"), ("Work_Mem", "1MB")),
        "on": (("jit", "on"), ("work_mem", "2MB")),
    }


def test_an_unknown_arm_is_refused_before_its_base_is_read() -> None:
    options = ArmOptions.given("nowhere", None, None, None, ["off=", "on="], "assert", None, ["of:jit=on"])
    with pytest.raises(SourceError, match=r"^--set of:jit=on: no arm is called 'of'; give one of off, on$"):
        options.specs(print)


def test_settings_are_stored_and_printed() -> None:
    options = ArmOptions.given(None, None, None, None, ["a=", "b="], "assert", None, ["b:DateStyle=German, DMY"])
    assert options.command_line() == " --arm a= --arm b= --set 'b:DateStyle=German, DMY'"
    assert from_data(to_data(options), ArmOptions) == options
    older = {key: value for key, value in to_data(options).items() if key != "settings"}
    assert from_data(older, ArmOptions).settings == ()


def test_preloaded_libraries_are_added_to_those_of_pgduel() -> None:
    given = (("jit", "on"), ("shared_preload_libraries", "auto_explain"))
    assert configuration(given) == {"jit": "on", "shared_preload_libraries": "pgduel_probe,auto_explain"}
    bench = {"jit": "off", "shared_preload_libraries": ""}
    assert configuration(given, bench) == {"jit": "on", "shared_preload_libraries": "auto_explain"}
    assert configuration((), bench) == bench


@pytest.mark.servers
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("enable_telepathy", "on", 'unrecognized configuration parameter "enable_telepathy"; give it to the arms that'),
        ("bytea_output", "esc", 'invalid value for parameter "bytea_output": "esc"; Available values: escape, hex; co'),
        ("block_size", "1", 'parameter "block_size" cannot be changed; correct it'),
        ("shared_buffers", "1kB", "is outside the valid range"),
    ],
)
def test_the_error_has_the_servers_words(build: Build, name: str, value: str, message: str) -> None:
    with pytest.raises(SourceError) as refused:
        require_accepted(build, "off", ((name, value),))
    assert f"--set {name}={value}: the server of arm off refuses it: " in str(refused.value)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.servers
def test_settings_that_a_build_lacks_are_left_out(build: Build) -> None:
    others = (("bytea_output", "escape"), ("an_extension.size", "1"), ("wal_level", "logical"))
    assert known_settings(build, (*others, ("enable_telepathy", "on"))) == others


def shown(cluster: Cluster, name: str) -> str:
    with psycopg.connect(**cluster.connect_kwargs) as connection:  # type: ignore[arg-type]  # host is a str
        ((value,),) = connection.execute(f"SHOW {name}".encode()).fetchall()
    return str(value)


@pytest.mark.servers
@pytest.mark.usefixtures("build")
def test_servers_have_the_settings_of_their_arms(base: Base) -> None:
    settings = settings_by_arm(["b:wal_level=logical", "b:my.text=x'\n\\", "geqo=off"], ["a", "b"])
    parsed = [parse_arm(text, base, FLAVORS["assert"], print) for text in ("a=", "b=")]
    specs = [replace(spec, settings=settings[spec.name]) for spec in parsed]
    with open_arms(specs, print) as arms, fresh_servers(arms) as fresh:  # one build, but different settings
        for first, second in (arms, fresh):
            assert [shown(each.cluster, "wal_level") for each in (first, second)] == ["replica", "logical"]
            assert [shown(each.cluster, "geqo") for each in (first, second)] == ["off", "off"]
            assert shown(second.cluster, "my.text") == "x'\n\\"
        assert settings_json(arms[0]) == {"settings": ["geqo=off"]}
        assert settings_json(arms[1]) == {
            "settings": ["geqo=off", "my.text=x'\n\\"],
            "server_settings": ["wal_level=logical"],
        }
        assert session_defaults(arms[1]) == {"geqo": "on"}
        assert arms[0].planner != arms[1].planner

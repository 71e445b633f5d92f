"""Tests of arms that are one build with different settings: a difference is found, resumed, replayed and not blamed."""

from pathlib import Path

import pytest

from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster
from tests.cli.command import EQUALS, Command, json_of

pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

ARMS = (*EQUALS, "--set", "b:extra_float_digits=0")


def test_a_difference_by_settings_is_stored_with_them(pgduel: Command, tmp_path: Path, build: Build) -> None:
    sql, file = tmp_path / "floats.sql", tmp_path / "result.json"
    sql.write_text("SELECT 0.1::float8 + 0.2::float8 AS sum;\n")
    first = json_of(pgduel("fuzz", *ARMS, "--sql", sql, "--cases", "1", "--json", file), file, 1)
    assert "settings" not in first["arms"]["a"]
    assert first["arms"]["b"]["settings"] == ["extra_float_digits=0"]
    (found, *_) = first["findings"]
    assert found["oracle"] == "result"
    resumed = json_of(pgduel("fuzz", "--resume", "1", "--cases", "2", "--json", file), file, 1)
    assert (resumed["cases"], resumed["arms"]) == (2, first["arms"])
    replayed = pgduel("replay", found["fingerprint"])
    assert f"It still differs: finding {found['fingerprint']}." in replayed.out
    equal = pgduel("replay", found["fingerprint"], "--set", "b:extra_float_digits=1")
    assert (equal.status, "It does not differ." in equal.out) == (0, True), equal.err
    blamed = pgduel("blame", found["fingerprint"])
    assert "no patch, both arms are one build and differ only in settings (a: none; b: extra_float_" in blamed.out
    script = Path(found["reproducer"]).read_text()
    assert "--set b:extra_float_digits=0" in script
    assert "settings extra_float_digits=0" in script
    printed = [output(build, script, options) for options in ("", "-c extra_float_digits=0")]
    assert "0.30000000000000004" in printed[0]
    assert "0.30000000000000004" not in printed[1]


def output(build: Build, script: str, options: str) -> str:
    """Return psql's output of the script on a new server."""
    with Cluster(build, "psql") as cluster:
        server = ("-h", str(cluster.socket_dir), "-p", str(cluster.port), "-d", "postgres")
        done = cluster.run(build.bindir / "psql", "-X", *server, stdin=script, variables={"PGOPTIONS": options})
    return done.stdout


def test_a_setting_that_the_server_refuses_ends_with_its_words(pgduel: Command) -> None:
    ended = pgduel("fuzz", *EQUALS, "--set", "b:extra_float_digits=many", "--cases", "1")
    assert ended.status == 2
    assert ended.err == (
        "pgduel: --set extra_float_digits=many: the server of arm b refuses it: invalid value for parameter "
        '"extra_float_digits": "many"; correct it\n'
    )


def test_a_setting_under_which_sessions_fail_ends_with_the_servers_words(pgduel: Command) -> None:
    ended = pgduel("shell", "upstream", "--set", "session_preload_libraries=absent", "-c", "SELECT 1")
    assert ended.status == 2
    assert ended.err == (
        "pgduel: the server of arm upstream starts, but its sessions fail: "
        'FATAL:  could not access file "absent": No such file or directory\n'
    )

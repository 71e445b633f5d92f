"""Tests of the account of servers: concurrent callers create it once."""

import os
import pwd
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fuzz import workdir
from fuzz.servers import account

SLOW_USERADD = """#!/bin/sh
sleep 0.3
echo made >> {made}
"""


def test_one_of_many_concurrent_callers_creates_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = tmp_path / "made"
    useradd = tmp_path / "useradd"
    useradd.write_text(SLOW_USERADD.format(made=made))
    useradd.chmod(0o755)
    user = pwd.struct_passwd(("pgduel", "x", 999, 999, "", "/nonexistent", "/bin/false"))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.delenv("PGDUEL_USER", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "setgroups", lambda _: None)  # needs root
    monkeypatch.setattr(workdir, "root", lambda: tmp_path)
    monkeypatch.setattr(account, "_look_up", lambda _: user if made.exists() else None)
    with ThreadPoolExecutor(3) as pool:
        accounts = list(pool.map(lambda _: account.server_account(), range(3)))
    assert accounts == 3 * [account.Account("pgduel", 999, 999)]
    assert made.read_text() == "made\n"

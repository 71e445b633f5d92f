"""Tests of the directories and files that pgduel writes."""

from pathlib import Path

import pytest

from fuzz import workdir
from fuzz.errors import StorageError


def test_pgduel_home_has_all_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDUEL_HOME", str(tmp_path))
    monkeypatch.delenv("PGDUEL_CAMPAIGNS", raising=False)
    places = (workdir.clusters(), workdir.clusters_on_disk(), workdir.builds(), workdir.campaigns(), workdir.logs())
    assert all(place.is_relative_to(tmp_path) for place in places)


def test_servers_are_on_disk_if_memory_is_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGDUEL_HOME", raising=False)
    monkeypatch.setattr(workdir, "_root", lambda: tmp_path)
    monkeypatch.setattr(workdir, "_MEMORY_NEEDED", 1 << 60)
    assert workdir.clusters() == tmp_path / "clusters"


def test_a_file_is_replaced_atomically(tmp_path: Path) -> None:
    file = tmp_path / "x.sql"
    workdir.write(file, "old")
    workdir.write(file, "new")
    assert file.read_text() == "new"
    with pytest.raises(UnicodeEncodeError):
        workdir.write(file, "torn \ud800")
    assert file.read_text() == "new"
    nowhere = tmp_path / "nowhere" / "x.sql"
    with pytest.raises(StorageError, match=r"cannot write .*nowhere/x.sql \(No such file or directory\)"):
        workdir.write(nowhere, "new")


def test_the_error_about_a_full_disk_has_a_remedy() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full")
    message = r"cannot write /dev/full \(No space left on device\); make room there"
    with pytest.raises(StorageError, match=message), workdir.writing(full), full.open("w", buffering=1) as file:
        file.write("x\n")

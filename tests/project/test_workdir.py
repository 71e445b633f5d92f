"""Tests of the directories and files that pgduel writes."""

from pathlib import Path

import pytest

from fuzz import workdir
from fuzz.errors import StorageError
from tests.forking import FORKING


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


def _write(file: Path, content: str) -> None:
    for _ in range(500):
        workdir.write(file, content)


def test_processes_write_one_file_at_the_same_time(tmp_path: Path) -> None:
    file = tmp_path / "file"
    processes = [FORKING.Process(target=_write, args=(file, letter * 5000)) for letter in "ab"]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    assert file.read_text() in ("a" * 5000, "b" * 5000)
    assert list(tmp_path.iterdir()) == [file]


def test_the_error_about_a_full_disk_has_a_remedy() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full")
    message = r"cannot write /dev/full \(No space left on device\); make room there"
    with pytest.raises(StorageError, match=message), workdir.writing(full), full.open("w", buffering=1) as file:
        file.write("x\n")

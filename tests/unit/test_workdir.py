"""Where pgduel writes."""

from pathlib import Path

import pytest

from fuzz import workdir


def test_whoever_sets_a_home_has_everything_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDUEL_HOME", str(tmp_path))
    monkeypatch.delenv("PGDUEL_CAMPAIGNS", raising=False)
    places = (workdir.clusters(), workdir.clusters_on_disk(), workdir.builds(), workdir.campaigns(), workdir.logs())
    assert all(place.is_relative_to(tmp_path) for place in places)


def test_servers_stay_on_disk_where_memory_is_too_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGDUEL_HOME", raising=False)
    monkeypatch.setattr(workdir, "_root", lambda: tmp_path)
    monkeypatch.setattr(workdir, "_MEMORY_NEEDED", 1 << 60)
    assert workdir.clusters() == tmp_path / "clusters"

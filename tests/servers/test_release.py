"""Tests of downloads through a private apt configuration."""

import shutil
from pathlib import Path

import pytest

from fuzz.servers import release


@pytest.mark.skipif(not shutil.which("apt-get"), reason="no apt")
def test_the_private_update_runs_no_hooks_of_the_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Such a hook of Docker images deletes packages that another apt is about to install."""
    ran, system = tmp_path / "ran", tmp_path / "system.conf"
    system.write_text("".join(f'APT::Update::{hook}-Invoke {{ "touch {ran}"; }};\n' for hook in ("Pre", "Post")))
    monkeypatch.setenv("APT_CONFIG", str(system))
    monkeypatch.setattr(release, "_mirror", lambda: f"file:{tmp_path}/none")
    with pytest.raises(release._Unreachable):
        release._from_debian(release.RELEASES["pg17"], tmp_path, lambda _: None)
    assert not ran.exists()

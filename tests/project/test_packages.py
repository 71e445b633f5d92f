"""Tests of system packages: missing ones, and the command that installs them on each distribution."""

import platform
import shutil
import sys

import pytest

from fuzz import packages
from fuzz.errors import PgduelError

NAMED = [package for package in packages.PACKAGES if package.name in ("git", "libicu-dev", "ninja-build")]


@pytest.mark.parametrize(
    ("system", "line"),
    [
        ({"ID": "debian"}, "apt-get update && apt-get install -y --no-install-recommends git ninja-build libicu-dev"),
        ({"ID": "ubuntu", "ID_LIKE": "debian"}, "apt-get update && apt-get install -y --no-install-recommends"),
        ({"ID": "fedora"}, "dnf install -y git ninja-build libicu-devel"),
        ({"ID": "rocky", "ID_LIKE": "rhel centos fedora"}, "dnf install -y git"),
        ({"ID": "arch"}, "pacman -S --needed git ninja icu"),
        ({"ID": "other"}, "apt-get update && apt-get install -y --no-install-recommends"),
    ],
)
def test_packages_have_the_distributions_names(
    system: dict[str, str], line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: system)
    assert packages.install_line(NAMED).startswith(line)


def test_without_dpkg_missing_programs_are_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    present = {"gcc", "ld", "bison", "perl", "git", "meson", "ninja"}
    monkeypatch.setattr(shutil, "which", lambda name: name if name in present else None)
    names = {package.name for package in packages.missing_packages(with_clang=True)}
    assert names - {"python3-venv"} == {"pkg-config", "flex", "ccache", "libicu-dev", "libreadline-dev"}


def test_programs_without_their_package_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "_installed", lambda: {p.name for p in packages.PACKAGES} - {"git", "sqlsmith"})
    monkeypatch.setattr(shutil, "which", lambda name: name)
    packages.require_programs()
    monkeypatch.setattr(shutil, "which", lambda name: "" if name == "git" else name)
    with pytest.raises(PgduelError, match=r"system packages are missing; as root, run: .* git$"):
        packages.require_programs()


def test_another_system_than_linux_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(PgduelError, match="brew install lima"):
        packages.require_programs()

"""Base: a PostgreSQL source tree from any place, stored in git under its tree hash."""

import bz2
import gzip
import hashlib
import lzma
import os
import re
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzz import workdir
from fuzz.errors import SourceError, first_line, text_of
from fuzz.servers import Report, git
from fuzz.servers.known_good import major_of
from fuzz.servers.release import RELEASES, download

_VERSION = re.compile(r"project\(\s*'postgresql'.*?version:\s*'([^']+)'", re.DOTALL)
# Python decompresses, so no program for it is needed.
_ARCHIVES: dict[str, Callable[..., Any]] = {
    ".tar": open,
    ".tar.gz": gzip.open,
    ".tgz": gzip.open,
    ".tar.bz2": bz2.open,
    ".tar.xz": lzma.open,
}
_BUFFER = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Base:
    """A source tree. `tree` is its git hash in the repository of trees. `sha256` is its archive's, or empty."""

    name: str  # the user's name for it
    version: str  # 17.11, 18beta1, 19devel
    sha256: str
    tree: str

    @property
    def major(self) -> int:
        """Return the major version."""
        return major_of(self.version)


def resolve_base(spec: str, report: Report, *, refresh: bool = False) -> Base:
    """Store and return the base that `spec` names.

    `spec` is pg17 or pg18 (newest minor release; a download is kept until `refresh`), a directory, an archive, or
    CHECKOUT@REVISION. Raises SourceError.
    """
    if spec in RELEASES:
        with workdir.locked(workdir.downloads() / spec):
            archive = download(spec, report, refresh=refresh)
        return _from_archive(spec, archive, report)
    path = Path(os.path.expanduser(spec))
    if path.is_dir():
        # before git stores all files of a mistaken directory, such as a home
        _version(spec, text_of(path / "meson.build", SourceError, "give the source of PostgreSQL 16 or newer"))
        report(f"reading {path}")
        return _checked(spec, git.import_directory(path))
    if path.is_file():
        return _from_archive(spec, path, report)
    checkout, at, revision = spec.rpartition("@")
    if at and Path(os.path.expanduser(checkout)).is_dir():
        report(f"reading {revision} of {checkout}")
        return _checked(spec, git.import_revision(Path(os.path.expanduser(checkout)), revision))
    raise SourceError(
        f"no source found for {spec!r}; give {', '.join(RELEASES)}, a directory, a .tar archive, or CHECKOUT@REVISION"
    )


def _from_archive(name: str, archive: Path, report: Report) -> Base:
    """Return the base of an archive, imported on first use. A note beside the repository has its hash."""
    if not archive.name.endswith(tuple(_ARCHIVES)):
        raise SourceError(f"cannot unpack {archive}; give one of the types {', '.join(_ARCHIVES)}")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    note = git.repository() / "info" / f"archive-{digest}"
    with workdir.locked(note):
        if not note.exists():
            report(f"unpacking {archive.name}")
            note.write_text(_unpacked(archive, workdir.downloads() / f"unpacking-{digest[:12]}"))
    return _checked(name, note.read_text().strip(), digest)


def _unpacked(archive: Path, directory: Path) -> str:
    """Return the tree of an archive's files. A killed run may have left `directory`."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    _extract(archive, directory)
    tops = [directory, *(entry for entry in directory.iterdir() if entry.is_dir())]
    top = next((entry for entry in tops if (entry / "meson.build").exists()), tops[-1])
    tree = git.import_directory(top)
    shutil.rmtree(directory)
    return tree


def _extract(archive: Path, directory: Path) -> None:
    """Write an archive's files into a directory. Raises SourceError."""
    decompress = next(opening for suffix, opening in _ARCHIVES.items() if archive.name.endswith(suffix))
    command = ["tar", "-xf", "-", "-C", str(directory), "--no-same-owner"]
    damage = ""
    with tempfile.TemporaryFile() as messages:
        tar = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=messages)
        try:
            with tar, decompress(archive, "rb") as content:
                shutil.copyfileobj(content, tar.stdin or messages, _BUFFER)
        except BrokenPipeError:
            pass  # tar ended, and its message has the reason
        except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
            damage = str(error)
        messages.seek(0)
        if damage or tar.returncode:
            raise SourceError(f"cannot unpack {archive}: {damage or first_line(messages.read().decode())}")


def _checked(name: str, tree: str, sha256: str = "") -> Base:
    return Base(name, _version(name, git.show(tree, "meson.build") or ""), sha256, tree)


def _version(name: str, build_file: str) -> str:
    found = _VERSION.search(build_file)
    if not found:
        raise SourceError(f"{name} is no PostgreSQL 16 or newer: it has no meson.build with project('postgresql')")
    return found[1]

"""Released sources by name: Debian's newest, PostgreSQL's newest, or the known-good one from Debian's pool.

The Debian mirror comes from this machine's apt configuration, because no other one may be reachable.
"""

import hashlib
import json
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fuzz import workdir
from fuzz.errors import SourceError, last_line
from fuzz.servers import Report
from fuzz.servers.known_good import known_archive

_DEBIAN = "http://deb.debian.org/debian"
_POSTGRESQL = "https://ftp.postgresql.org/pub/source"
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_APT_HELPER = Path("/usr/lib/apt/apt-helper")
_TIMEOUT = 60  # seconds without any data
# Hooks act on the system. Docker images have one that deletes downloaded packages, which another apt may be installing.
_NO_HOOKS = "".join(f"#clear APT::Update::{hook};\n" for hook in ("Pre-Invoke", "Post-Invoke", "Post-Invoke-Success"))


@dataclass(frozen=True, slots=True)
class Release:
    """A major version: Debian's name of its source, and the suite with its newest release."""

    package: str
    suite: str
    major: int


RELEASES = {
    "pg17": Release("postgresql-17", "trixie", 17),
    "pg18": Release("postgresql-18", "sid", 18),
}
DEFAULT = "pg17"


def download(name: str, report: Report, *, refresh: bool = False) -> Path:
    """Return the archive of the newest reachable minor release. Raises SourceError if none is stored or reachable."""
    note = workdir.downloads() / f"{name}.json"
    if note.exists() and not refresh:
        kept = workdir.downloads() / str(json.loads(note.read_text())["archive"])
        if kept.exists():
            return kept
    release = RELEASES[name]
    failures = []
    for fetch in (_from_debian, _from_postgresql, _known_good):
        with tempfile.TemporaryDirectory(prefix="fetch-", dir=workdir.downloads()) as directory:
            try:
                archive, origin = fetch(release, Path(directory), report)
            except (OSError, _Unreachable) as error:
                failures.append(str(error))
                continue
            kept = workdir.downloads() / archive.name
            archive.replace(kept)
        digest = hashlib.sha256(kept.read_bytes()).hexdigest()
        note.write_text(json.dumps({"archive": kept.name, "sha256": digest, "origin": origin}, indent=1))
        return kept
    raise SourceError(f"cannot download {name}: {'; '.join(failures)}. give --base a directory or an archive instead")


class _Unreachable(Exception):
    """A place without the source, and the reason."""


def _from_debian(release: Release, directory: Path, report: Report) -> tuple[Path, str]:
    """Fetch a Debian source package through a private apt configuration; the system's own does not change."""
    if not shutil.which("apt-get") or not Path(_KEYRING).exists():
        raise _Unreachable("no apt with Debian's keys on this machine")
    mirror = _mirror()
    report(f"downloading {release.package} from {mirror} {release.suite}")
    for part in ("lists/partial", "cache/archives/partial"):
        (directory / part).mkdir(parents=True)
    sources = directory / "sources.list"
    sources.write_text(f"deb-src [signed-by={_KEYRING}] {mirror} {release.suite} main\n")
    options = {
        "Dir::Etc::SourceList": sources,
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": directory / "lists",
        "Dir::Cache": directory / "cache",
        "Acquire::Check-Valid-Until": "false",
        "Acquire::Languages": "none",
    }
    no_hooks = directory / "apt.conf"
    no_hooks.write_text(_NO_HOOKS)
    for command in (["update"], ["source", "--download-only", "--tar-only", release.package]):
        _apt(["apt-get", *command, "-qq", "-c", str(no_hooks)], directory, options)
    archives = sorted(directory.glob(f"{release.package}_*.orig.tar.*"))
    if not archives:
        raise _Unreachable(f"no {release.package} in {mirror} {release.suite}")
    return archives[-1], f"{mirror} {release.suite}"


def _apt(command: Sequence[str], directory: Path, options: Mapping[str, object]) -> None:
    """Run a program of apt in a directory. Raises _Unreachable."""
    always = {"APT::Sandbox::User": "root", "Acquire::Retries": "2", "Acquire::http::Timeout": _TIMEOUT}
    given = [part for key, value in {**options, **always}.items() for part in ("-o", f"{key}={value}")]
    done = subprocess.run([*command, *given], cwd=directory, capture_output=True, text=True)
    if done.returncode:
        raise _Unreachable(f"{Path(command[0]).name} {command[1]}: {last_line(done.stderr)}")


def _mirror() -> str:
    """Return the Debian mirror of this machine's apt configuration, because no other one may be reachable."""
    done = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(ORIGIN)|$(REPO_URI)", "Created-By: Packages"],
        capture_output=True,
        text=True,
    )
    lines = (line.partition("|") for line in done.stdout.splitlines())
    uris = [uri.rstrip("/") for origin, _, uri in lines if origin == "Debian" and "security" not in uri]
    return uris[0] if uris else _DEBIAN


def _from_postgresql(release: Release, directory: Path, report: Report) -> tuple[Path, str]:
    report(f"downloading PostgreSQL {release.major} from {_POSTGRESQL}")
    minors = re.findall(rf"\bv{release.major}\.(\d+)/", _get(f"{_POSTGRESQL}/").decode(errors="replace"))
    if not minors:
        raise _Unreachable(f"{_POSTGRESQL} lists no release of {release.major}")
    version = f"{release.major}.{max(map(int, minors))}"
    name = f"postgresql-{version}.tar.bz2"
    content = _get(f"{_POSTGRESQL}/v{version}/{name}")
    announced = _get(f"{_POSTGRESQL}/v{version}/{name}.sha256").decode().split()[0]
    if hashlib.sha256(content).hexdigest() != announced:
        raise _Unreachable(f"{name} was damaged during the download")
    (directory / name).write_bytes(content)
    return directory / name, _POSTGRESQL


def _known_good(release: Release, directory: Path, report: Report) -> tuple[Path, str]:
    """Fetch the known-good version from Debian's pool.

    During a mirror's update, its index can name a version that its pool lacks. Older versions stay in the pool.
    """
    known = known_archive(release.major)
    if not known or not _APT_HELPER.exists():
        raise _Unreachable("no known-good version recorded, or no apt on this machine")
    version, digest = known
    archive = directory / f"{release.package}_{version}.orig.tar.bz2"
    url = f"{_mirror()}/pool/main/p/{release.package}/{archive.name}"
    report(f"the newest {release.package} cannot be downloaded; downloading {version} from {url}")
    _apt([str(_APT_HELPER), "download-file", url, archive.name, f"SHA256:{digest}"], directory, {})
    return archive, url


def _get(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:  # the scheme is https, above
            content: bytes = answer.read()
            return content
    except urllib.error.URLError as error:
        raise _Unreachable(f"{url}: {error.reason}") from error

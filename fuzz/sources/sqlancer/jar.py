"""Location of SQLancer: a jar that the user names, or the artifact that Maven downloaded to the cache."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from filelock import FileLock

from fuzz import workdir
from fuzz.errors import CaseError
from fuzz.sources.sqlancer.options import ARTIFACT, COORDINATES, GROUP, VERSION

VARIABLE: Final = "PGDUEL_SQLANCER_JAR"
_SECONDS: Final = 900  # for Maven, which downloads about 100 MB
_PROJECT: Final = f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>pgduel</groupId><artifactId>pgduel</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>{GROUP}</groupId><artifactId>{ARTIFACT}</artifactId><version>{VERSION}</version></dependency>
  </dependencies>
</project>
"""


def lacking(jar: str | None) -> str:
    """Return a line about a missing prerequisite of SQLancer, or "". Downloads nothing."""
    if jar is not None and not Path(jar).is_file():
        return f"there is no jar {jar}; {VARIABLE} or --sqlancer-jar names SQLancer's"
    if not shutil.which("java"):
        return "there is no Java; as root, run: apt-get install default-jre-headless"
    if jar is not None or _fetched().is_dir():
        return ""
    return f"its jar is not there: name it in {VARIABLE}, or run {workdir.COMMAND} sqlancer, which has Maven fetch it"


def class_path(jar: str | None) -> str:
    """Return Java's class path. Raises CaseError if there is no jar."""
    if why := lacking(jar):
        raise CaseError(f"SQLancer cannot run: {why}")
    return jar or str(_fetched() / "*")


def fetch() -> None:
    """Download SQLancer and its dependencies with Maven, unless they are in the cache. Raises CaseError."""
    directory = _fetched()
    with FileLock(f"{directory}.lock"):
        if directory.is_dir():
            return
        draft = directory.with_suffix(".new")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        (draft / "pom.xml").write_text(_PROJECT)
        _copy_dependencies(draft)
        os.replace(draft, directory)


def _copy_dependencies(draft: Path) -> None:
    command = ["mvn", "--quiet", "--batch-mode", "dependency:copy-dependencies", f"-DoutputDirectory={draft}"]
    otherwise = f"give the jar itself: --sqlancer-jar PATH, or {VARIABLE}"
    try:
        done = subprocess.run(command, cwd=draft, capture_output=True, text=True, timeout=_SECONDS)
    except FileNotFoundError as error:
        raise CaseError(f"there is no Maven to fetch {COORDINATES}; install it, or {otherwise}") from error
    except subprocess.TimeoutExpired as error:
        raise CaseError(f"Maven did not fetch {COORDINATES} in {_SECONDS} s; {otherwise}") from error
    if done.returncode:
        reasons = [line for line in (done.stdout + done.stderr).splitlines() if "Could not" in line] or [
            "no reason given"
        ]
        raise CaseError(
            f"Maven cannot fetch {COORDINATES} ({reasons[0].rpartition('Could not')[2].strip()}); {otherwise}"
        )


def _fetched() -> Path:
    return workdir.downloads() / f"{ARTIFACT}-{VERSION}"

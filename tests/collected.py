"""Names of the tests that have a marker, as pytest collects them."""

import subprocess
import sys

from fuzz import workdir


def marked_tests(marker: str) -> frozenset[str]:
    """Return the names of these tests. Other files than those that mention the marker have none, and are not read."""
    files = [path for path in (workdir.PROJECT / "tests").rglob("test_*.py") if f"mark.{marker}" in path.read_text()]
    without = ("-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "--quiet", *without, "-m", marker, *sorted(files)],
        cwd=workdir.PROJECT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return frozenset(line for line in done.stdout.splitlines() if "::" in line)

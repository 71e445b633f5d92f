"""From a base and a series of patches to running servers: source, build, cluster, arm."""

from collections.abc import Callable

Report = Callable[[str], None]  # takes one line of progress

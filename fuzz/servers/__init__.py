"""Servers: from a base and a series of patches to source, build, cluster and arm."""

from collections.abc import Callable

Report = Callable[[str], None]  # receives one line of progress

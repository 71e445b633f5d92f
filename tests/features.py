"""The features of the shipped series, as its manifest describes them."""

from typing import Final

from fuzz import workdir
from fuzz.servers.manifest import read_manifest

SHIPPED: Final = read_manifest(workdir.PROJECT / "patches" / "pg17" / "optimizations" / "manifest.toml").features

"""A digest of pgduel's code, on which the cases of generators and the verdicts of oracles depend."""

import hashlib
from functools import cache
from typing import Final

from fuzz import workdir

_PARTS: Final = ("fuzz", "oracles")  # directories of this code


@cache
def code_digest() -> str:
    """Return the digest. Machines that share a campaign must have the same one."""
    digest = hashlib.sha256()
    for part in _PARTS:
        for path in sorted((workdir.PROJECT / part).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                digest.update(f"{path.relative_to(workdir.PROJECT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]

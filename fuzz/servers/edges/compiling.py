"""Compiler and linker options of builds that count edges, and the files that these options name."""

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Final

from filelock import FileLock

from fuzz import workdir
from fuzz.errors import BuildError, first_line
from fuzz.servers.account import server_account

_HERE: Final = Path(__file__).parent
_LIST, _SCRIPT, _SOURCE = (_HERE / name for name in ("instrumented.txt", "aligned.ld", "regions.c"))
_COUNTED: Final = "-fsanitize-coverage=inline-8bit-counters,pc-table"
_WITHOUT_RUNTIME: Final = "-fno-sanitize-link-runtime"  # regions.c replaces the sanitizers' runtime library
# That of AddressSanitizer has empty functions of the same names. The linker replaces them if it needs another symbol of
# the archive.
_BESIDE_RUNTIME: Final = "-Wl,-u,pgduel_share_counters"


def edges_digest() -> str:
    """Return a digest of everything that decides which edges a build counts, and how."""
    digest = hashlib.sha256(f"{_COUNTED} {_WITHOUT_RUNTIME}".encode())
    for file in (_LIST, _SCRIPT, _SOURCE):
        digest.update(f"\0{file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def edge_options(compiler: str, *, sanitized: bool = False) -> tuple[str, str]:
    """Return the options of compiler and linker, with their files ready. Raises BuildError.

    A sanitized program has the runtime library of its sanitizers.

    Their directory is in the cache, because the account of servers may lack access to the checkout. Its name has the
    digest, because ccache does not read a list that an option names.
    """
    home = workdir.builds() / f"edges-{edges_digest()}"
    archive = home / "libregions.a"
    with FileLock(f"{home}.lock"):
        if not archive.exists():
            _make(home, archive, compiler)
    listed, script = home / _LIST.name, home / _SCRIPT.name
    compiling = f"{_COUNTED} -fsanitize-coverage-allowlist={listed}"
    linking = f"-Wl,-T,{script} {archive}"
    return (compiling, f"{_BESIDE_RUNTIME} {linking}") if sanitized else (f"{compiling} {_WITHOUT_RUNTIME}", linking)


def _make(home: Path, archive: Path, compiler: str) -> None:
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    for file in (_LIST, _SCRIPT):
        shutil.copyfile(file, home / file.name)
    made, draft = home / "regions.o", archive.with_suffix(".draft")
    for command in (
        [compiler, "-std=gnu99", "-O2", "-g", "-fPIC", "-Wall", "-Werror", "-c", str(_SOURCE), "-o", str(made)],
        ["ar", "rcs", str(draft), str(made)],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise BuildError(f"cannot compile {_SOURCE.name}: {first_line(done.stderr)}")
    server_account().require_entry(home)
    draft.replace(archive)

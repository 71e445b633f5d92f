"""Harnesses in the server's own process: libFuzzer as a module of a standalone backend, which forks for each input.

The compiled harness is a directory with the module, a data directory with the scene, and a script. The script starts a
standalone backend on a copy of the data, with the arguments of libFuzzer.
"""

import platform
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fuzz.errors import SHOWN, BuildError, last_line
from fuzz.servers.account import captured, server_account
from fuzz.servers.build import Build
from fuzz.servers.cluster import fixed_addresses
from fuzz.servers.compile import compile_file, first_fault
from fuzz.servers.edges.counters import layout_in
from fuzz.servers.modules import server_headers
from fuzz.servers.template import copy_data, template

SCENE: Final = "scene.sql"  # statements of the data directory, with an empty line after each
WARM_UP: Final = "warm_up.sql"  # statements before the first fork, a line each, so that no fork reads from the disk
_FLAGS: Final = (
    *("-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-fPIC", "-fno-strict-aliasing", "-fwrapv", "-Wall", "-Werror"),
    "-ffile-compilation-dir=.",
)
_LIBFUZZER: Final = f"libclang_rt.fuzzer_no_main-{platform.machine()}.a"
# The server has functions of the same names as libFuzzer, so the module must prefer its own.
_LINKING: Final = ("-shared", "-Wl,-Bsymbolic", "-lstdc++", "-lm", "-pthread")
_SETTINGS: Final = {
    "exit_on_error": "on",  # by default, a standalone backend continues
    "huge_pages": "off",
    "log_min_messages": "warning",
    "max_connections": "10",
    "shared_buffers": "32MB",  # more than there are data: a fork evicts nothing
    "shared_memory_type": "mmap",
}
# Forks free little, and end soon. A large quarantine would only make them touch more memory.
_SANITIZERS: Final = "detect_leaks=0:detect_stack_use_after_return=0:quarantine_size_mb=1:malloc_context_size=8"
_OTHER_DATABASES: Final = ("1", "4")  # template1 and template0, which the copies do not need
_SECONDS: Final = 300.0
_SCRIPT: Final = """\
#!/bin/sh
# libFuzzer in a standalone backend
data=$(mktemp -d) && cp --archive --reflink=auto --sparse=always {data}/. "$data" || exit
PGDUEL_ARGUMENTS=$(printf '%s\\n' "$0" "$@")
ASAN_OPTIONS={sanitizers} LC_ALL=C TZ=UTC
export PGDUEL_ARGUMENTS ASAN_OPTIONS LC_ALL TZ
exec {command} -D "$data" postgres < {statements}
"""


def compile_in_process(build: Build, program: Path, sources: Sequence[str]) -> None:
    """Create a harness from C files in `program.parent`, the SQL scripts beside the first one, and a whole build.

    Raises BuildError, ServerError.
    """
    home = program.parent
    scripts = (home / sources[0]).parent
    module = home / f"{program.name}.so"
    _compile(build, module, sources)
    _create_data(build, home / "data", (scripts / SCENE).read_text() + _function(module))
    statements = home / WARM_UP
    size = layout_in((build.bindir / "postgres",)).size
    statements.write_text(f"{(scripts / WARM_UP).read_text()}SELECT pgduel_fuzz({size})\n")
    draft = home / "script"
    draft.write_text(
        _SCRIPT.format(
            data=shlex.quote(str(home / "data")),
            sanitizers=_SANITIZERS,
            command=shlex.join([*fixed_addresses(), *_standalone(build)]),
            statements=shlex.quote(str(statements)),
        )
    )
    draft.chmod(0o755)
    draft.replace(program)


def _compile(build: Build, module: Path, sources: Sequence[str]) -> None:
    compiler = build.flavor.compiler
    found = subprocess.run([compiler, f"--print-file-name={_LIBFUZZER}"], capture_output=True, text=True, check=True)
    libfuzzer = found.stdout.strip()
    home = module.parent
    includes = [f"-I{place}" for place in ((home / sources[0]).parents[1], *server_headers(build))]
    flags = [*_FLAGS, *shlex.split(build.flavor.compiler_flags), *includes]
    archive = ["-Wl,--whole-archive", libfuzzer, "-Wl,--no-whole-archive"]
    done = compile_file([compiler, *flags, *sources, *archive, *_LINKING], module, home)
    if done.returncode:
        raise BuildError(f"the libFuzzer harness {module.name} does not compile: {first_fault(done.stderr)}")


def _standalone(build: Build) -> list[str]:
    settings = [f"--{name}={value}" for name, value in _SETTINGS.items()]
    return [str(build.bindir / "postgres"), "--single", "-F", *settings]


def _function(module: Path) -> str:
    return f"CREATE FUNCTION pgduel_fuzz(int) RETURNS void STRICT LANGUAGE c AS $${module}$$;\n\n"


def _create_data(build: Build, data: Path, sql: str) -> None:
    """Create a data directory with a scene. Raises BuildError, ServerError."""
    account = server_account()
    copy_data(template(build, account), account, data)
    done = captured(
        [*_standalone(build), "-j", "-D", data, "postgres"],
        input=sql.encode(),
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"} | build.flavor.environment,
        timeout=_SECONDS,
    )
    if done.returncode:
        raise BuildError(f"the scene of a harness fails in build {build.key}: {last_line(done.stderr)[:SHOWN]}")
    with account.file_access():
        for database in _OTHER_DATABASES:
            shutil.rmtree(data / "base" / database)

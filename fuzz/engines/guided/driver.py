"""The driver: a process of libFuzzer that hands out inputs, and sees the edges that each of them reached."""

import hashlib
import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import numpy as np
import psutil
from filelock import FileLock

from fuzz import workdir
from fuzz.engines.guided.inputs import LONGEST
from fuzz.engines.libfuzzer.build import CLANG
from fuzz.errors import BuildError, ServerError, first_line, last_line
from fuzz.servers.compile import compile_file
from fuzz.servers.edges.counters import Layout

_SOURCE: Final = Path(__file__).with_name("driver.c")
_FLAGS: Final = ("-std=gnu11", "-O2", "-g", "-Wall", "-Werror")
_LINKING: Final = "-fsanitize=fuzzer"
_KEPT, _DISCARDED = b"k", b"d"
_EXIT_TIMEOUT: Final = 1.0  # seconds in which it may end by itself
_LENGTH: Final = struct.Struct("=I")
_OPTIONS: Final = (
    "-entropic=0",  # its bookkeeping costs more than cases, with so many edges
    # How often an edge is taken follows from numbers of rows, and from chance. With it, nearly each input is new.
    "-use_counters=0",
    "-len_control=0",  # a short input is a trivial case
    f"-max_len={LONGEST}",
    "-print_funcs=0",
    "-print_pcs=0",
    *("-timeout=0", "-report_slow_units=1000000", "-rss_limit_mb=0", "-malloc_limit_mb=0"),  # of the server's own cases
    *(f"-handle_{signal}=0" for signal in ("int", "term", "usr1", "usr2")),  # the worker ends it
)


class DriverEnded(ServerError):
    """A driver that ended by itself."""


def ensure_driver() -> Path:
    """Return the driver, compiled on first use. Raises BuildError."""
    if not shutil.which(CLANG):
        raise BuildError(f"--engine libfuzzer needs {CLANG}: run {workdir.COMMAND} doctor to see what to install")
    digest = hashlib.sha256(" ".join((*_FLAGS, _LINKING)).encode() + _SOURCE.read_bytes()).hexdigest()[:12]
    home = workdir.harnesses() / f"driver-{digest}"
    driver = home / "driver"
    with FileLock(f"{home}.lock"):
        if not driver.exists():
            home.mkdir(exist_ok=True)
            shutil.copyfile(_SOURCE, home / _SOURCE.name)
            # compiled without counters of its own, then linked with libFuzzer
            _compile([CLANG, *_FLAGS, "-c", str(home / _SOURCE.name)], home / "driver.o")
            _compile([CLANG, _LINKING, str(home / "driver.o")], driver)
    return driver


def _compile(command: list[str], product: Path) -> None:
    done = compile_file(command, product)
    if done.returncode:
        raise BuildError(
            f"libFuzzer's driver does not compile: {first_line(done.stderr)}; libclang-rt-19-dev may be missing"
        )


class Driver:
    """A running driver. After `next_input`, `conclude` must be called before the next one.

    It reads `corpus` first, and writes new inputs there. Before it mutates one, it asks `draw_random`, which returns
    another input instead, or no bytes. It has no code of a patch, so it runs as the caller. It gets the counters as an
    open file, because a server could replace their path by a link.
    """

    def __init__(
        self,
        counters: int,
        layout: Layout,
        corpus: Path,
        log: Path,
        *,
        seed: int,
        preferred: Sequence[int] = (),
        draw_random: Callable[[], bytes] = bytes,
    ) -> None:
        """Start the process for a descriptor of counters, with libFuzzer's own messages in `log`. Raises BuildError.

        `preferred` are edges that it prefers, each as often as it counts.
        """
        self._log = log
        self._draw_random = draw_random
        command = [str(ensure_driver()), *_OPTIONS, f"-seed={seed}", f"-artifact_prefix={corpus.parent}/", str(corpus)]
        regions = " ".join(f"{region.offset} {region.edges}" for region in layout.regions)
        with ExitStack() as own, ExitStack() as others, workdir.writing(log), log.open("ab") as messages:
            answers, self._answers = os.pipe()
            others.callback(os.close, answers)
            own.callback(os.close, self._answers)
            self._inputs, inputs = os.pipe()
            others.callback(os.close, inputs)
            own.callback(os.close, self._inputs)
            pipes = f"{answers} {inputs}"
            numbers = os.memfd_create("preferred edges")
            others.callback(os.close, numbers)
            os.write(numbers, np.array(preferred, np.uint32).tobytes())
            self._process = subprocess.Popen(
                command,
                cwd="/",
                env={
                    "PGDUEL_COUNTERS": str(counters),
                    "PGDUEL_REGIONS": regions,
                    "PGDUEL_PIPES": pipes,
                    "PGDUEL_PREFERRED": str(numbers),
                },
                stdin=subprocess.DEVNULL,
                stdout=messages,
                stderr=messages,
                pass_fds=(answers, inputs, counters, numbers),
                start_new_session=True,
            )
            self._own = own.pop_all()

    def next_input(self) -> bytes:
        """Return the next input. Raises DriverEnded."""
        while not (length := self._read_length()):
            data = self._draw_random()
            self._answer(_LENGTH.pack(len(data)) + data)
        return self._read(length)

    def _read_length(self) -> int:
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        return int(length)

    def _read(self, size: int) -> bytes:
        parts = b""
        while len(parts) < size:
            part = os.read(self._inputs, size - len(parts))
            if not part:
                self._process.wait()
                line = last_line(self._log.read_text(errors="replace"))
                raise DriverEnded(f"libFuzzer ended with status {self._process.returncode}: {line}; see {self._log}")
            parts += part
        return parts

    def conclude(self, *, keep: bool) -> None:
        """Let libFuzzer keep the input, if it reached anything new, or discard it."""
        self._answer(_KEPT if keep else _DISCARDED)

    def _answer(self, data: bytes) -> None:
        with suppress(BrokenPipeError):  # `next_input` reports the end
            os.write(self._answers, data)

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of the process, or 0 after its end, when it counts as an ended child."""
        with suppress(psutil.NoSuchProcess):
            used = psutil.Process(self._process.pid).cpu_times()
            return float(used.user + used.system)
        return 0.0

    def close(self) -> None:
        """End the process. Without its pipes, it ends by itself, after it has written the last input to the corpus."""
        self._own.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_TIMEOUT)
        self._process.kill()
        self._process.wait()

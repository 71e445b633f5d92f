"""C-Vise on the text of the script. Its test, a shell script, sends the file's name to this process and reads a result.

So a try takes only the start of a shell longer than a try of other reducers. Servers, session and oracle are the same.
"""

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import StreamRequestHandler, TCPServer
from typing import ClassVar

from fuzz.bench.reduction.reducer import CountedTest, Reducer, Task
from fuzz.errors import PgduelError, last_line
from fuzz.triage.reduction.problem import TimeUp
from fuzz.triage.reproducer.reproducer import parse
from oracles.model.case import Case

_FILE = "case.sql"
_TEST = f"""\
#!/bin/bash
exec 3<>/dev/tcp/127.0.0.1/PORT
printf '%s\\n' "$PWD/{_FILE}" >&3
read -r status <&3
exit "$status"
"""


class CVise(Reducer):
    """C-Vise without the passes for C alone, with one test at a time, like the other reducers."""

    name: ClassVar[str] = "cvise"
    program: ClassVar[str] = "cvise"

    def reduce(self, task: Task, test: CountedTest) -> Case:
        """Reduce the script's text."""
        with tempfile.TemporaryDirectory(prefix="pgduel-cvise-") as home, _served(test) as port:
            program, file = Path(home, "test"), Path(home, _FILE)
            program.write_text(_TEST.replace("PORT", str(port)))
            program.chmod(0o755)
            file.write_text(task.script, encoding="utf-8")
            _run(["cvise", "--not-c", "--n", "1", "--tidy", str(program), _FILE], home, test.until)
            return parse(file.read_text(encoding="utf-8"))


def _run(command: list[str], home: str, until: float) -> None:
    """Run a program, which keeps its best result in its file, until a time. Raises PgduelError."""
    process = subprocess.Popen(
        command, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    with process, suppress(subprocess.TimeoutExpired):
        try:
            _, errors = process.communicate(timeout=max(0.0, until - time.monotonic()))
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        if process.returncode:
            raise PgduelError(f"{command[0]} failed with exit status {process.returncode}: {last_line(errors)}")


@contextmanager
def _served(test: CountedTest) -> Iterator[int]:
    """Test files on request, one at a time, on a port of the loopback interface; yield its number.

    If a server is down, the file fails the test. The comparison detects that when it tests the result.
    """

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            passed = False
            with suppress(TimeUp, OSError, UnicodeDecodeError, PgduelError):
                passed = test.text(Path(self.rfile.readline().decode().rstrip("\n")).read_text(encoding="utf-8"))
            self.wfile.write(b"0\n" if passed else b"1\n")

    with TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()

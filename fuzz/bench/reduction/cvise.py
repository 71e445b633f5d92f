"""C-Vise on the text of the script. Its test, a shell, sends the file's name to this process and reads the answer.

So a try costs only the start of a shell more than that of others: servers, session and oracle are the same.
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

from fuzz.bench.reduction.reducer import Asked, Reducer, Task
from fuzz.errors import PgduelError, last_line
from fuzz.triage.reduction.problem import TimeUp
from fuzz.triage.reproducer.reproducer import parse
from oracles.model.case import Case

_FILE = "case.sql"
_TEST = f"""\
#!/bin/bash
exec 3<>/dev/tcp/127.0.0.1/PORT
printf '%s\\n' "$PWD/{_FILE}" >&3
read -r answer <&3
exit "$answer"
"""


class CVise(Reducer):
    """C-Vise without the passes for C alone, with one test at a time, like the other reducers."""

    name: ClassVar[str] = "cvise"
    program: ClassVar[str] = "cvise"

    def reduce(self, task: Task, asked: Asked) -> Case:
        """Reduce the script's text."""
        with tempfile.TemporaryDirectory(prefix="pgduel-cvise-") as home, _answering(asked) as port:
            test, file = Path(home, "test"), Path(home, _FILE)
            test.write_text(_TEST.replace("PORT", str(port)))
            test.chmod(0o755)
            file.write_text(task.script, encoding="utf-8")
            _run(["cvise", "--not-c", "--n", "1", "--tidy", str(test), _FILE], home, asked.until)
            return parse(file.read_text(encoding="utf-8"))


def _run(command: list[str], home: str, until: float) -> None:
    """Run a program, which keeps its best result in its file, until a time. Raises PgduelError."""
    process = subprocess.Popen(
        command, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    with process, suppress(subprocess.TimeoutExpired):
        try:
            _, said = process.communicate(timeout=max(0.0, until - time.monotonic()))
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        if process.returncode:
            raise PgduelError(f"{command[0]} failed with exit status {process.returncode}: {last_line(said)}")


@contextmanager
def _answering(asked: Asked) -> Iterator[int]:
    """Answer questions about files, one at a time, on a port of the loopback interface; return its number.

    If a server is down, the answer is no. The comparison detects that when it tests the result.
    """

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            answer = False
            with suppress(TimeUp, OSError, UnicodeDecodeError, PgduelError):
                answer = asked.text(Path(self.rfile.readline().decode().rstrip("\n")).read_text(encoding="utf-8"))
            self.wfile.write(b"0\n" if answer else b"1\n")

    with TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()

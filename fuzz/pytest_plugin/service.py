"""Process of the plugin: it opens the arms, and answers requests from pytest's process until their connection ends.

A request has a number, the name of a method, and its arguments. A reply has the number, its kind, and a value:

- `result`: what the method returned;
- `failed`: the text of an assertion that failed;
- `unshrunk`: the same, about a generated case that Hypothesis is not to shrink;
- `error`: the message of an error of pgduel;
- `progress`: a line; the result is still to come;
- `draw`: a bound; pytest's process sends a random number below it, or None to abandon the request.
"""

import random
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from fuzz import packages, store_url, workdir
from fuzz.cli.options import facts_of
from fuzz.errors import CaseError, PgduelError
from fuzz.execution.executor import Executor
from fuzz.output import visible
from fuzz.pytest_plugin.checks import Checks, Failed, Unshrunk
from fuzz.servers.arm import open_arms
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.flavor import DEFAULT_FLAVOR

_TIMEOUT = 30  # seconds; the user's queries may take longer than generated ones
_OPTION = re.compile(r"--(?=(?:arm|base|flavor|manifest|range|repo|series|set)\b)")  # of the command line, in messages


class _Abandoned(Exception):
    """Raised if pytest's process abandons a request."""


class _Ended(Exception):
    """Raised at the end of the connection."""


class _Drawn(random.Random):
    """A source of randomness that pytest's process draws from Hypothesis."""

    def __init__(self, draw: Callable[[int], int]) -> None:
        super().__init__(0)
        self._draw = draw

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """Return a number from the range, which has the step 1. Generators call no other method."""
        first, last = (0, start) if stop is None else (start, stop)
        return first + self._draw(last - first)


class Service:
    """The arms of a run of pytest, and the methods that its process may call."""

    def __init__(self, connection: Connection, stack: ExitStack) -> None:
        """Servers are stopped at the end of the stack."""
        self._connection = connection
        self._stack = stack
        self._number = 0
        self._options = ArmOptions()
        self._checks: Checks | None = None
        self._compare_times: Callable[..., tuple[float, float, float]] | None = None

    def serve(self) -> None:
        """Answer requests until the connection ends."""
        methods: Mapping[str, Callable[..., Any]] = {"open": self.open, "draw": self.draw, "faster": self.faster}
        while True:
            try:
                self._number, method, arguments = self._received()
                self._send(*self._answer(methods.get(method) or getattr(self._checks, method), arguments))
            except _Ended:
                return

    def _answer(self, method: Callable[..., Any], arguments: Mapping[str, Any]) -> tuple[str, Any]:
        try:
            return "result", method(**arguments)
        except Unshrunk as failure:
            return "unshrunk", visible(str(failure))
        except Failed as failure:
            return "failed", visible(str(failure))
        except (PgduelError, _Abandoned) as error:
            return "error", visible(str(error))
        except _Ended:
            raise
        except Exception:  # a fault of pgduel
            return "error", visible(traceback.format_exc())

    def _received(self) -> Any:
        try:
            return self._connection.recv()
        except (EOFError, OSError) as error:
            raise _Ended from error

    def _send(self, kind: str, value: Any) -> None:
        try:
            self._connection.send((self._number, kind, value))
        except OSError as error:
            raise _Ended from error

    def _report(self, line: str) -> None:
        self._send("progress", visible(line))

    def open(self, options: Mapping[str, Any], directory: str) -> list[tuple[str, str, str]]:
        """Start the arms, and return their names, versions and addresses. Raises PgduelError."""
        try:
            return self._open(options, directory)
        except PgduelError as error:
            raise PgduelError(_OPTION.sub("--pgduel-", str(error))) from error

    def _open(self, options: Mapping[str, Any], directory: str) -> list[tuple[str, str, str]]:
        if not workdir.IS_CHECKOUT:  # in a checkout, the launcher installs programs
            packages.require_programs()
        wanted = _arm_options(options).with_third_arm(self._report)
        timeout = _seconds(options["timeout"])
        specs = wanted.specs(self._report)
        same = wanted.same_build_wanted
        arms = self._stack.enter_context(open_arms(specs, self._report, allow_same_build=same))
        executor = Executor(arms, "pytest", timeout * 1000, self._connection.poll)
        self._stack.enter_context(executor)
        records = facts_of(specs, arms)
        self._checks = Checks(arms, executor, wanted.command_line(), records, Path(directory))
        self._options = wanted
        addresses = [f"host={arm.cluster.socket_dir} port={arm.cluster.port} user=postgres" for arm in arms]
        return [
            (arm.name, spec.base.version, f"{address} dbname=postgres")
            for arm, spec, address in zip(arms, specs, addresses, strict=True)
        ]

    def draw(self, generator: str) -> tuple[int, str]:
        """Return number and text of a new case. Raises CaseError."""
        assert self._checks is not None
        return self._checks.draw(generator, _Drawn(self._ask_number))

    def _ask_number(self, below: int) -> int:
        self._send("draw", below)
        drawn: int | None = self._received()
        if drawn is None:
            raise _Abandoned("the case was abandoned")
        return drawn

    def faster(self, **arguments: Any) -> tuple[float, float, float]:
        """Return the median ratio of times and its interval. Raises Failed, PgduelError."""
        if self._compare_times is None:
            from fuzz.pytest_plugin.timing import Timing  # not at the top: SciPy takes a second to import

            self._compare_times = Timing(self._options, self._stack, self._report).faster
        return self._compare_times(**arguments)


def _arm_options(options: Mapping[str, Any]) -> ArmOptions:
    """Return the choice of arms. Raises SourceError."""
    paths = {name: None if options[name] is None else Path(options[name]) for name in ("repo", "manifest")}
    return ArmOptions.given(
        options["base"],
        options["series"],
        paths["repo"],
        options["range"],
        options["arm"],
        options["flavor"] or DEFAULT_FLAVOR,
        paths["manifest"],
        options["set"],
    )


def _seconds(text: str | None) -> int:
    """Return the value of --pgduel-timeout. Raises CaseError."""
    if text is not None and not (text.isdecimal() and int(text)):
        raise CaseError(f"--pgduel-timeout {text} is no number of seconds; give a whole number of at least 1")
    return int(text or _TIMEOUT)


def main() -> None:
    """Serve the connection whose file descriptor is the argument."""
    store_url.hide()
    with ExitStack() as stack:
        Service(Connection(int(sys.argv[1])), stack).serve()


if __name__ == "__main__":
    main()

"""Command-line options of SQLancer 2.0.0. Only this file depends on the version."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from fuzz.servers.relay import Login

GROUP, ARTIFACT, VERSION = "com.sqlancer", "sqlancer", "2.0.0"
COORDINATES: Final = f"{GROUP}:{ARTIFACT}:{VERSION}"
MAIN: Final = "sqlancer.Main"
# SQLancer's oracles, and the number of answers that each compares in a check: those of two queries, estimates of two
# queries, or an answer and the row that must be in it. FUZZER compares nothing.
ANSWERS: Final = {
    **dict.fromkeys(("NOREC", "QUERY_PARTITIONING", "WHERE", "HAVING", "CERT"), 2),
    "PQS": 1,
    "FUZZER": 0,
}
ORACLES: Final = tuple(ANSWERS)
ENTRY_DATABASE: Final = "test"  # SQLancer connects to it to create others
LOGS: Final = "logs/postgres"  # relative to its working directory
EXECUTED: Final = re.compile(r"Executed (\d+) queries")  # queries so far, which SQLancer prints regularly
SEEDS: Final = 1 << 31
REPORTS: Final = 20  # per search, each from a database with the next seed
_SEARCH_QUERIES: Final = 1000  # queries per database of a search
_UNLIMITED: Final = -1


@dataclass(frozen=True, slots=True)
class SqlancerRun:
    """A run of SQLancer. It ends after its databases or its seconds, whichever comes first."""

    oracle: str
    seed: int
    queries: int  # queries per database
    databases: int = 1  # number of databases, or _UNLIMITED
    reports: int = 1  # databases that may fail, each with a seed of its own
    seconds: int = 300

    @classmethod
    def search(cls, oracle: str, seed: int, seconds: int) -> "SqlancerRun":
        """Return a run over any number of databases, until `REPORTS` of them failed or the time is up."""
        return cls(oracle, seed, _SEARCH_QUERIES, databases=_UNLIMITED, reports=REPORTS, seconds=seconds)

    def arguments(self, classpath: str, login: Login, prefix: str) -> list[str]:
        """Return the arguments of Java. SQLancer names its databases `prefix`0, `prefix`1 ..."""
        java = _JAVA if self.databases == _UNLIMITED else [*_JAVA, _SHORT_RUN]
        return [*java, "-cp", classpath, MAIN, *self._options(login, prefix), "postgres", *self._of_postgres()]

    def _options(self, login: Login, prefix: str) -> Iterator[str]:
        yield from ("--random-seed", str(self.seed), "--num-queries", str(self.queries))
        yield from ("--max-generated-databases", str(self.databases), "--num-tries", str(self.reports))
        yield from ("--timeout-seconds", str(self.seconds), "--num-threads", "1")
        yield from ("--host", "127.0.0.1", "--port", str(login.port))
        yield from ("--username", login.user, "--password", login.password)
        yield from ("--database-prefix", prefix, "--use-connection-test", "false")
        yield from ("--log-execution-time", "false")

    def _of_postgres(self) -> Iterator[str]:
        yield from ("--oracle", self.oracle, "--test-collations", "false")


def argument_file(arguments: Iterable[str]) -> str:
    """Return the content of a file for `java @file`: one quoted argument per line."""
    return "".join('"' + re.sub(r'(["\\])', r"\\\1", each) + '"\n' for each in arguments)


# SQLancer creates tablespaces, which are global, if it detects Linux. It ignores its option against that.
_JAVA: Final = ("-Dos.name=none", "-Xmx1g", "-XX:+UseSerialGC")
_SHORT_RUN: Final = "-XX:TieredStopAtLevel=1"  # a run over few databases ends before optimized code pays off

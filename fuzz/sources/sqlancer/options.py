"""SQLancer's options, as its version 2.0.0 has them: what there is to change for another version is here."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from fuzz.servers.relay import Login

GROUP, ARTIFACT, VERSION = "com.sqlancer", "sqlancer", "2.0.0"
COORDINATES: Final = f"{GROUP}:{ARTIFACT}:{VERSION}"
MAIN: Final = "sqlancer.Main"
ORACLES: Final = ("NOREC", "QUERY_PARTITIONING", "WHERE", "HAVING", "PQS", "CERT", "FUZZER")
ENTRY_DATABASE: Final = "test"  # it connects there to make others
LOGS: Final = "logs/postgres"  # below its working directory
ASKED: Final = re.compile(r"Executed (\d+) queries")  # so far, it says every now and then
SEEDS: Final = 1 << 31
REPORTS: Final = 20  # of a search, each from a database with the next seed
_HUNTED: Final = 1000  # queries in each of its databases


@dataclass(frozen=True, slots=True)
class Call:
    """What one start of SQLancer is to do. It ends with its databases, or its seconds, whichever is first."""

    oracle: str
    seed: int
    queries: int  # that it tries in a database before it makes another
    databases: int = 1  # -1: any number
    reports: int = 1  # databases that may fail, each with a seed of its own
    seconds: int = 300

    @classmethod
    def search(cls, oracle: str, seed: int, seconds: int) -> "Call":
        """Return a call that goes from database to database, until that many have failed or the time is up."""
        return cls(oracle, seed, _HUNTED, databases=-1, reports=REPORTS, seconds=seconds)

    def arguments(self, classpath: str, login: Login, prefix: str) -> list[str]:
        """Return the arguments of Java: its databases are called `prefix`0, `prefix`1 ..."""
        return [*_JAVA, "-cp", classpath, MAIN, *self._options(login, prefix), "postgres", *self._of_postgres()]

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
    """Return arguments as a file for `java @file` has them, quoted, one a line."""
    return "".join('"' + re.sub(r'(["\\])', r"\\\1", each) + '"\n' for each in arguments)


# It makes tablespaces, which belong to all databases of a server, where it takes the system for Linux; the option
# against that is not heeded.
_JAVA: Final = ("-Dos.name=none", "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

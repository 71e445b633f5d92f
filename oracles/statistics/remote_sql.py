"""Remote SQL: the samples that ANALYZE requested from a remote server, according to that server's log.

A case's foreign server leads back to the same server, so its log has the statements of both sessions.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from oracles.model.observation import CaseObservation

STATEMENT: Final = "LOG:  statement: "

_OWN = re.compile(r"LOG:  (?:statement|execute \S+): ")
_SAMPLE: Final = re.compile(
    rf"{STATEMENT}DECLARE c\d+ CURSOR FOR SELECT .* FROM (?:ONLY )?(?P<relation>\S+)"
    r"(?: TABLESAMPLE (?P<method>\w+) ?\((?P<percent>[^)]+)\))?"
    r"(?: WHERE pg_catalog\.random\(\) < (?P<fraction>\S+))?"
    r"(?: ORDER BY \d+ LIMIT (?P<limit>\d+))?",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class RequestedSample:
    """A sample in the remote SQL: all rows of the relation, or a part."""

    relation: str
    tablesample: str = ""  # SYSTEM or BERNOULLI, in capitals
    tablesample_fraction: float = 1.0
    random_fraction: float = 1.0
    limit: int = 0  # number of rows, in random order; 0: no limit

    @property
    def fraction(self) -> float:
        """Return the probability that a row is returned, if there is no limit."""
        return self.tablesample_fraction * self.random_fraction

    @property
    def everything(self) -> bool:
        """Return whether the sample has all rows."""
        return not self.tablesample and self.random_fraction >= 1 and not self.limit

    def __str__(self) -> str:
        parts = [f"{self.tablesample} {self.tablesample_fraction:.6g}"] if self.tablesample else []
        parts += [f"random {self.random_fraction:.6g}"] if self.random_fraction < 1 else []
        parts += [f"limit {self.limit}"] if self.limit else []
        return " and ".join(parts) or "everything"


def statements(observed: CaseObservation) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each statement in the session's log, and the log lines behind its foreign servers during it."""
    own = [index for index, line in enumerate(observed.log) if _OWN.match(line)]
    for index, end in pairwise([*own, len(observed.log)]):
        line = observed.log[index]
        yield line.removeprefix(STATEMENT), tuple(each.text for each in observed.remote if index < each.after <= end)


def requested_samples(lines: Sequence[str]) -> Iterator[RequestedSample]:
    """Yield the requested samples in order; a later one of a relation replaces an earlier one, which was abandoned."""
    for found in filter(None, map(_SAMPLE.fullmatch, lines)):
        yield RequestedSample(
            found["relation"],
            (found["method"] or "").upper(),
            float(found["percent"]) / 100 if found["percent"] else 1.0,
            float(found["fraction"]) if found["fraction"] else 1.0,
            int(found["limit"] or 0),
        )

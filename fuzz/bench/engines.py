"""A comparison of engines: campaigns with the same generators, on the same builds, for the same CPU time.

Each campaign starts without a corpus, and reduces no findings, because that takes CPU time, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from types import MappingProxyType
from typing import Final

from fuzz import workdir
from fuzz.campaign.edges import Reached, ReachedEdges
from fuzz.campaign.store import Store
from fuzz.engines.engine import EngineName

# parts of the server → directories or beginnings of files
PARTS: Final = MappingProxyType(
    {
        "executor": ("src/backend/executor/",),
        "planner": ("src/backend/optimizer/", "src/backend/partitioning/"),
        "COPY": ("src/backend/commands/copy",),
        "access methods": ("src/backend/access/",),
    }
)


@dataclass(frozen=True, slots=True)
class EngineFigures:
    """The results of one campaign."""

    engine: EngineName
    seed: int
    cpu_seconds: float  # of pgduel and the servers
    cases: int
    judged: int  # statements that were compared
    shapes: int  # number of different shapes of plans
    findings: tuple[str, ...]  # summaries
    edges: Reached
    changed: Reached  # in functions that the patches change
    parts: Mapping[str, Reached]
    curve: tuple[tuple[float, int], ...]  # elapsed seconds, and edges reached until then


@contextmanager
def without_corpus(engine: EngineName, seed: int) -> Iterator[Path]:
    """Keep the campaigns in this context in a new directory, so that they have neither corpus nor known edges."""
    home = workdir.benches() / "engines"
    with workdir.writing(home):
        home.mkdir(exist_ok=True)
        directory = Path(mkdtemp(prefix=f"{engine}-{seed}-", dir=home))
    with workdir.campaigns_in(directory):
        yield directory


def figures_of(engine: EngineName, store: Store, edges: ReachedEdges) -> EngineFigures:
    """Return the results of a campaign that has ended."""
    counters = store.counters
    return EngineFigures(
        engine,
        store.plan.seed,
        round(counters.cpu_seconds, 1),
        counters.cases.total(),
        counters.statements_judged,
        len(counters.shapes),
        tuple(each.finding.summary for each in store.findings()),
        edges.edges,
        edges.changed,
        {part: _sum(edges.files, beginnings) for part, beginnings in PARTS.items()},
        tuple((round(each.seconds, 1), each.edges) for each in store.samples()),
    )


def _sum(files: Mapping[str, Reached], beginnings: Sequence[str]) -> Reached:
    chosen = [reached for file, reached in files.items() if file.startswith(tuple(beginnings))]
    return Reached(sum(each.reached for each in chosen), sum(each.counted for each in chosen))

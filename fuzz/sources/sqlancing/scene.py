"""What SQLancer did to make a database, as a scene."""

from fuzz.psql.script import Sent
from fuzz.sources.legality.catalog import Catalog
from fuzz.sources.replaying.steps import Stager
from oracles.case import Step


def scene_of(statements: tuple[str, ...], catalog: Catalog) -> tuple[Step, ...]:
    """Return the statements that make a database, as steps; any may fail, as many do."""
    stager = Stager(catalog, lambda _: None)
    return tuple(step for sql in statements if (step := stager.step(Sent(sql, None, 0))) is not None)

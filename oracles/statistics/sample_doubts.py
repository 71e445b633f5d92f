"""Tests of one analysis: of the columns' statistics, and of the sample itself.

ANALYZE of a foreign table must request the sample that its method promises, receive as many rows as that sample gives,
and derive the estimate of all rows from them.
"""

from types import MappingProxyType
from typing import Final

import numpy

from oracles.statistics.analyze import Analysis
from oracles.statistics.remote_sql import Asked
from oracles.statistics.sample_laws import Blockwise, Law, RowByRow, Tablewise, largest_key, received
from oracles.statistics.sample_tests import NO_DOUBT, Doubt, doubts

Named = tuple[str, str]  # name of a test, and name of the column ("": the table)

_OFF: Final = "off"
# The TABLESAMPLE methods that each analyze_sampling method may use if the remote relation is a table with more rows
# than needed. A sample of blocks falls back to BERNOULLI if it would have all blocks.
_FORMS: Final = MappingProxyType(
    {_OFF: (None,), "random": ("",), "bernoulli": ("BERNOULLI",), "system": ("SYSTEM", "BERNOULLI")}
)
_SURELY: Final = 1.2  # factor: above `wanted` times it a table must be sampled, below `wanted` divided by it not
_SHARE: Final = (0.3, 1.5)  # limits of expected rows divided by `wanted`


def law_of(found: Analysis) -> Law | None:
    """Return the probability law of the sample; None if it is unknown."""
    by_blocks = [asked for asked in found.asked.values() if asked.tablesample == "SYSTEM"]
    kept = sum(acquired.kept for acquired in found.acquired)
    if found.remote is None:
        if by_blocks or not all(acquired.whole for acquired in found.acquired):
            return None
        shares = {acquired.table: acquired.kept for acquired in found.acquired}
        numbers = {table: number for number, table in enumerate(shares)}
        members = numpy.array([numbers.get(member, -1) for member in found.members], dtype=numpy.int64)
        return Tablewise(members, tuple(shares.values()))
    if found.sample is None:
        return None
    if not by_blocks:
        return RowByRow(found.rows, kept) if kept <= found.rows else None
    if found.blocks is None:
        return None
    asked = found.sample
    fractions = asked.tablesample_fraction, asked.random_fraction
    return Blockwise(found.blocks, kept, *fractions, thinned=kept >= found.wanted)


def all_doubts(found: Analysis) -> dict[Named, Doubt]:
    """Return the result of each applicable test."""
    told: dict[Named, Doubt] = {}
    if found.remote is not None and found.sample is not None:
        told["remote SQL", ""] = _promise(found, found.sample)
        told["rows sampled", ""] = _sampled(found, found.sample)
        told["row estimate", ""] = _estimated(found, found.sample)
    law = law_of(found)
    if law is not None:
        total = sum(acquired.total for acquired in found.acquired)
        told |= {(test, each.name): doubt for each in found.columns for test, doubt in doubts(each, law, total)}
    return told


def _promise(found: Analysis, asked: Asked) -> Doubt:
    """Test the requested sample: its method and expected number of rows, if the remote catalogs were correct."""
    if found.method is None:
        return NO_DOUBT
    few = found.rows * _SURELY <= found.wanted
    if found.method == _OFF or (found.current and few):
        return NO_DOUBT if asked.everything else Doubt(0.0, f"everything, by {found.method}", str(asked))
    if not found.current or found.rows < _SURELY * found.wanted:
        return NO_DOUBT
    forms = _FORMS.get(found.method)
    expected = found.rows * min(asked.fraction, 1.0)
    if forms is not None and (asked.everything or asked.tablesample not in forms):
        return Doubt(0.0, f"a sample, by {found.method}", str(asked))
    if asked.limit or _SHARE[0] <= expected / found.wanted <= _SHARE[1]:
        return NO_DOUBT
    return Doubt(0.0, f"{found.wanted} of {found.rows} rows, or somewhat less", f"{asked}, so {expected:.6g} rows")


def _sampled(found: Analysis, asked: Asked) -> Doubt:
    """Test the number of rows kept: all that were received, up to `wanted`."""
    kept = found.acquired[0].kept
    if asked.everything or asked.limit:
        expected = min(found.rows, asked.limit or found.wanted)
        return NO_DOUBT if kept == expected else Doubt(0.0, f"{expected} rows in the sample", f"{kept}")
    chance = 1.0
    if kept < found.wanted or found.rows * asked.fraction < found.wanted:  # otherwise more may have been received
        chance = received(asked, found.rows, found.blocks, kept)
    return Doubt(chance, f"about {found.rows * asked.fraction:.6g} rows in the sample, by {asked}", f"{kept}")


def _estimated(found: Analysis, asked: Asked) -> Doubt:
    """Test the estimates of all rows: the one that ANALYZE derives from the sample, and the stored one."""
    acquired = found.acquired[0]
    actual = f"{acquired.total:.6g}, stored {found.estimate:.6g}"
    told = Doubt(0.0, f"an estimate of {found.rows} rows, by {asked}", actual)
    if abs(found.estimate - acquired.total) > 1 + acquired.total * 1e-6:
        return told
    if acquired.total == found.rows or abs(acquired.total - found.quoted) <= 1:
        return NO_DOUBT
    return Doubt(_chance(found, asked), told.expected, told.actual)


def _chance(found: Analysis, asked: Asked) -> float:
    acquired = found.acquired[0]
    if asked.everything or acquired.total <= 0:
        # an estimate of 0 means that no row was received
        return 0.0 if asked.everything else received(asked, found.rows, found.blocks, 0)
    if asked.limit:
        return largest_key(acquired.kept, found.rows, acquired.total) if acquired.kept <= found.rows else 0.0
    return received(asked, found.rows, found.blocks, round(acquired.total * min(asked.fraction, 1.0)))

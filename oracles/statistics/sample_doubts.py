"""Sample doubts: all tests of one analysis, and how grave a doubt each leaves.

Besides what the statistics of columns say, ANALYZE of a foreign table has to ask for what its method promises, to get
as many rows as that gives, and to estimate the number of all rows by them.
"""

from types import MappingProxyType
from typing import Final

import numpy

from oracles.statistics.analyze import Analysis
from oracles.statistics.remote_sql import Asked
from oracles.statistics.sample_laws import Blockwise, Law, RowByRow, Tablewise, largest_key, received
from oracles.statistics.sample_tests import NO_DOUBT, Doubt, doubts

Named = tuple[str, str]  # a test and, unless it is about the table, a column

_OFF: Final = "off"
# What each method may ask for where the remote relation is a table with more rows than are wanted; a sample of blocks
# that would have all of them is none.
_FORMS: Final = MappingProxyType(
    {_OFF: (None,), "random": ("",), "bernoulli": ("BERNOULLI",), "system": ("SYSTEM", "BERNOULLI")}
)
_SURELY: Final = 1.2  # times the rows wanted: so many are sampled, so few are not
_SHARE: Final = (0.3, 1.5)  # of the rows wanted, how many may be asked for


def law_of(found: Analysis) -> Law | None:
    """Return what the sample follows; None where nothing is known of it that could be tested."""
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
    """Return what each test that could be made leaves of doubt."""
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
    """Test what was asked for: how, and for how many rows, as far as the remote catalogs were right."""
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
    """Test the number of rows kept: of all received, as many as are wanted."""
    kept = found.acquired[0].kept
    if asked.everything or asked.limit:
        expected = min(found.rows, asked.limit or found.wanted)
        return NO_DOUBT if kept == expected else Doubt(0.0, f"{expected} rows in the sample", f"{kept}")
    chance = 1.0
    if kept < found.wanted or found.rows * asked.fraction < found.wanted:  # else more may have been received
        chance = received(asked, found.rows, found.blocks, kept)
    return Doubt(chance, f"about {found.rows * asked.fraction:.6g} rows in the sample, by {asked}", f"{kept}")


def _estimated(found: Analysis, asked: Asked) -> Doubt:
    """Test the number of rows that ANALYZE believes in, and that it stores."""
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
        # an estimate of no rows says that none was received
        return 0.0 if asked.everything else received(asked, found.rows, found.blocks, 0)
    if asked.limit:
        return largest_key(acquired.kept, found.rows, acquired.total) if acquired.kept <= found.rows else 0.0
    return received(asked, found.rows, found.blocks, round(acquired.total * min(asked.fraction, 1.0)))

"""Tests of one analysis: of the columns' statistics, and of the sample itself.

ANALYZE of a foreign table must request the sample of its method. The number of rows must fit that sample,
and the estimate of all rows must fit their number.
"""

from types import MappingProxyType
from typing import Final

import numpy

from oracles.statistics.analyze import Analysis
from oracles.statistics.remote_sql import RequestedSample
from oracles.statistics.sample_laws import Blockwise, Law, RowByRow, Tablewise, largest_key, received
from oracles.statistics.sample_tests import NO_DEVIATION, Deviation, deviations

Key = tuple[str, str]  # name of a test, and name of the column ("": the table)

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
    by_blocks = [request for request in found.requests.values() if request.tablesample == "SYSTEM"]
    kept = sum(sample.kept for sample in found.table_samples)
    if found.remote is None:
        if by_blocks or not all(sample.whole for sample in found.table_samples):
            return None
        shares = {sample.table: sample.kept for sample in found.table_samples}
        numbers = {table: number for number, table in enumerate(shares)}
        members = numpy.array([numbers.get(member, -1) for member in found.members], dtype=numpy.int64)
        return Tablewise(members, tuple(shares.values()))
    if found.request is None:
        return None
    if not by_blocks:
        return RowByRow(found.rows, kept) if kept <= found.rows else None
    if found.blocks is None:
        return None
    request = found.request
    fractions = request.tablesample_fraction, request.random_fraction
    return Blockwise(found.blocks, kept, *fractions, thinned=kept >= found.wanted)


def all_deviations(found: Analysis) -> dict[Key, Deviation]:
    """Return the result of each applicable test."""
    results: dict[Key, Deviation] = {}
    if found.remote is not None and found.request is not None:
        results["remote SQL", ""] = _request_deviation(found, found.request)
        results["rows sampled", ""] = _size_deviation(found, found.request)
        results["row estimate", ""] = _estimate_deviation(found, found.request)
    law = law_of(found)
    if law is not None:
        total = sum(sample.total for sample in found.table_samples)
        results |= {
            (test, each.name): deviation for each in found.columns for test, deviation in deviations(each, law, total)
        }
    return results


def _request_deviation(found: Analysis, request: RequestedSample) -> Deviation:
    """Test the requested sample: its method and expected number of rows, if the remote catalogs were correct."""
    if found.method is None:
        return NO_DEVIATION
    few = found.rows * _SURELY <= found.wanted
    if found.method == _OFF or (found.current and few):
        return NO_DEVIATION if request.everything else Deviation(0.0, f"everything, by {found.method}", str(request))
    if not found.current or found.rows < _SURELY * found.wanted:
        return NO_DEVIATION
    forms = _FORMS.get(found.method)
    expected = found.rows * min(request.fraction, 1.0)
    if forms is not None and (request.everything or request.tablesample not in forms):
        return Deviation(0.0, f"a sample, by {found.method}", str(request))
    if request.limit or _SHARE[0] <= expected / found.wanted <= _SHARE[1]:
        return NO_DEVIATION
    return Deviation(
        0.0, f"{found.wanted} of {found.rows} rows, or somewhat less", f"{request}, so {expected:.6g} rows"
    )


def _size_deviation(found: Analysis, request: RequestedSample) -> Deviation:
    """Test the number of rows kept: all that were received, up to `wanted`."""
    kept = found.table_samples[0].kept
    if request.everything or request.limit:
        expected = min(found.rows, request.limit or found.wanted)
        return NO_DEVIATION if kept == expected else Deviation(0.0, f"{expected} rows in the sample", f"{kept}")
    chance = 1.0
    if kept < found.wanted or found.rows * request.fraction < found.wanted:  # otherwise more may have been received
        chance = received(request, found.rows, found.blocks, kept)
    return Deviation(chance, f"about {found.rows * request.fraction:.6g} rows in the sample, by {request}", f"{kept}")


def _estimate_deviation(found: Analysis, request: RequestedSample) -> Deviation:
    """Test the estimates of all rows: the one that ANALYZE derives from the sample, and the stored one."""
    sample = found.table_samples[0]
    actual = f"{sample.total:.6g}, stored {found.estimate:.6g}"
    results = Deviation(0.0, f"an estimate of {found.rows} rows, by {request}", actual)
    if abs(found.estimate - sample.total) > 1 + sample.total * 1e-6:
        return results
    if sample.total == found.rows or abs(sample.total - found.quoted) <= 1:
        return NO_DEVIATION
    return Deviation(_chance(found, request), results.expected, results.actual)


def _chance(found: Analysis, request: RequestedSample) -> float:
    sample = found.table_samples[0]
    if request.everything or sample.total <= 0:
        # an estimate of 0 means that no row was received
        return 0.0 if request.everything else received(request, found.rows, found.blocks, 0)
    if request.limit:
        return largest_key(sample.kept, found.rows, sample.total) if sample.kept <= found.rows else 0.0
    return received(request, found.rows, found.blocks, round(sample.total * min(request.fraction, 1.0)))

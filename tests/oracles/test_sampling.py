"""Tests of `Sample`: a case belongs to samples by its content, or by name."""

from dataclasses import replace
from itertools import count

from oracles.model.case import Case, Kind, Step
from oracles.model.oracle import Sample

ESTIMATED, EXPLAINED = Sample("estimated", 32), Sample("explained", 6)


def sampled() -> Case:
    """Return a case that is in a sample by its content."""
    cases = (Case("test", (), (Step(f"SELECT {number}", Kind.QUERY),)) for number in count())
    return next(case for case in cases if case in ESTIMATED)


def test_a_case_is_in_a_sample_by_its_content() -> None:
    assert sampled() in ESTIMATED


def test_content_is_ignored_if_samples_are_named() -> None:
    assert replace(sampled(), sampled_by_content=False) not in ESTIMATED


def test_named_samples_contain_the_case() -> None:
    case = replace(sampled(), samples=(EXPLAINED.name,), sampled_by_content=False)
    assert case in EXPLAINED
    assert case not in ESTIMATED

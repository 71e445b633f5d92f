"""Tests of the native harness of equivclass.c: lookups equal a linear search, all are reached, and bugs are found."""

from pathlib import Path

import pytest

from fuzz.engines.libfuzzer.run import run_harness
from tests.libfuzzer.harnesses import TOP, Harness, assert_clean

pytestmark = pytest.mark.servers

CORPUS = TOP / "corpus" / "libfuzzer" / "eclass"
VARIANTS = TOP / "patches" / "pg17" / "variants"
CHILDREN = str(VARIANTS / "000-children-by-relation")
LOOKUPS = {
    "eclass_linear": "upstream",
    "eclass_children": CHILDREN,
    "eclass_numbers": str(VARIANTS / "000-v1-sets"),
    "eclass_exclusion": str(VARIANTS / "000-v3-exclusion"),
    "eclass_indexes": str(VARIANTS / "000-v5-indexes"),
    "eclass_iterator": str(VARIANTS / "000-v6-iterator"),
    "eclass_cache": str(VARIANTS / "000-v7-cache"),
}
# The mail's variants. No shipped arm has them.
COMPARED = ("eclass_numbers", "eclass_exclusion", "eclass_indexes", "eclass_iterator", "eclass_cache")


def _marks(lookup: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.long] if lookup in COMPARED else []


BUGS = [
    pytest.param(lookup, bug, id=bug.stem.removeprefix("eclass_"), marks=_marks(lookup))
    for lookup in LOOKUPS
    for bug in sorted((Path(__file__).parent / "bugs").glob(f"{lookup}_*.patch"))
]


@pytest.mark.parametrize("lookup", [pytest.param(lookup, marks=_marks(lookup)) for lookup in LOOKUPS])
def test_lookups_agree_with_linear_search(harness: Harness, lookup: str) -> None:
    run = run_harness(harness("eclass", arm=LOOKUPS[lookup]), 20, CORPUS)
    assert_clean(run)
    assert run.executions > 100


def test_corpus_reaches_all_lookups(harness: Harness) -> None:
    run = run_harness(harness("eclass", arm=CHILDREN), 0, CORPUS)
    assert_clean(run)
    reached = run.functions

    # classes are merged, have constants, and lose members
    assert min(reached["process_equivalence"].branches["ec1 == ec2"]) > 0
    assert min(reached["generate_base_implied_equalities"].branches["ec->ec_has_const"]) > 0
    assert min(reached["find_derived_clause_for_ec_member"].branches["rinfo"]) > 0
    assert reached["remove_rel_from_eclass"].calls > 0

    # children in any order, at any level, single and joined
    assert min(reached["next_ec_member"].branches["it->mixed"]) > 0
    assert min(reached["next_child_in_order"].branches["em->em_number > found->em_number"]) > 0
    assert min(reached["add_child_rel_equivalences"].branches["parent_rel->reloptkind == RELOPT_BASEREL"]) > 0
    assert min(reached["add_child_join_rel_equivalences"].branches["parent_joinrel->reloptkind == RELOPT_JOINREL"]) > 0

    # derived clauses are found again
    for member in ("leftem", "rightem"):
        assert min(reached["create_join_clause"].branches[f"{member}->em_is_child"]) > 0
    assert min(reached["create_join_clause"].branches["rinfo"]) > 0
    assert min(reached["generate_implied_equalities_for_column"].branches["is_child_rel"]) > 0


@pytest.mark.parametrize(("lookup", "bug"), BUGS)
def test_finds_injected_bug(harness: Harness, lookup: str, bug: Path) -> None:
    found = run_harness(harness("eclass", bug=bug, arm=LOOKUPS[lookup]), 60, CORPUS)
    assert found.crash is not None
    assert found.message

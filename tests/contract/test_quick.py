"""Tests of the selection of quick tests: each generator, source and oracle has one on real servers."""

from fuzz.generators.generator import all_generators
from fuzz.sources.source import all_sources
from oracles.model.oracle import all_oracles
from tests.collected import marked_tests
from tests.injected_bugs.injected_bug import all_bugs


def test_each_generator_source_and_oracle_has_a_quick_test_on_real_servers() -> None:
    tests = {name.partition("::")[2] for name in marked_tests("quick")}
    expected = {f"test_arms_do_not_differ[{name}]" for name in (*all_generators(), *all_sources())}
    assert expected <= tests
    planted = "test_a_planted_bug_is_found_in_the_arm_it_was_planted_in"
    for oracle in all_oracles():
        assert any(test.startswith(f"{planted}[{oracle.name}-") for test in tests), oracle.name
    for suite in ("run_regress-patched", "run_isolation-patched"):
        assert f"test_suite[{suite}]" in tests


def test_quick_tests_find_some_injected_bugs() -> None:
    """The bugs' headers select at least three workloads."""
    bugs = all_bugs()
    assert len({bug.quick for bug in bugs} - {None}) >= 3

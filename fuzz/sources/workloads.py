"""Workloads: generators and sources by name, for whoever does not mind where statements come from."""

from typing import Final

from fuzz.errors import CaseError
from fuzz.generators.generator import Generator, all_generators
from fuzz.sources.context import SourceContext, UserInput
from fuzz.sources.source import Source, all_sources

USER_SQL: Final = "user_sql"  # the source of --sql


def all_workloads() -> dict[str, Generator]:
    """Return all generators, then all sources (without a target), by name."""
    return {**all_generators(), **all_sources()}


def workload_named(name: str, target: SourceContext | None = None) -> Generator:
    """Return one workload, a source for the target. Raises CaseError, naming those there are."""
    found = all_workloads()
    if name not in found:
        raise CaseError(f"no generator is called {name!r}; there are: {', '.join(found)}")
    workload = found[name]
    return workload.on(target) if isinstance(workload, Source) else workload


def workloads_for(given: UserInput) -> tuple[str, ...]:
    """Return the names of what runs where the user names nothing: SQL of the user's, or all generators.

    A case of a source takes many times as long as one of a generator: among those it would take most of the time.
    """
    return tuple(all_generators()) if given.sql is None else (USER_SQL,)


def require_workload(name: str, given: UserInput) -> str:
    """Return the name of a workload that can be had. Raises CaseError that says what is lacking."""
    workload = workload_named(name)
    if isinstance(workload, Source) and (lacking := workload.lacks(given)):
        raise CaseError(f"no statements can be had from {name}: {lacking}")
    return name

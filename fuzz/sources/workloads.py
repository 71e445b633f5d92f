"""Generators and sources by name, for callers that treat both alike."""

from typing import Final

from fuzz.errors import CaseError
from fuzz.generators.generator import Generator, all_generators
from fuzz.sources.context import SourceContext, UserInput
from fuzz.sources.source import Source, all_sources

USER_SQL: Final = "user_sql"  # the source of --sql


def all_workloads() -> dict[str, Generator]:
    """Return all generators, then all sources (without a source context), by name."""
    return {**all_generators(), **all_sources()}


def workload_named(name: str, target: SourceContext | None = None) -> Generator:
    """Return the generator or source of that name, a source for `target`. Raises CaseError with the valid names."""
    found = all_workloads()
    if name not in found:
        raise CaseError(f"no generator is called {name!r}; give one of {', '.join(found)}")
    workload = found[name]
    return workload.on(target) if isinstance(workload, Source) else workload


def workloads_for(given: UserInput) -> tuple[str, ...]:
    """Return the default workloads: the user's SQL if given, otherwise all generators.

    Sources are not included, because their cases take many times as long and would use up most of the time.
    """
    return tuple(all_generators()) if given.sql is None else (USER_SQL,)


def require_workload(name: str, given: UserInput) -> str:
    """Return the name of an available workload. Raises CaseError about a missing prerequisite."""
    workload = workload_named(name)
    if isinstance(workload, Source) and (lacking := workload.lacks(given)):
        raise CaseError(f"no statements can be had from {name}: {lacking}")
    return name

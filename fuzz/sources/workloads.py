"""Workloads: generators and sources by name, and their shares of a run without options."""

from collections.abc import Iterable
from typing import Final

from fuzz.errors import CaseError
from fuzz.generators.generator import Generator, all_generators
from fuzz.sources.source import Source, SourceContext, UserInput, all_sources
from oracles.model.discovery import instances_below

GENERATOR_FILES: Final = "pgduel_generator_files"  # prefix of modules that are the user's files
USER_SQL: Final = "user_sql"  # the source of --sql
SOURCES_SHARE: Final = 0.3  # of the CPU time of a run without options; the rest is for generators
HOUR: Final = 3600  # seconds


def all_workloads() -> dict[str, Generator]:
    """Return all generators, then all sources (without a source context), then those of the user's files, by name.

    Those of the user's files run only if they are named. Others do not use their scenes and queries, so no other case
    changes.
    """
    own = instances_below(Generator, GENERATOR_FILES)  # type: ignore[type-abstract]  # never instantiated itself
    return {**all_generators(), **all_sources(), **{each.name: each for each in own}}


def workload_named(name: str, target: SourceContext | None = None) -> Generator:
    """Return the generator or source of this name. A source gets `target`. Raises CaseError with the valid names."""
    found = all_workloads()
    if name not in found:
        raise CaseError(f"no generator is called {name!r}; give one of {', '.join(found)}")
    workload = found[name]
    return workload.on(target) if isinstance(workload, Source) else workload


def default_workloads(target: SourceContext) -> tuple[dict[str, int], dict[str, str]]:
    """Return the workloads of a run without options, and the reasons why sources are left out, both by name.

    A workload comes with its weight in the schedule. Raises ServerError.
    """
    if target.given.sql is not None:
        return {USER_SQL: 1}, {}
    sources = {name: source.on(target) for name, source in all_sources().items() if source.default_weight}
    left_out = {name: why for name, source in sources.items() if (why := _hindrance(source))}
    usable = [source for name, source in sources.items() if name not in left_out]
    return cases_per_hour(all_generators().values(), usable), left_out


def _hindrance(source: Source) -> str:
    """Return why a source cannot make cases for its target, or "". Raises ServerError."""
    try:
        source.parts()
    except CaseError as error:
        return str(error)
    return source.lacks(source.target.given)


def cases_per_hour(generators: Iterable[Generator], sources: Iterable[Source]) -> dict[str, int]:
    """Return the number of cases in an hour of CPU time by name.

    All generators have equally many cases. Sources together have their share of the CPU time. They divide it by their
    weights.
    """
    generators, sources = tuple(generators), tuple(sources)
    equal = HOUR * (1 - SOURCES_SHARE) / sum(each.cpu_seconds for each in generators)
    weights = sum(each.default_weight for each in sources)
    cases = {each.name: equal for each in generators}
    for each in sources:
        cases[each.name] = HOUR * SOURCES_SHARE * each.default_weight / weights / each.cpu_seconds
    return {name: max(1, round(number)) for name, number in cases.items()}


def require_workload(name: str, given: UserInput) -> str:
    """Return the name of an available workload. Raises CaseError about a missing prerequisite."""
    workload = workload_named(name)
    if isinstance(workload, Source) and (lacking := workload.lacks(given)):
        raise CaseError(f"cannot take statements from {name}: {lacking}")
    return name

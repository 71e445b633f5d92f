"""Engine: a case from a plain seed."""

import random

from fuzz.errors import CaseError
from fuzz.execution.modes import MODES
from fuzz.generators.choices import chance, pick
from fuzz.generators.generator import Generator, Scale
from fuzz.sources.target import Target
from fuzz.sources.workloads import workload_named
from oracles.case import Case, CaseId
from oracles.mode import Mode


def case_of(case_id: CaseId, scale: Scale, target: Target | None = None) -> Case:
    """Return the case of an identity: the same on every machine; a source's is one for its target.

    Raises CaseError for an unknown generator or mode, and for a source without a target; a source's own errors.
    """
    return draw_case(random.Random(str(case_id)), workload_named(case_id.generator, target), scale)


def draw_case(rng: random.Random, generator: Generator, scale: Scale) -> Case:
    """Draw modes, then a case that runs under them."""
    modes = draw_modes(rng, generator)
    case = generator.generate(rng, scale)
    return Case(case.generator, case.scene, case.steps, modes)


def draw_modes(rng: random.Random, generator: Generator) -> tuple[Mode, ...]:
    """Return a composition of the generator's modes: one of settings, in half of the cases one of protocol as well.

    An entry of `generator.modes` may itself be a composition: names joined by +.
    """
    compositions = [tuple(_mode(name) for name in entry.split("+")) for entry in generator.modes]
    settings = [modes for modes in compositions if not any(mode.protocol for mode in modes)]
    protocols = [modes for modes in compositions if any(mode.protocol for mode in modes)]
    drawn = pick(rng, settings) if settings else ()
    if protocols and (not settings or chance(rng, 50)):
        drawn += pick(rng, protocols)
    return drawn


def _mode(name: str) -> Mode:
    if name not in MODES:
        raise CaseError(f"no mode is called {name!r}; there are: {', '.join(MODES)}")
    return MODES[name]

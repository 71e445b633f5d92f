"""A campaign whose results only its cases determine. Its findings are known faults, so none is reduced."""

from dataclasses import dataclass
from pathlib import Path

from fuzz.campaign.catalog import opened

CASES = ("--seed", "10", "--cases", "16")

# After the clock is set back, the server's pg_sleep would not end for a day.
_GENERATOR = '''\
"""A table of a megabyte, a pause, and a query of one, two or four rows."""

from fuzz.generators.generator import Generator
from oracles.model.case import Case, Kind, Step


class Rows(Generator):
    """A table of a megabyte, a pause, and a query of one, two or four rows."""

    name = "rows"
    modes = ("plain",)

    def generate(self, rng, scale):
        """Return a case with one table and one query."""
        table = Step("CREATE TABLE t AS SELECT repeat('x', 1000) FROM generate_series(1, 1000)")
        rows = rng.choice((1, 2, 4, 4))
        pause = Step("SELECT pg_sleep(0.4)")  # so that faults come before the last case, on busy processors too
        return Case(self.name, (table, pause), (Step(f"SELECT generate_series(1, {rows})", Kind.QUERY),))
'''
_ORACLE = """\
from oracles.framework.canaries import canary_case, query
from oracles.model.case import Kind
from oracles.model.finding import Finding
from oracles.model.observation import Outcome, Run
from oracles.model.oracle import Agree, Canary, Inconclusive, Oracle


class FewRows(Oracle):
    name = "few_rows"
    needs_another_arm = False
    canaries = (Canary("drop_row", canary_case(query("SELECT n FROM canary"))),)

    def judge(self, case, arms, observations):
        seen = observations[Run(arms[0], case.modes)].steps
        for number, (step, each) in enumerate(zip(case.all_steps, seen, strict=True)):
            if each.outcome is not Outcome.OK:
                return (Inconclusive("an error"),)
            if step.kind is Kind.QUERY and len(each.rows) % 2:
                return (Finding(self.name, (arms[0], arms[0]), "rows", number, "odd rows", "even", "odd"),)
            if step.kind is Kind.QUERY and len(each.rows) == 2:
                return (Inconclusive("two rows"),)
        return (Agree(len(seen)),)
"""
_KNOWN = """\
[[known]]
oracle = "few_rows"
origin = "rows"
"""


@dataclass(frozen=True)
class Results:
    """Everything that a fault must not change."""

    ended: str
    cases: int
    cases_in_ranges: int
    judged: int
    findings: dict[str, int]  # fingerprint → number of cases
    doubts: frozenset[str]


def options_of(directory: Path) -> tuple[str | Path, ...]:
    """Return the campaign's options, which name files in this directory."""
    generator, oracle, known = directory / "rows.py", directory / "few_rows.py", directory / "known.toml"
    generator.write_text(_GENERATOR)
    oracle.write_text(_ORACLE)
    known.write_text(_KNOWN)
    return ("--arm", "only=upstream", "--generator", generator, "--oracle", oracle, "--known", known)


def results_of(campaign: Path) -> Results:
    """Return the results in a campaign's store."""
    with opened(campaign) as store:
        counters = store.counters
        return Results(
            store.ended,
            counters.cases.total(),
            sum(store.done().values()),
            counters.judged.total(),
            {each.finding.fingerprint: each.count for each in store.findings()},
            frozenset(each.name for each in store.doubts()),
        )

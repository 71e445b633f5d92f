"""Source `regress`: files of src/test/regress or contrib, with the statements of other files that they need.

Arms are compared with each other, not with expected files, so any settings are possible. At first, the files that
patches of an arm add or change run as that arm has them, once under each mode. Then each file of the base runs once
under each mode of `rounds`. Later, random files run under random modes.
"""

import random
from typing import ClassVar, Final
from weakref import WeakKeyDictionary

from fuzz.errors import CaseError
from fuzz.generators.choices import pick
from fuzz.generators.generator import Scale
from fuzz.sources.context import SourceContext, UserInput
from fuzz.sources.determinism.catalog import Catalog
from fuzz.sources.scripts.psql import Sent
from fuzz.sources.scripts.refused import Refusals, comparable, refusals
from fuzz.sources.scripts.roles import Roles
from fuzz.sources.scripts.steps import Stager
from fuzz.sources.scripts.suites import REGRESS, Suite, changed_tests, file_of, parsed, set_up, suites
from fuzz.sources.source import Source
from oracles.model.case import Case, Step

_STATEMENTS: Final = 100  # statements per unit of scale.queries; at the default scale, more than in the longest file

# Statements of arms' own tests that the reference refuses, by part and length.
_refused: WeakKeyDictionary[SourceContext, dict[tuple[str, int], Refusals]] = WeakKeyDictionary()


class Regress(Source):
    """Files of PostgreSQL's own regression tests, under various settings."""

    name: ClassVar[str] = "regress"
    cpu_seconds: ClassVar[float] = 2.8
    modes: ClassVar[tuple[str, ...]] = (
        "plain",
        "small_memory",
        "hash_spilling",
        "hash_spilling+features_forced",
        "hash_spilling+partitionwise",
        "merge_only",
        "loop_only",
        "no_loops",
        "indexes",
        "no_pruning",
        "genetic",
        "parallel",
        "extended",
        "prepared_generic",
        "cursor",
    )

    rounds: ClassVar[tuple[str, ...]] = (
        "plain",
        "small_memory",
        "partitionwise",
        "merge_only",
        "loop_only",
        "parallel",
        "hash_spilling+features_forced",
    )

    @classmethod
    def lacks(cls, given: UserInput) -> str:
        """Return "", because each base has its tests."""
        return ""

    def generate(self, rng: random.Random, scale: Scale) -> Case:
        """Return the case of a random test. Raises CaseError if the base has no tests, and ServerError."""
        return self.replay(pick(rng, (*self.first_parts(), *self.parts())), rng, scale)

    def parts(self) -> tuple[str, ...]:
        """Return the test files, without suffix, whose modules are installed. Raises CaseError, ServerError."""
        found = suites(self.target.tree)
        if not found or found[0].directory != REGRESS:
            raise CaseError(f"the base has no {REGRESS}; a full source tree has it")
        return tuple(f"{suite.directory}/{test}" for suite in found if self._is_usable(suite) for test in suite.tests)

    def first_parts(self) -> tuple[str, ...]:
        """Return ARM:FILE for each test file that patches of an arm add or change. Raises ServerError."""
        return tuple(
            f"{arm}:{suite.directory}/{test}"
            for arm, patched in self.target.patched_trees.items()
            for suite, test in changed_tests(patched.tree, patched.others)
            if self._is_usable(suite)
        )

    def _is_usable(self, suite: Suite) -> bool:
        """Return whether a suite belongs to the core, or to a module that the reference has. Raises ServerError."""
        return suite.directory == REGRESS or suite.module in self.target.extensions

    def replay(self, part: str, rng: random.Random, scale: Scale) -> Case:
        """Return the case of one file. Raises CaseError, ServerError."""
        arm, _, path = part.rpartition(":")
        directory, _, test = path.rpartition("/")
        patched = self.target.patched_trees[arm] if arm else None
        tree = self.target.tree if patched is None else patched.tree
        suite = next(each for each in suites(tree) if each.directory == directory)
        with self.target.session(()) as connection:
            catalog = Catalog.of(connection)
        before = set_up(tree, suite, test)
        own = tuple(parsed(tree, suite.directory, test).sent[: scale.queries * _STATEMENTS])
        roles = Roles.of(before + own, rng)
        stager = Stager(catalog, lambda path: file_of(tree, suite, path), roles.names)

        def staged(sent: tuple[Sent, ...]) -> tuple[Step, ...]:
            return tuple(step for each in sent if (step := stager.step(roles.named(each))) is not None)

        case = Case(self.name, (*roles.scene, *staged(before)), staged(own), part=part)
        return case if patched is None else self._comparable(case, arm)

    def _comparable(self, case: Case, arm: str) -> Case:
        """Return the case of an arm's own test for all arms. Raises ServerError."""
        known = _refused.setdefault(self.target, {})
        key = case.part, len(case.all_steps)  # names of roles differ from case to case
        if key not in known:
            known[key] = refusals(case, lambda tried: self.target.tried(tried, arm))
        return comparable(case, known[key])

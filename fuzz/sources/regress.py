"""Source `regress`: files of src/test/regress or contrib, with the statements of other files that they need.

Arms are compared with each other, not with expected files, so any settings are possible. At first, each file runs once
under each mode of `rounds`. Later, random files run under random modes. PostgreSQL's source tree has the suites and the
order of their tests.
"""

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final

from pglast import ast
from pglast.parser import ParseError

from fuzz.errors import CaseError
from fuzz.generators.choices import pick
from fuzz.generators.generator import Scale
from fuzz.servers import git
from fuzz.sources.determinism.catalog import Catalog
from fuzz.sources.scripts.facts import changed_by, dropped_by, facts_of
from fuzz.sources.scripts.psql import Sent, read_script
from fuzz.sources.scripts.roles import Roles
from fuzz.sources.scripts.steps import StepConverter
from fuzz.sources.source import Source, UserInput
from oracles.model.case import Case, Step
from oracles.sql.parsing import parse_statements

# Statements that others need without naming their object.
_ALWAYS: Final = (ast.CreateExtensionStmt, ast.CreateCastStmt, ast.CreateSchemaStmt)


def needed(earlier: Sequence[Any], later: Iterable[Any]) -> tuple[int, ...]:
    """Return the positions of the earlier syntax trees that the later ones need, in ascending order.

    Statements are checked from the last to the first. One is needed if it creates or changes an object that a needed
    statement after it names. A DROP ends the search for its object.
    """
    wanted = set().union(*(facts_of(tree).uses | changed_by(tree) | _inherited(tree) for tree in later))
    found = []
    for position in reversed(range(len(earlier))):
        tree = earlier[position]
        wanted -= dropped_by(tree)
        if isinstance(tree, _ALWAYS) or not wanted.isdisjoint(changed_by(tree)):
            found.append(position)
            wanted |= facts_of(tree).uses
    return tuple(reversed(found))


def _inherited(tree: Any) -> set[str]:
    return {relation.relname for relation in getattr(tree, "inhRelations", None) or ()}


REGRESS: Final = "src/test/regress"
CONTRIB: Final = "contrib"
_SETUP: Final = "test_setup"
_INDEXES: Final = "create_index"  # according to the schedule, "many of the tests in later groups depend on" it
_DEPENDS: Final = re.compile(r"^# ([\w, ]+?) depends? on ([\w, ]+)", re.MULTILINE)
_MESON_TESTS: Final = re.compile(r"'regress': \{\s*'sql': \[(.*?)\]", re.DOTALL)
_PARSED: Final = 64  # parsed scripts in the cache
_SOURCE: Final = "@source@"  # replaces the directory of a suite


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests of a suite in schedule order, each with the tests whose results it may use."""

    directory: str
    tests: Mapping[str, tuple[str, ...]]

    @property
    def module(self) -> str:
        """Return the name of the directory."""
        return self.directory.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Parsed:
    """The messages of a script, and their syntax trees (None if a message cannot be parsed as one statement)."""

    sent: Sequence[Sent]
    trees: Sequence[Any]


@lru_cache(maxsize=4)
def suites(tree: str) -> tuple[Suite, ...]:
    """Return the suites of a source tree: src/test/regress first, then contrib modules.

    Modules are included if their meson.build has a plain list of tests.
    """
    schedule = git.show(tree, f"{REGRESS}/parallel_schedule") or ""
    found = [Suite(REGRESS, _scheduled(schedule))] if schedule else []
    listing = git.run("--git-dir", git.repository(), "ls-tree", "-d", "--name-only", f"{tree}:{CONTRIB}").stdout
    for module in listing.decode().split():
        named = _MESON_TESTS.search(git.show(tree, f"{CONTRIB}/{module}/meson.build") or "")
        if named:
            tests = re.findall(r"'(\w+)'", named[1])
            found.append(Suite(f"{CONTRIB}/{module}", {test: tuple(tests[:n]) for n, test in enumerate(tests)}))
    return tuple(found)


def _scheduled(schedule: str) -> dict[str, tuple[str, ...]]:
    """Return each test of a schedule with the tests that it depends on, in schedule order.

    Comments in the schedule state the dependencies.
    """
    lines = re.findall(r"^test: (.*)", schedule, re.MULTILINE)
    order = [test for line in lines for test in line.split()]
    direct: dict[str, set[str]] = {test: {_SETUP} for test in order}
    for test in order[order.index(_INDEXES) + 1 :] if _INDEXES in order else ():
        direct[test].add(_INDEXES)
    for who, on_what in _DEPENDS.findall(schedule):
        for test in re.findall(r"\w+", who):
            direct.get(test, set()).update(other for other in re.findall(r"\w+", on_what) if other in direct)
    return {test: tuple(other for other in order if other in _closure(test, direct)) for test in order}


def _closure(test: str, direct: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [test]
    while waiting:
        new = direct[waiting.pop()] - found - {test}
        found |= new
        waiting += new
    return found


@lru_cache(maxsize=_PARSED)
def parsed(tree: str, directory: str, test: str) -> Parsed:
    """Return a parsed test script; it is empty if the tree has none."""
    environment = {"PG_ABS_SRCDIR": _SOURCE, "PG_LIBDIR": "$libdir", "PG_DLSUFFIX": ""}
    sent = read_script(git.show(tree, f"{directory}/sql/{test}.sql") or "", {}, environment)
    return Parsed(sent, [_tree(each.sql) for each in sent])


def _tree(sql: str) -> Any:
    try:
        statements = parse_statements(sql)
    except ParseError:
        return None
    return statements[0].stmt if len(statements) == 1 else None


def set_up(tree: str, suite: Suite, test: str) -> tuple[Sent, ...]:
    """Return the messages of earlier tests that a test needs, in order."""
    earlier = [parsed(tree, suite.directory, other) for other in suite.tests[test]]
    sent = [each for script in earlier for each in script.sent]
    trees = [each for script in earlier for each in script.trees]
    known = [position for position, each in enumerate(trees) if each is not None]
    own = [each for each in parsed(tree, suite.directory, test).trees if each is not None]
    return tuple(sent[known[position]] for position in needed([trees[each] for each in known], own))


def file_of(tree: str, suite: Suite, path: str) -> bytes | None:
    """Return a data file that a script of the suite names, or None if it does not exist."""
    text = git.show(tree, f"{suite.directory}/{path.removeprefix(_SOURCE).lstrip('/')}")
    return None if text is None else text.encode()


_STATEMENTS: Final = 100  # statements per unit of scale.queries; at the default scale, more than in the longest file


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
        return self.replay(pick(rng, self.parts()), rng, scale)

    def parts(self) -> tuple[str, ...]:
        """Return the test files, without suffix, whose modules are installed. Raises CaseError, ServerError."""
        return tuple(f"{suite.directory}/{test}" for suite in self._suites() for test in suite.tests)

    def _suites(self) -> tuple[Suite, ...]:
        found = suites(self.target.tree)
        if not found or found[0].directory != REGRESS:
            raise CaseError(f"the base has no {REGRESS}; a full source tree has it")
        core, *others = found
        return core, *(each for each in others if each.module in self.target.extensions)

    def replay(self, part: str, rng: random.Random, scale: Scale) -> Case:
        """Return the case of one file. Raises CaseError, ServerError."""
        directory, _, test = part.rpartition("/")
        suite = next(each for each in self._suites() if each.directory == directory)
        with self.target.session(()) as connection:
            catalog = Catalog.of(connection)
        tree = self.target.tree
        before = set_up(tree, suite, test)
        own = tuple(parsed(tree, suite.directory, test).sent[: scale.queries * _STATEMENTS])
        roles = Roles.of(before + own, rng)
        converter = StepConverter(catalog, lambda path: file_of(tree, suite, path), roles.names)

        def steps_of(sent: tuple[Sent, ...]) -> tuple[Step, ...]:
            return tuple(step for each in sent if (step := converter.step(roles.named(each))) is not None)

        return Case(self.name, (*roles.scene, *steps_of(before)), steps_of(own), part=part)

"""Source `regress`: files of src/test/regress or contrib, with the statements of other files that they need.

Arms are compared with each other, not with expected files, so any settings are possible. At first, the statements that
patches of an arm add to these files run once under each mode. Then each file of the base runs once under each mode of
`rounds`. Later, random files run under random modes. PostgreSQL's source tree has the suites and the order of their
tests.

The tests of patches come in chunks of their files, so that no case takes minutes. An arm that lacks the feature of a
statement refuses it, so no arm executes that one (fuzz/sources/scripts/trial.py).
"""

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final
from weakref import WeakKeyDictionary

from pglast import ast

from fuzz.errors import CaseError
from fuzz.generators.choices import pick
from fuzz.generators.generator import Scale
from fuzz.servers import git
from fuzz.sources.determinism.catalog import Catalog
from fuzz.sources.scripts.facts import changed_by, dropped_by, facts_of
from fuzz.sources.scripts.psql import Sent, read_script
from fuzz.sources.scripts.roles import Roles
from fuzz.sources.scripts.steps import StepConverter
from fuzz.sources.scripts.trial import Trial, drop_roles, tried
from fuzz.sources.source import Source, SourceContext, UserInput
from oracles.model.case import Case, Step
from oracles.sql.building import statement_of

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
_TREES: Final = 8  # in the caches
_PARSED: Final = 64  # parsed scripts in the cache
_WHOLE: Final = slice(0, None)
CHUNK: Final = 60  # statements of a patch's own test in one case, after those that they need
_OWN_PART: Final = re.compile(r"(?P<arm>\w+):(?P<directory>.+)/(?P<test>\w+), chunk (?P<number>\d+)")
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


@lru_cache(maxsize=_TREES)
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
def messages(tree: str, directory: str, test: str) -> Sequence[Sent]:
    """Return the messages of a test script; none if the tree does not have it."""
    environment = {"PG_ABS_SRCDIR": _SOURCE, "PG_LIBDIR": "$libdir", "PG_DLSUFFIX": ""}
    return read_script(git.show(tree, f"{directory}/sql/{test}.sql") or "", {}, environment)


@lru_cache(maxsize=_PARSED)
def parsed(tree: str, directory: str, test: str) -> Parsed:
    """Return a parsed test script; it is empty if the tree has none."""
    sent = messages(tree, directory, test)
    return Parsed(sent, [statement_of(each.sql) for each in sent])


def set_up(tree: str, suite: Suite, test: str, part: slice = _WHOLE) -> tuple[Sent, ...]:
    """Return the messages of earlier tests, and those of the test before this part of it, that the part needs."""
    script = parsed(tree, suite.directory, test)
    earlier = [parsed(tree, suite.directory, other) for other in suite.tests[test]]
    sent = [each for other in earlier for each in other.sent] + list(script.sent[: part.start])
    trees = [each for other in earlier for each in other.trees] + list(script.trees[: part.start])
    known = [position for position, each in enumerate(trees) if each is not None]
    own = [each for each in script.trees[part] if each is not None]
    found = {known[position] for position in needed([trees[each] for each in known], own)}
    others = sum(len(other.sent) for other in earlier)
    found.update(position for position in known if position >= others and _is_setting(trees[position]))
    return tuple(sent[position] for position in sorted(found))


def _is_setting(tree: Any) -> bool:
    """Return whether a statement sets a parameter for later statements, too."""
    return isinstance(tree, ast.VariableSetStmt) and not tree.is_local


@lru_cache(maxsize=_TREES)
def own_chunks(tree: str, without: tuple[str, ...]) -> tuple[tuple[Suite, str, int], ...]:
    """Return the chunks of a tree's tests with a statement that none of the other trees has in this test.

    Each has its suite, its test, and its number. Raises SourceError.
    """
    paths = set.intersection(*(set(git.changed_files(other, tree, deleted=False)) for other in without))
    return tuple(
        (suite, test, number)
        for suite in suites(tree)
        for test in suite.tests
        if f"{suite.directory}/sql/{test}.sql" in paths
        for number in _new_chunks(suite, test, tree, without)
    )


def _new_chunks(suite: Suite, test: str, tree: str, without: Iterable[str]) -> Iterator[int]:
    known = {each.sql for other in without for each in messages(other, suite.directory, test)}
    sent = messages(tree, suite.directory, test)
    for number, start in enumerate(range(0, len(sent), CHUNK)):
        if any(each.sql not in known for each in sent[start : start + CHUNK]):
            yield number


def file_of(tree: str, suite: Suite, path: str) -> bytes | None:
    """Return a data file that a script of the suite names, or None if it does not exist."""
    text = git.show(tree, f"{suite.directory}/{path.removeprefix(_SOURCE).lstrip('/')}")
    return None if text is None else text.encode()


_STATEMENTS: Final = 100  # statements per unit of scale.queries; at the default scale, more than in the longest file

_TRIALS: Final[WeakKeyDictionary[SourceContext, dict[str, Trial]]] = WeakKeyDictionary()  # of patches' tests, by part


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
        """Return the case of a random test. Raises CaseError if the base has no tests, SourceError, ServerError."""
        return self.replay(pick(rng, (*self.first_parts(), *self.parts())), rng, scale)

    def parts(self) -> tuple[str, ...]:
        """Return the test files, without suffix, whose modules are installed. Raises CaseError, ServerError."""
        return tuple(f"{suite.directory}/{test}" for suite in self._suites() for test in suite.tests)

    def _suites(self) -> tuple[Suite, ...]:
        found = suites(self.target.trees[0])
        if not found or found[0].directory != REGRESS:
            raise CaseError(f"the base has no {REGRESS}; a full source tree has it")
        core, *others = found
        return core, *(each for each in others if each.module in self.target.extensions)

    def first_parts(self) -> tuple[str, ...]:
        """Return the chunks of tests that patches of an arm, not of the reference, add or change.

        A single arm has those of its own patches. Raises SourceError, ServerError.
        """
        reference, *others = self.target.arms or (self.target,)
        patched = others or self.target.arms
        return tuple(
            f"{arm.name}:{suite.directory}/{test}, chunk {number}"
            for arm in patched
            for suite, test, number in _own_chunks_of(arm, reference)
            if suite.directory == REGRESS or suite.module in self.target.extensions
        )

    def replay(self, part: str, rng: random.Random, scale: Scale) -> Case:
        """Return the case of one file of the base, or of an item of `first_parts`. Raises CaseError, ServerError."""
        if chunk := _OWN_PART.fullmatch(part):
            return self._of_chunk(chunk, rng)
        directory, _, test = part.rpartition("/")
        suite = next(each for each in self._suites() if each.directory == directory)
        tree = self.target.trees[0]
        own = tuple(parsed(tree, suite.directory, test).sent[: scale.queries * _STATEMENTS])
        before = set_up(tree, suite, test)
        return self._case(part, tree, suite, before, own, Roles.of(before + own, rng))

    def _of_chunk(self, chunk: re.Match[str], rng: random.Random) -> Case:
        """Return the case of a chunk of a patch's own test. Raises CaseError, ServerError."""
        arm = next((each for each in self.target.arms if each.name == chunk["arm"]), None)
        if arm is None:
            raise CaseError(f"{chunk[0]} needs the arm {chunk['arm']}")
        tree, test, start = arm.trees[-1], chunk["test"], int(chunk["number"]) * CHUNK
        suite = next(each for each in suites(tree) if each.directory == chunk["directory"])
        part = slice(start, start + CHUNK)
        before, own = set_up(tree, suite, test, part), tuple(parsed(tree, suite.directory, test).sent[part])
        roles = Roles.of(before + own, rng)
        case = self._case(chunk[0], tree, suite, before, own, roles)
        trials = _TRIALS.setdefault(self.target, {})
        if chunk[0] not in trials:  # names of roles differ from case to case, but not what becomes of the statements
            trials[chunk[0]] = self._tried(arm, case, roles)
        return trials[chunk[0]].applied(case)

    def _tried(self, own: SourceContext, case: Case, roles: Roles) -> Trial:
        """Execute a case of an arm's own test on all arms. Raises ServerError."""
        others = [each for each in self.target.arms if each is not own]
        if not others:
            return Trial(frozenset(), len(case.all_steps))
        with ExitStack() as stack:
            # The last session ends first, and so raises LostServer if a crash of its arm ends the trial.
            *rest, last = [stack.enter_context(each.session(())) for each in (*others, own)]
            trial = tried(last, rest, case.all_steps)
            for connection in (*rest, last):
                drop_roles(connection, sorted(roles.names))
            return trial

    def _case(
        self, part: str, tree: str, suite: Suite, before: tuple[Sent, ...], own: tuple[Sent, ...], roles: Roles
    ) -> Case:
        """Return the case of statements of a test, after those that they need. Raises ServerError."""
        with self.target.session(()) as connection:
            catalog = Catalog.of(connection)
        converter = StepConverter(catalog, lambda path: file_of(tree, suite, path), roles.names)

        def steps_of(sent: tuple[Sent, ...]) -> tuple[Step, ...]:
            return tuple(step for each in sent if (step := converter.step(roles.named(each))) is not None)

        return Case(self.name, (*roles.scene, *steps_of(before)), steps_of(own), part=part)


def _own_chunks_of(arm: SourceContext, reference: SourceContext) -> tuple[tuple[Suite, str, int], ...]:
    """Return the chunks of an arm's own tests. Raises SourceError."""
    own = arm.trees[-1]
    without = dict.fromkeys((arm.trees[0], *(() if arm is reference else (reference.trees[-1],))))
    return () if own in without else own_chunks(own, tuple(without))

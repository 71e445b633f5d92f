"""Mutants: the lines of C that a series adds, each changed in one place by universalmutator's rules."""

import hashlib
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from io import StringIO
from typing import Final

from fuzz.errors import PgduelError
from fuzz.servers import git
from fuzz.servers.coverage import changed_files, line_owners

PACKAGE: Final = "universalmutator"
_RULES: Final = ("universal.rules", "c.rules", "c_like.rules")  # as its own command chooses them for C
# A correct program behaves the same without its assertions. Conditional compilation is no statement.
_IGNORED: Final = (r"^\s*(Static)?Assert\w*\s*\(", r"^\s*#\s*(if|el|endif|undef|error|pragma)", r"^\s*[{}]\s*$")
_CONTEXT: Final = 3  # lines
_TOKEN: Final = re.compile(r"""(?P<comment>/\*.*?\*/)|(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|\w+|\S""")
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_UNDECODED: Final = "\N{REPLACEMENT CHARACTER}"
_ADDED: Final = frozenset({"break", "continue"})  # words that rules add to lines


@dataclass(frozen=True, slots=True)
class Mutant:
    """One line of one patch, changed."""

    patch: str  # name of the patch that added the line
    file: str
    line: int  # number in the tree of the whole series
    before: str
    after: str
    rule: str  # of universalmutator: PATTERN ==> REPLACEMENT
    diff: str

    @property
    def key(self) -> str:
        """Return 12 hexadecimal digits that identify the mutant's diff."""
        return hashlib.sha256(self.diff.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class MutableLine:
    """A line that a patch adds, and its changed texts, each with the rule that made it."""

    patch: str
    file: str
    number: int
    text: str
    changes: tuple[tuple[str, str], ...]  # (rule, text)


def mutator_version() -> str:
    """Return universalmutator's version, which the mutants depend on. Raises PgduelError if it is not installed."""
    try:
        return version(PACKAGE)
    except PackageNotFoundError as error:
        raise PgduelError(
            f"mutants need the Python package {PACKAGE}, which is not installed; install pgduel[mutate]"
        ) from error


def mutable_lines(trees: Sequence[str], patches: Sequence[str]) -> tuple[MutableLine, ...]:
    """Return the lines that patches add to the server and that have mutants, in the order of patch, file and line.

    `trees` are those after each prefix of the patches, first the one without them. Links, and files that are no UTF-8,
    have none. Raises SourceError.
    """
    files = [file for file in changed_files(trees[0], trees[-1]) if not git.is_link(trees[-1], file)]
    read = {file: git.show(trees[-1], file) or "" for file in files}
    texts = {file: lines_of(text) for file, text in read.items() if _UNDECODED not in text}
    changes = {file: _changes(lines) for file, lines in texts.items()}
    return tuple(
        MutableLine(patch, file, number, texts[file][number - 1], tuple(changes[file][number]))
        for patch, owned in zip(patches, line_owners(trees, list(texts)), strict=True)
        for file in sorted(owned)
        for number in sorted(owned[file])
        if number in changes[file]
    )


def lines_of(text: str) -> list[str]:
    """Return the lines of a file as git counts them: a line feed ends each, and nothing else does."""
    return text.removesuffix("\n").split("\n")


def _changes(lines: Sequence[str]) -> dict[int, list[tuple[str, str]]]:
    """Return the changes of the lines of a C file by number.

    All texts of a line differ in tokens outside comments and quoted texts. None has a word that the file lacks: rules
    also change numbers within names.
    """
    from universalmutator.mutator import mutants_regexp  # not at the top, because it is not always installed

    source = [f"{line}\n" for line in lines]
    with redirect_stdout(StringIO()):  # it prints its progress
        found = mutants_regexp(source, list(_RULES), ignorePatterns=_IGNORED, ignoreStringOnly=True)
    words = _ADDED.union(*map(_WORD.findall, lines))
    changes: dict[int, list[tuple[str, str]]] = defaultdict(list)
    seen = set[tuple[int, tuple[str, ...]]]()
    for number, mutated, (rule, _), _ in found:
        # An added statement stays in its line, so that the numbers of other lines, which assertions contain, stay, too.
        changed = " ".join(mutated.rstrip("\n").split("\n"))
        tokens = _tokens(changed)
        known = words.issuperset(token for token in tokens if _WORD.fullmatch(token))
        if known and tokens != _tokens(source[number - 1]) and (number, tokens) not in seen:
            seen.add((number, tokens))
            changes[number].append((rule, changed))
    return changes


def _tokens(line: str) -> tuple[str, ...]:
    """Return a line's tokens: names, numbers and single signs, without comments. Quoted texts are all alike."""
    found = (token for token in _TOKEN.finditer(line) if token["comment"] is None)
    return tuple('""' if token["text"] is not None else token[0] for token in found)


def drawn(lines: Sequence[MutableLine], tree: str, seed: int) -> Iterator[Mutant]:
    """Yield all mutants in a random order that depends on the seed only: one of each line, then another of each.

    On a line, patterns have equal chances, because some have many replacements. `tree` has the lines.
    """
    rng = random.Random(f"{seed}/mutants")
    texts = {file: lines_of(git.show(tree, file) or "") for file in sorted({line.file for line in lines})}
    left = [(line, list(line.changes)) for line in rng.sample(lines, len(lines))]
    while left:
        for line, changes in left:
            rule, after = changes.pop(_position(rng, changes))
            diff = diff_of(line.file, texts[line.file], line.number, after)
            yield Mutant(line.patch, line.file, line.number, line.text, after, rule, diff)
        left = [(line, changes) for line, changes in left if changes]


def _position(rng: random.Random, changes: Sequence[tuple[str, str]]) -> int:
    by_pattern: dict[str, list[int]] = defaultdict(list)
    for position, (rule, _) in enumerate(changes):
        by_pattern[rule.partition(" ==>")[0]].append(position)
    return rng.choice(by_pattern[rng.choice(sorted(by_pattern))])


def text_of(mutant: Mutant, tree: str) -> str:
    """Return the mutated file. `tree` has the line that the mutant replaces."""
    lines = lines_of(git.show(tree, mutant.file) or "")
    lines[mutant.line - 1] = mutant.after
    return "\n".join((*lines, ""))


def diff_of(file: str, lines: Sequence[str], number: int, after: str) -> str:
    """Return a unified diff that replaces one line of a file."""
    first, last = max(1, number - _CONTEXT), min(len(lines), number + _CONTEXT)
    above = [f" {text}" for text in lines[first - 1 : number - 1]]
    below = [f" {text}" for text in lines[number:last]]
    count = last - first + 1
    return "\n".join(
        (
            f"diff --git a/{file} b/{file}",
            f"--- a/{file}",
            f"+++ b/{file}",
            f"@@ -{first},{count} +{first},{count} @@",
            *above,
            f"-{lines[number - 1]}",
            f"+{after}",
            *below,
            "",
        )
    )

"""Tests of mutants: the lines they are made of, their draw, and their patches."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fuzz.mutation.mutants import MutableLine, Mutant, diff_of, drawn, mutable_lines, text_of
from fuzz.mutation.result import DuelResult, MutantResult
from fuzz.mutation.run import limited, subject_of
from fuzz.servers import git
from fuzz.servers.arm import ArmSpec
from fuzz.servers.base import Base
from fuzz.servers.flavor import FLAVORS
from fuzz.servers.series import Patch, Series, apply_series, series_from_range
from tests.servers import sources

FILE = "src/backend/sum.c"
BASE = """\
int
sum(int a, int b)
{
	if (a > b)
		return a;
	return a + b;
}
"""
FIRST = """\
	/*
	A comment: a < b.
	*/
	Assert(a >= 0);
	if (a < b)
		note(a, b);
"""
SECOND = "\tcount += 2;\n"
THIRD = '\tcount = INT32("4 rows", 8);\n'


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDUEL_HOME", str(tmp_path / "home"))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a repository with the tag `base` and two later commits, which add lines to a C file, and to others."""
    checkout = sources.plant(tmp_path / "checkout")
    file, test = checkout / FILE, checkout / "src" / "test" / "regress" / "regress.c"
    for path in (file, test):
        path.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(BASE)
    sources.git(checkout, "init", "--quiet", "--initial-branch=topic")
    sources.commit(checkout, "base")
    sources.git(checkout, "tag", "base")
    above, below = BASE.partition("\treturn a + b;\n")[0], "\treturn a + b;\n}\n"
    file.write_text(above + FIRST + below)
    sources.commit(checkout, "First")
    file.write_text(above + FIRST + SECOND + below)
    test.write_text("int x = 1 + 1;\n")
    (checkout / "README").write_text("a + b\n")
    sources.commit(checkout, "Second")
    return checkout


@pytest.fixture
def series(checkout: Path) -> Series:
    return series_from_range(checkout, "base..topic")


@pytest.fixture
def trees(checkout: Path, series: Series) -> tuple[str, ...]:
    return apply_series(git.import_revision(checkout, "base"), series)


@pytest.fixture
def lines(trees: Sequence[str]) -> tuple[MutableLine, ...]:
    return mutable_lines(trees, ["first", "second"])


def test_statements_that_patches_add_have_mutants(lines: Sequence[MutableLine]) -> None:
    assert [(line.patch, line.file, line.number, line.text.strip()) for line in lines] == [
        ("first", FILE, 10, "if (a < b)"),
        ("first", FILE, 11, "note(a, b);"),
        ("second", FILE, 12, "count += 2;"),
    ]
    texts = {text.strip() for line in lines for _, text in line.changes}
    assert {"if (a <= b)", "if (!(a < b))", "/*note(a, b);*/", "/*count += 2;*/", "count += (2-1);"} <= texts
    assert any("".join(text.split()) == "note(b,a);" for text in texts)


def test_a_mutant_is_one_line(lines: Sequence[MutableLine]) -> None:
    assert not any("\n" in text for line in lines for _, text in line.changes)
    assert "count += 2; 	continue;" in {text.strip() for line in lines for _, text in line.changes}


def test_names_and_texts_have_no_mutants(checkout: Path) -> None:
    sources.git(checkout, "tag", "before")
    (checkout / FILE).write_text(THIRD + BASE)
    sources.commit(checkout, "Third")
    series = series_from_range(checkout, "before..topic")
    (line,) = mutable_lines(apply_series(git.import_revision(checkout, "before"), series), ["third"])
    texts = {text for _, text in line.changes}
    assert any("(8+1)" in text for text in texts)
    assert all(text.replace(" ", "").startswith(("\tcount=INT32(", "\t/*count")) for text in texts)
    assert not any(part in text for text in texts for part in ("(4+1)", '""'))


def test_the_draw_depends_on_the_seed_alone(lines: Sequence[MutableLine], trees: Sequence[str]) -> None:
    mutants = list(drawn(lines, trees[-1], 1))
    assert mutants == list(drawn(lines, trees[-1], 1))
    assert mutants != list(drawn(lines, trees[-1], 2))
    assert len({mutant.key for mutant in mutants}) == len(mutants) == sum(len(line.changes) for line in lines)
    assert {mutant.line for mutant in mutants[:3]} == {10, 11, 12}


def test_a_mutant_is_a_patch_on_top_of_the_series(
    lines: Sequence[MutableLine], trees: Sequence[str], series: Series
) -> None:
    whole = (git.show(trees[-1], FILE) or "").splitlines()
    for mutant in drawn(lines, trees[-1], 1):
        mutation = Series("mutant", (Patch("mutant.patch", mutant.diff.encode()),))
        mutated = (git.show(apply_series(trees[0], series + mutation)[-1], FILE) or "").splitlines()
        changed = [number for number, pair in enumerate(zip(whole, mutated, strict=True), 1) if len(set(pair)) > 1]
        assert changed == [mutant.line]
        assert text_of(mutant, trees[-1]).splitlines() == mutated
        assert (whole[mutant.line - 1], mutated[mutant.line - 1]) == (mutant.before, mutant.after)


def test_a_diff_has_less_context_at_the_ends_of_a_file() -> None:
    assert diff_of("a.c", ["1", "2"], 2, "3").splitlines()[3:] == ["@@ -1,2 +1,2 @@", " 1", "-2", "+3"]
    assert diff_of("a.c", ["1"], 1, "3").splitlines()[3:] == ["@@ -1,1 +1,1 @@", "-1", "+3"]


def test_other_characters_at_which_text_may_break_end_no_line(checkout: Path) -> None:
    sources.git(checkout, "tag", "before")
    file = checkout / FILE
    file.write_bytes(b"int x;\n\f\n/* \xc2\x85 */\r\n" + file.read_bytes() + b"\tcount -= 2;\n")
    sources.commit(checkout, "Third")
    trees = apply_series(git.import_revision(checkout, "before"), series_from_range(checkout, "before..topic"))
    lines = [line for line in mutable_lines(trees, ["third"]) if "count" in line.text]
    assert [line.text for line in lines] == ["\tcount -= 2;"]
    for mutant in drawn(lines, trees[-1], 1):
        mutated = apply_series(trees[-1], Series("mutant", (Patch("mutant.patch", mutant.diff.encode()),)))[-1]
        assert text_of(mutant, trees[-1]) == git.show(mutated, FILE)


def test_links_and_files_in_other_encodings_have_no_mutants(checkout: Path) -> None:
    sources.git(checkout, "tag", "before")
    (checkout / "src" / "backend" / "link.c").symlink_to("/tmp/a+b.c")
    (checkout / FILE).write_bytes(b"int x = 1 + 2; /* \xe4 */\n")
    sources.commit(checkout, "Third")
    trees = apply_series(git.import_revision(checkout, "before"), series_from_range(checkout, "before..topic"))
    assert mutable_lines(trees, ["third"]) == ()


def mutants_of(patch: str, number: int) -> list[Mutant]:
    return [Mutant(patch, FILE, line, "", "", "", f"{patch}{line}") for line in range(number)]


@pytest.mark.parametrize(
    ("patches", "expected"),
    [(("a",), {"a": 6}), (("a", "b"), {"a": 3, "b": 3}), (("a", "b", "c", "d"), {"a": 2, "b": 2, "c": 2})],
)
def test_a_third_of_the_judged_mutants_is_of_one_patch(patches: Sequence[str], expected: dict[str, int]) -> None:
    results: list[MutantResult] = []
    for mutant in limited((each for name in patches for each in mutants_of(name, 20)), len(patches), 6, results):
        invalid = "does not compile" if mutant.line % 2 else ""
        results.append(MutantResult(mutant, invalid, None if invalid else DuelResult(1)))
    judged = [result.mutant.patch for result in results if result.judged]
    assert {patch: judged.count(patch) for patch in judged} == expected


def test_the_subject_is_what_the_last_arm_has_and_the_first_lacks(checkout: Path, series: Series) -> None:
    tree = git.import_revision(checkout, "base")
    base, flavor = Base("small", "17.99", "", tree), FLAVORS["assert"]
    first, second = series.patches
    last = ArmSpec("patched", base, series, flavor)
    whole = apply_series(tree, series)
    for reference, trees, patches in (
        ((), whole, (first, second)),
        ((first,), whole[1:], (second,)),
        ((first, second), whole[2:], ()),
    ):
        subject = subject_of([ArmSpec("master", base, Series("some", reference), flavor), last])
        assert (subject.trees, subject.patches) == (trees, patches)
    assert subject_of([last]).patches == (first, second)
    other = replace(last, settings=(("enable_hashjoin", "off"),))
    assert subject_of([other]).identity != subject_of([last]).identity  # results are of one choice of settings

"""The functions of PostgreSQL that a series changes."""

from pathlib import Path
from textwrap import dedent

from fuzz.campaign.direction.direction import changed_functions, functions_at
from fuzz.servers import git

BEFORE = dedent(
    """\
    #include "postgres.h"

    static int calls;

    PG_FUNCTION_INFO_V1(first);

    /* Return nothing. */
    Datum
    first(PG_FUNCTION_ARGS)
    {
      calls++;
      PG_RETURN_VOID();
    }

    static bool
    second(int a,
    int b)
    {
    again:
      return a < b;
    }
    """
)


def tree_of(directory: Path, **files: str) -> str:
    directory.mkdir()
    for name, text in files.items():
        (directory / f"{name}.c").write_text(text)
    return git.import_directory(directory)


def test_a_line_belongs_to_the_definition_above_it() -> None:
    lines = {text: number for number, text in enumerate(BEFORE.splitlines(), start=1)}
    assert [*functions_at(BEFORE, [lines["static int calls;"]])] == []
    assert [*functions_at(BEFORE, [lines["  calls++;"], lines["  return a < b;"]])] == ["first", "second"]


def test_changed_added_and_removed_functions_are_found(tmp_path: Path) -> None:
    before = tree_of(tmp_path / "before", kept=BEFORE, same=BEFORE, gone=BEFORE)
    changed = BEFORE.replace("a < b", "a <= b") + "\nvoid\nthird(void)\n{\n}\n"
    after = tree_of(tmp_path / "after", kept=changed, same=BEFORE)
    assert changed_functions(before, after) == {
        ("kept.c", "second"),
        ("kept.c", "third"),
        ("gone.c", "first"),
        ("gone.c", "second"),
    }
    assert changed_functions(after, after) == frozenset()

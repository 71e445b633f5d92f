"""Tests of the comparison of isolationtester's output, and of specs with settings."""

from pathlib import Path

import pytest

from fuzz.engines.isolation import PERTURBED, Spec, is_reproducible, normalised, read_spec, reproducer
from fuzz.errors import CaseError
from fuzz.execution.modes import MODES

OUTPUT = """\
Parsed test spec with 2 sessions

starting permutation: r1 w2
step r1: SELECT a, b FROM t;
a|b
-+--
{}
{}
(2 rows)

step w2: UPDATE t SET a = 1; <waiting ...>
"""
SPEC = Spec("two", "session s1\nstep r1 { SELECT 1; }\n", "hash_spilling+features_forced")


def test_rows_are_compared_in_any_order() -> None:
    one, other = (normalised(OUTPUT.format(*rows)) for rows in (("1|x", "2|y"), ("2|y", "1|x")))
    assert one == other
    assert one != normalised(OUTPUT.format("1|x", "2|z"))


def test_steps_are_compared_in_order() -> None:
    lines = OUTPUT.format("1|x", "2|y").splitlines()
    assert normalised("\n".join(lines)) != normalised("\n".join([*lines[-1:], *lines[:-1]]))


def test_only_reproducible_output_is_compared() -> None:
    assert is_reproducible(["a"] * 5, ["b"] * 5)
    assert not is_reproducible(["a"] * 5, ["b", "b", "a", "b", "b"])
    assert not is_reproducible(["a", "b", "a", "a", "a"], ["c"] * 5)
    assert not is_reproducible(["a"] * 5, ["a"] * 5)


def test_a_reproducer_is_a_spec_that_names_its_settings(tmp_path: Path) -> None:
    file = tmp_path / "two.spec"
    file.write_text(reproducer(SPEC, ["it differs", "-1", "+2"]))
    again = read_spec(file)
    assert (again.name, again.modes) == (SPEC.name, SPEC.modes)
    assert [mode.name for mode in again.settings] == ["hash_spilling", "features_forced"]
    code = [line for line in again.text.splitlines() if line and not line.startswith("#")]
    assert code == SPEC.text.splitlines()
    assert reproducer(again, ["it differs"]).count("# pgduel: modes") == 1


def test_a_spec_without_settings_has_the_mode_plain(tmp_path: Path) -> None:
    (tmp_path / "two.spec").write_text(SPEC.text)
    assert read_spec(tmp_path / "two.spec").modes == "plain"
    (tmp_path / "two.spec").write_text("# pgduel: modes nonsense\n")
    with pytest.raises(CaseError, match="no mode is called 'nonsense'"):
        read_spec(tmp_path / "two.spec")


def test_perturbed_settings_are_modes() -> None:
    assert {name for entry in PERTURBED for name in entry.split("+")} <= set(MODES)

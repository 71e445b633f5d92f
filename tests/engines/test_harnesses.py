"""Tests of native harnesses without compiling them: their folders, and the origins of failures."""

from pathlib import Path

import pytest

from fuzz.engines.libfuzzer import build
from fuzz.engines.libfuzzer.build import all_harnesses, harness_named
from fuzz.engines.libfuzzer.kept import failure_of
from fuzz.errors import CaseError
from tests.libfuzzer.harnesses import TOP

OWN = """INFO: Seed: 1
#2\tINITED cov: 3 ft: 3 corp: 1/1b exec/s: 0 rss: 30Mb

pgduel harness: value 9ca066f1 was added, and is said not to be there
==1776== ERROR: libFuzzer: deadly signal
    #3 0x7fecb8e5a04f  (/lib/x86_64-linux-gnu/libc.so.6+0x3c04f) (BuildId: 93ac)
    #7 0x000000546a1b in fatal harness/failure.c:20:2
    #8 0x000000545e13 in check_members harness/blockbloom/harness.c:122:4
    #9 0x0000005445ba in LLVMFuzzerTestOneInput harness/blockbloom/harness.c:230:2
"""
ASSERTION = """
pgduel harness: failed assertion: owner->narr < RESOWNER_ARRAY_SIZE, line 553
==3== ERROR: libFuzzer: deadly signal
    #7 0x000000546a1b in fatal harness/failure.c:20:2
    #8 0x000000546a1c in ExceptionalCondition harness/failure.c:26:2
    #9 0x000000545e13 in ResourceOwnerRemember ./src/backend/utils/resowner/resowner.c:553:4
"""
OVERFLOW = """
=================================================================
==9==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602000000115 at pc 0x00000054 bp 0x7f sp 0x7e
READ of size 8 at 0x602000000115 thread T0
    #0 0x0000004d2f1b in __asan_memcpy (/x/blockbloom+0x4d2f1b) (BuildId: 70c8)
    #1 0x000000545e13 in blockbloom_fold src/backend/lib/blockbloom.c:98:4
"""
UNDEFINED = """
src/include/lib/blockbloom.h:88:30: runtime error: shift exponent 64 is too large for 64-bit type 'uint64'
    #0 0x000000545e13 in blockbloom_locate src/include/lib/blockbloom.h:88:30
"""
LEAK = """
==4==ERROR: LeakSanitizer: detected memory leaks

Direct leak of 32 byte(s) in 1 object(s) allocated from:
    #0 0x0000004d2f1b in malloc (/x/buckets+0x4d2f1b) (BuildId: 70c8)
    #1 0x000000545e10 in palloc harness/backend_stubs.c:50:4
    #2 0x000000545e13 in dense_alloc src/backend/executor/nodeHash.c:2900:4
"""
SERVER_ASSERTION = """
TRAP: failed Assert("slot != NULL"), File: "../source/src/backend/executor/nodeHash.c", Line: 5, PID: 71
postgres(ExceptionalCondition+0x97)[0x55]
==71== ERROR: libFuzzer: deadly signal
    #7 0x55f in ExceptionalCondition /x/build/../source/src/backend/utils/error/assert.c:66:2
    #8 0x55e in ExecHashTableInsert /x/build/../source/src/backend/executor/nodeHash.c:5:2
"""
SERVER_ERROR = """
pgduel harness: XX000: could not find 3 rows, raised in ExecSort, nodeSort.c
==3== ERROR: libFuzzer: deadly signal
    #8 0x000000545e13 in rows_of harness/queries/harness.c:90:4
"""
SLOW = """
pgduel harness: a process takes more than 20 s of CPU time
==3== ERROR: libFuzzer: deadly signal
    #8 0x000000545e13 in ExecInterpExpr /x/source/src/backend/executor/execExprInterp.c:90:4
"""
TIMEOUT = """
ALARM: working on the last Unit for 61 seconds
==5== ERROR: libFuzzer: timeout after 61 seconds
    #8 0x000000545e13 in ResourceOwnerSort src/backend/utils/resowner/resowner.c:300:4
"""


@pytest.mark.parametrize(
    ("output", "origin"),
    [
        (OWN, "check in check_members, blockbloom/harness.c:122"),
        (ASSERTION, "failed assertion owner->narr < RESOWNER_ARRAY_SIZE in ResourceOwnerRemember"),
        (OVERFLOW, "AddressSanitizer: heap-buffer-overflow in blockbloom_fold, src/backend/lib/blockbloom.c"),
        (UNDEFINED, "shift exponent in blockbloom_locate, src/include/lib/blockbloom.h"),
        (LEAK, "LeakSanitizer: detected memory leaks in dense_alloc, src/backend/executor/nodeHash.c"),
        (TIMEOUT, "libFuzzer: timeout after"),
        (SERVER_ASSERTION, "failed assertion slot != NULL in ExecHashTableInsert"),
        (SERVER_ERROR, "XX000 in ExecSort, nodeSort.c"),
        (SLOW, "a process takes more than"),
    ],
)
def test_the_origin_of_a_failure_does_not_depend_on_the_input(output: str, origin: str) -> None:
    failure = failure_of(output, b"")
    assert failure.origin == origin
    assert "INITED" not in failure.report
    assert failure.message in failure.report


def test_each_harness_has_its_files_and_a_corpus() -> None:
    harnesses = all_harnesses()
    assert {"blockbloom", "buckets", "eclass", "resowner", "sampling"} <= harnesses.keys()
    home = TOP / "fuzz" / "engines" / "libfuzzer"
    for name, each in harnesses.items():
        assert "\n" not in each.checks
        assert (home / name / "harness.c").is_file()
        assert all((home / file).is_file() for file in (*each.stubs, *(f"{name}/{file}" for file in each.variants)))
        assert list((TOP / "corpus" / "libfuzzer" / name).iterdir())


def test_a_new_folder_is_a_harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "added").mkdir()
    (tmp_path / "added" / "harness.toml").write_text('checks = "all"\ntested = ["a.c"]\nfunctions = ["f"]\n')
    monkeypatch.setattr(build, "_HERE", tmp_path)
    added = harness_named("added")
    assert (added.checks, added.files, added.own({"a.c": "f(1)"})) == ("all", ("a.c",), ("failure.c",))


def test_the_first_variant_whose_function_the_tree_has_is_linked() -> None:
    harness = harness_named("eclass")
    for text, linked in (
        ("start_ec_members_any(\nfind_ec_members_any(", "eclass/lookup_iterator.c"),
        ("start_ec_members(\nadd_child_rel_equivalences(", "eclass/lookup_children.c"),
        ("remove_ec_member(\nadd_child_rel_equivalences(", "eclass/lookup_numbers.c"),
        ("add_child_rel_equivalences(", "eclass/lookup_linear.c"),
    ):
        assert [file for file in harness.own({"a.c": text}) if "/lookup_" in file] == [linked]


def test_an_unknown_harness_is_refused_with_the_names_of_all() -> None:
    with pytest.raises(CaseError, match="no harness is called 'x'; give one of blockbloom, buckets, "):
        harness_named("x")

"""Tests of the plugin's assertions on real servers: sound arms pass, and bugs fail with one clear text."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from fuzz import workdir
from tests.injected_bugs.injected_bug import bug_of, sound_patches
from tests.pytest_plugin.conftest import Run

pytest_plugins = ["pytester"]
pytestmark = [pytest.mark.servers, pytest.mark.timeout(900)]

BUGS = workdir.PROJECT / "tests" / "injected_bugs"
SHIPPED = ("--pgduel-arm", "master", "--pgduel-arm", "patched")

_UNEQUAL = """
import pgduel
import pytest

LIMIT = {"statement_timeout": "1000ms"}
PATCHED = "SELECT count(*) FROM pg_settings WHERE name = 'enable_hashjoin_bloom'"

def test_rows(duel, scene):
    scene("CREATE TABLE t AS SELECT 1 AS a")
    duel.same("SELECT a FROM t", PATCHED)

def test_plan(duel, scene):
    scene(f"CREATE TABLE t AS SELECT g * (1 + ({PATCHED})) AS g FROM generate_series(1, 1000) AS g", "ANALYZE t")
    duel.same_plan("SELECT g FROM t WHERE g < 7")

def test_unstable(duel):
    duel.same("SELECT random()")

def test_typing_error(duel):
    duel.same("SELECT 1; SELEC 2")

def test_unknown_setting(duel):
    duel.same("SELECT 1", settings={"enable_everything": "on"})

def test_nothing_ran(duel):
    duel.no_leak()

def test_time_limit(duel):
    duel.no_leak("SELECT pg_sleep(60)", settings=LIMIT)

def test_time_limit_of_scene(duel, scene):
    scene("SELECT pg_sleep(60)")
    duel.same_plan("SELECT 1", settings=LIMIT)

def test_time_limit_of_earlier_statements(duel):
    with pytest.raises(pytest.fail.Exception, match="the arms cannot be compared: timeout"):
        duel.same("SELECT pg_sleep(60)", settings=LIMIT)
    duel.no_leak()

def test_fails_on_one_arm(duel):
    duel.no_leak("SHOW enable_hashjoin_bloom")

def test_unknown_setting_of_query(arm):
    arm().query("SELECT 1", settings={"work_memm": "64kB"})

def test_copy(arm):
    arm().query("COPY (SELECT 1) TO STDOUT")

def test_encoding(arm):
    arm().query("SET client_encoding = latin1; SELECT chr(228)")

@pgduel.given_cases("outer_joins", max_examples=20)
def test_generated_typing_error(duel, case, scene):
    scene("CREAT TABLE t (a int)")
    duel.same(case)

@pgduel.given_cases("outer_joins", max_examples=2)
def test_generated_errors(duel, case, scene):
    scene("SET default_transaction_read_only = on")
    duel.same(case)

def test_without_examples():  # after one that failed
    pass

@pgduel.given_cases("outer_joins", max_examples=20)
def test_shrunk(duel, case, scene):
    scene("SET work_mem = '1MB'")  # by each example, so it must not add up
    assert len(scene.texts) == 1
    assert len(str(case).splitlines()) < 10

@pytest.mark.timeout(3)
def test_interrupted(duel):
    duel.same("SELECT pg_sleep(20)")

def test_a_clean_scene(duel, scene, arm):
    scene("CREATE TABLE t (a int);\\nCOPY t FROM STDIN;\\n1\\n\\\\N\\n\\\\.\\nANALYZE t;")
    duel.same("SELECT * FROM t WHERE a = $1", params=("1",), mode="prepared_generic")
    duel.same("SELECT 2", "SELECT a FROM t WHERE a = $1", params=("1",))
    duel.same("SELECT 1", settings={"enable_hashjoin_bloom": "off"})  # a setting of one arm
    assert arm().name == "patched"
    assert arm("master").query("TABLE t") == [("1",), (None,)]
    assert arm("master").query("SELECT 1", settings={"enable_hashjoin_bloom": "off"}) == [("1",)]
    duel.same("SELECT 1 / 0", may_fail=True)
    duel.no_leak()

@pgduel.given_cases("outer_joins", max_examples=2)
def test_a_scene_for_superusers(duel, case, scene):
    scene("CREATE EXTENSION pg_buffercache")
    duel.same(case)
    duel.no_leak()
"""
_FASTER = """
SLEEP = "SELECT pg_sleep(0.001 + 0.02 * (SELECT count(*) FROM pg_settings WHERE name = 'enable_hashjoin_bloom'))"

def test_faster(duel, scene):
    scene("CREATE TABLE t AS SELECT 1 AS a")
    ratio, low, high = duel.faster(f"{SLEEP}, a FROM t", than="patched", arm="master", rounds=8, flavor="assert")
    assert 0 < low <= ratio <= high < 1

def test_slower(duel):
    duel.faster(SLEEP, than="master", rounds=8, flavor="assert")

def test_itself(duel):
    duel.faster(SLEEP, than="patched", flavor="assert")

def test_no_query(duel):
    duel.faster("CREATE TABLE t (a int)")

def test_a_setting_of_no_arm(duel):
    duel.faster("SELECT 1", settings={"work_memm": "64kB"})

def test_a_value_that_is_refused(duel):
    duel.faster("SELECT 1", settings={"work_mem": "much"})
"""
_PARTITIONS = "\n".join(
    f"CREATE TABLE p{number} PARTITION OF p FOR VALUES FROM ({number * 10}) TO ({number * 10 + 10});"
    for number in range(60)
)
_DROPS_ROW = f"""
import pgduel

TABLES = '''
CREATE TABLE p (k int) PARTITION BY RANGE (k);
{_PARTITIONS}
INSERT INTO p SELECT generate_series(0, 99);
CREATE TABLE o AS SELECT 5 * g AS x FROM generate_series(1, 4) AS g;
CREATE INDEX ON p (k);
'''
OFF = {{"enable_hashjoin": "off", "enable_mergejoin": "off", "enable_seqscan": "off"}}

def test_join(duel, scene):
    scene(TABLES)
    duel.same("SELECT count(*) FROM o JOIN p ON p.k = o.x", settings=OFF)

@pgduel.given_cases("partitioned_joins", max_examples=100)
def test_generated(duel, case):
    duel.same(case)
"""
_LEAKS = f"""
TABLES = '''
CREATE TABLE p (k int) PARTITION BY RANGE (k);
{_PARTITIONS}
'''
ROWS = "".join(f"{{k}}\\n" for k in range(600))

def test_copy(duel, scene):
    scene(TABLES)
    duel.no_leak("SELECT count(*) FROM p")
    duel.no_leak(f"COPY p FROM STDIN;\\n{{ROWS}}\\\\.\\n")
"""


def failures(result: pytest.RunResult) -> dict[str, str]:
    """Return the text of each failure by test, without pytest's marks."""
    parts = re.split(r"^_{3,} (\w+) _{3,}$", result.stdout.str().partition(" FAILURES ")[2], flags=re.MULTILINE)
    texts = (re.sub(r"^E {1,7}", "", part, flags=re.MULTILINE) for part in parts[2::2])
    return dict(zip(parts[1::2], texts, strict=True))


def with_bug(name: str) -> tuple[str, ...]:
    """Return options for the arm `patched`, and the same with a bug, `bugged`."""
    bug = bug_of(BUGS / f"{name}.patch")
    series = ",".join(map(str, (*sound_patches(bug), bug.patch)))
    return "--pgduel-arm", "patched", "--pgduel-arm", f"bugged={series}"


@pytest.mark.quick
def test_the_example_of_the_page_passes(run: Run, record_property: Callable[[str, object], None]) -> None:
    page = (workdir.PROJECT / "docs" / "pytest.md").read_text()
    code = page.partition("```python\n")[2].partition("```")[0]
    run(code, *SHIPPED).assert_outcomes(passed=8)
    record_property("plugins", "pytest")


def test_differences_and_assertions_that_prove_nothing_fail(run: Run) -> None:
    result = run(_UNEQUAL, *SHIPPED)
    result.assert_outcomes(failed=17, passed=3)
    texts = failures(result)
    assert 'duel.same("SELECT a FROM t", PATCHED)\nFailed: result: step 2: 1 row missing' in texts["test_rows"]
    assert re.search(r"^expected, as master did:\n.*\n +0\n(.*\n)*actual, as patched did:\n", texts["test_rows"], re.M)
    assert f"to judge it again: {workdir.COMMAND} replay" in texts["test_rows"]
    assert "Failed: plan: step 2: another plan: figures of Seq Scan" in texts["test_plan"]
    assert "the arms cannot be compared: rows: master differs from itself" in texts["test_unstable"]
    assert "fails on every arm; correct it, or give may_fail=True\nstatement: SELEC 2\n" in texts["test_typing_error"]
    assert "no arm has the setting 'enable_everything'" in texts["test_unknown_setting"]
    assert "duel.no_leak has nothing to judge" in texts["test_nothing_ran"]
    limited = "a statement reaches the time limit on every arm; make it shorter, or raise --pgduel-timeout\nstatement: "
    for name in ("test_time_limit", "test_time_limit_of_scene", "test_time_limit_of_earlier_statements"):
        assert f"Failed: {limited}SELECT pg_sleep(60)\n" in texts[name]
    one_arm = "a statement fails on master; correct it\nstatement: SHOW enable_hashjoin_bloom\noutcome:\n    42704\n"
    assert one_arm in texts["test_fails_on_one_arm"]
    assert "no arm has the setting 'work_memm'" in texts["test_unknown_setting_of_query"]
    assert (
        "Found: a statement fails on every arm; correct it\nstatement: CREAT TABLE t"
        in texts["test_generated_typing_error"]
    )
    assert texts["test_generated_errors"].startswith(
        "\nno example proves anything; the first one: a statement fails on every arm; correct it\nstatement: CREATE"
    )
    assert "arm.query returns rows, and COPY TO STDOUT has none; give it a query" in texts["test_copy"]
    assert r"arm.query got b'\xe4', which is no text in UTF-8" in texts["test_encoding"]
    shrunk = texts["test_shrunk"].partition("case=-- outer_joins, mode ")[2].partition(";,\n)")[0]
    assert 9 <= shrunk.count("\n") < 20
    assert "Timeout" in texts["test_interrupted"]
    assert "plugin.py" not in "".join(texts[name] for name in texts if name != "test_interrupted")


def test_a_wrong_result_is_found_and_a_generated_case_reduced(run: Run) -> None:
    result = run(_DROPS_ROW, *with_bug("join_drops_row_at_partition_bound"))
    result.assert_outcomes(failed=2)
    texts = failures(result)
    assert "1 row missing, 1 surplus, of 1\nstatement: SELECT count(*) FROM o JOIN p" in texts["test_join"]
    assert "  4\n" in texts["test_join"].partition("expected, as patched did:")[2]
    generated = texts["test_generated"].partition("case:\n")[2].partition("expected")[0]
    assert 3 <= len(generated.splitlines()) <= 20  # of about 45
    (reproducer,) = re.findall(r"reproducer: (.*)$", texts["test_generated"], re.MULTILINE)
    assert Path(reproducer).read_text().startswith("--   step ")


def test_a_leak_is_found(run: Run) -> None:
    result = run(_LEAKS, *with_bug("leaked_pin"))
    result.assert_outcomes(failed=1)
    text = failures(result)["test_copy"]
    assert 'duel.no_leak(f"COPY' in text
    assert "Failed: leak: bugged leaks: warning: " in text


def test_a_patch_that_does_not_apply_is_one_line(run: Run, tmp_path: Path) -> None:
    patch = "--- a/meson.build\n+++ b/meson.build\n@@ -1,1 +1,1 @@\n-nothing of the kind\n+anything\n"
    (tmp_path / "v3.patch").write_text(patch)
    result = run("def test_one(duel):\n    duel.same('SELECT 1')\n", "--pgduel-series", str(tmp_path / "v3.patch"))
    result.assert_outcomes(errors=1)
    error = result.stdout.str().partition("ERROR at setup of test_one")[2].splitlines()
    assert "v3.patch" in error[1]
    assert error[2].startswith("====")


def test_times_are_compared(run: Run) -> None:
    result = run(_FASTER, *SHIPPED)
    result.assert_outcomes(passed=1, failed=5)
    text = failures(result)["test_slower"]
    assert "no arm has the setting 'work_memm'; correct its name" in failures(result)["test_a_setting_of_no_arm"]
    assert "refuses the setting work_mem = 'much': " in failures(result)["test_a_value_that_is_refused"]
    assert "compares patched with itself; name two arms" in failures(result)["test_itself"]
    assert "duel.faster needs one query" in failures(result)["test_no_query"]
    assert re.search(r"patched is not shown to be faster than master: it takes [\d.]+ times as long, 95% interv", text)


def test_processes_of_xdist_have_their_own_servers(run: Run) -> None:
    text = "def test_one(duel):\n    duel.same('SELECT 1')\n\ndef test_two(duel):\n    duel.same('SELECT 2')\n"
    run(text, *SHIPPED, "-n", "2").assert_outcomes(passed=2)

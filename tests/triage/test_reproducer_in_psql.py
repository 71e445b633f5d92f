"""Tests of reproducers in psql, which has the effects of pgduel's execution of the case."""

import re
from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest

from fuzz.campaign.canaries import plant
from fuzz.engines.seeded import case_of
from fuzz.execution.executor import Executor
from fuzz.execution.modes.roles import ORDINARY
from fuzz.generators.generator import Scale, all_generators
from fuzz.servers.arm import Arm
from fuzz.servers.base import Base
from fuzz.servers.build import Build
from fuzz.servers.cluster import Cluster
from fuzz.servers.modules import ensure_module
from fuzz.triage.reproducer.reproducer import parse, render
from oracles.counters import Counters
from oracles.framework.canaries import canary_case, query
from oracles.memory.oracle import Memory
from oracles.metamorphic_joins import MetamorphicJoins
from oracles.model.case import Case, CaseId, Kind, Step
from oracles.model.finding import Evidence, Finding
from oracles.model.mode import Mode, Protocol
from oracles.model.observation import CaseObservation, Outcome, Run
from oracles.model.oracle import Canary
from oracles.plan import Plan

pytestmark = pytest.mark.servers

ARM = "one"
CASES = 8  # of each generator
NOTHING_PREPARED = "26000"  # EXECUTE after a failed PREPARE: the script continues, the protocol does not
UNKNOWN_SETTING = "42704"
_LEFT = re.compile(r"^(\w+(?:\.\w+)?)\|(\d+)\|(.*)$", re.MULTILINE)
_ERROR = re.compile(r"ERROR:  (\w{5})$", re.MULTILINE)
ROW = b"\0\x02\0\0\0\x04\0\0\0\x07\0\0\0\x02hi"
NASTY = Case(
    "by_hand",
    (Step("CREATE TABLE t (a int, b text)"),),
    (
        Step("CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; END"),
        Step("COPY t FROM STDIN", Kind.COPY_IN, b"1\tone\n2\t\\N\n"),
        Step("COPY t FROM STDIN", Kind.COPY_IN, b"3\tbad\xff\n", may_fail=True),
        Step("COPY t FROM STDIN (FORMAT csv)", Kind.COPY_IN, b"4,\"quoted\n\\.\n'more'\"\n5,x\n"),
        Step("COPY t FROM STDIN", Kind.COPY_IN, b"6,zero\0\n", may_fail=True),
        Step("COPY t FROM STDIN (FORMAT csv)", Kind.COPY_IN, b'7,"crlf"\r\n8,""\r\n'),
        Step("COPY t FROM STDIN (FORMAT csv)", Kind.COPY_IN, b"9,no newline"),
        Step("COPY t FROM STDIN", Kind.COPY_IN, b"30\tcarriage\r31\treturn"),
        Step("COPY t FROM STDIN", Kind.COPY_IN, b"10\tend\n\\.\n11\tignored\n"),
        Step(
            "COPY t FROM STDIN (FORMAT binary)",
            Kind.COPY_IN,
            b"PGCOPY\n\xff\r\n\0" + bytes(8) + 3 * ROW + b"\xff\xff",
        ),
        Step("COPY nowhere FROM STDIN", Kind.COPY_IN, b"'\n\\q\n", may_fail=True),
        Step("COPY t\n(a, b) FROM STDIN", Kind.COPY_IN, b"20\ttab\\tb\n", may_fail=True),
        Step("COPY duel.t (a, b) FROM stdin", Kind.COPY_IN, b"40\tas in a dump\n", may_fail=True),
        Step("copy t\nfrom  stdin csv", Kind.COPY_IN, b'41,"two\n\\.\nlines"\n', may_fail=True),
        Step("BEGIN"),
        Step("SELECT 1 / 0", Kind.QUERY, may_fail=True),
        Step("COPY t FROM STDIN", Kind.COPY_IN, b"21\tnever\n", may_fail=True),
        Step("ROLLBACK"),
        Step("INSERT INTO t SELECT a + f(), b FROM t WHERE b = 'it''s :HOST' OR a[1:2] = $1", may_fail=True),
        Step("SELECT 'open", may_fail=True),
        Step("CREATE SEQUENCE s"),
        Step("SELECT nextval('s')", Kind.QUERY),
        Step("CREATE VIEW v AS TABLE t"),
        Step("CREATE TEMP TABLE kept AS TABLE t -- comment"),
        Step("SELECT a FROM t WHERE b = $1 AND a = $2", Kind.QUERY, params=("it's \\", "7")),
    ),
)


@pytest.fixture(scope="module")
def arm(build: Build, base: Base) -> Iterator[Arm]:
    with Cluster(build, "psql") as cluster:
        with psycopg.connect(**cluster.connect_kwargs, autocommit=True) as connection:  # type: ignore[arg-type]
            connection.execute("CREATE DATABASE plain")
        yield Arm(ARM, build, cluster, (base.tree,))


@pytest.fixture(scope="module")
def executor(arm: Arm) -> Iterator[Executor]:
    with Executor([arm], "psql") as executor:
        yield executor


NOTHING = Finding("result", (ARM, ARM), "nothing", None, "nothing", "", "")


def script_of(case: Case, finding: Finding) -> str:
    return render(case, finding, {}, "1/g/2", "./pgduel replay FILE")


def psql(arm: Arm, case: Case, options: str = "", finding: Finding = NOTHING) -> tuple[str, str]:
    """Run the case's script in psql, and return its output and its errors."""
    done = arm.cluster.run(
        *(arm.build.bindir / "psql", "-X", "-A", "-t", "-v", "VERBOSITY=sqlstate", "-f", "-"),
        *("-h", str(arm.cluster.socket_dir), "-p", str(arm.cluster.port), "-U", "postgres", "plain"),
        stdin=script_of(case, finding),
        variables={"PGOPTIONS": options},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def digests_shown(output: str) -> dict[str, str]:
    """Return name → digest, in the form of pgduel's own digests."""
    shown = output[output.rindex("ORDER BY relname") :]
    return {
        name: (count if used == "t" else f"{count} unused")
        if used in ("t", "f")
        else f"{count} {used.replace('(null)', '0')}"
        for name, count, used in _LEFT.findall(shown)
    }


def expect_same(arm: Arm, executor: Executor, case: Case) -> CaseObservation:
    run = Run(ARM, case.modes)
    observed = executor.observe(case, [run])[run]
    output, stderr = psql(arm, case)
    assert digests_shown(output) == dict(observed.digests)
    errors = {step.sqlstate for step in observed.steps if step.outcome is Outcome.ERROR}
    unknown = (
        {UNKNOWN_SETTING} if observed.lacking else set()
    )  # psql reports an error and continues without the setting, as pgduel does
    assert set(_ERROR.findall(stderr)) - {NOTHING_PREPARED} == errors | unknown
    return observed


@pytest.mark.parametrize("protocol", Protocol)
def test_psql_and_pgduel_have_equal_effects_for_nasty_statements(
    arm: Arm, executor: Executor, protocol: Protocol
) -> None:
    case = Case(NASTY.generator, NASTY.scene, NASTY.steps, (Mode("m", (("work_mem", "64kB"),), protocol),))
    observed = expect_same(arm, executor, case)
    assert dict(observed.digests)["t"].startswith("16 ")


def test_an_ordinary_role_has_the_server_read_data_at_which_psql_would_stop(arm: Arm, executor: Executor) -> None:
    copy = Step("COPY t FROM STDIN (FORMAT csv)", Kind.COPY_IN, b'1,"\n\\.\n"\n2,x\n')
    observed = expect_same(arm, executor, Case("by_hand", NASTY.scene, (copy,), (ORDINARY,)))
    assert dict(observed.digests)["t"].startswith("2 ")


@pytest.mark.parametrize(
    "statements",
    [
        (
            "SET standard_conforming_strings = off",
            r"INSERT INTO t VALUES (1, 'x\' || ' y')",
            "INSERT INTO t VALUES (2, '')",
        ),
        ("/* opens */ BEGIN", "INSERT INTO t VALUES (1, '')"),
        ("INSERT INTO t VALUES (1, ''); BEGIN; INSERT INTO t VALUES (2, '')", "INSERT INTO t VALUES (3, '')"),
    ],
    ids=["a backslash before a quotation mark", "a comment before BEGIN", "BEGIN after a statement"],
)
def test_psql_and_pgduel_have_equal_effects(arm: Arm, executor: Executor, statements: tuple[str, ...]) -> None:
    steps = tuple(Step(statement, may_fail=True) for statement in statements)
    expect_same(arm, executor, Case("by_hand", NASTY.scene, steps))


@pytest.mark.parametrize(
    "sql",
    [
        "COPY t FROM STDIN; INSERT INTO t VALUES (7, ';')",
        "INSERT INTO t VALUES (7, 'x');COPY t FROM STDIN",
        "COPY t FROM STDIN (FORMAT csv, DELIMITER E'\\t');\n-- ;\nDELETE FROM t WHERE a = 1",
    ],
)
@pytest.mark.parametrize("may_fail", [False, True])
def test_psql_sends_copy_and_other_statements_in_one_message(
    arm: Arm, executor: Executor, sql: str, *, may_fail: bool
) -> None:
    copy = Step(sql, Kind.COPY_IN, b"1\tone\n2\ttwo\n", may_fail=may_fail)
    case = Case("by_hand", NASTY.scene, (copy, Step("SELECT count(*) FROM t", Kind.QUERY)))
    observed = expect_same(arm, executor, case)
    assert dict(observed.digests)["t"] != "0 0"
    assert parse(script_of(case, NOTHING)) == case


@pytest.mark.parametrize("index", range(CASES))
@pytest.mark.parametrize("generator", sorted(all_generators()))
def test_psql_and_pgduel_have_equal_effects_for_a_generators_case(
    arm: Arm, executor: Executor, generator: str, index: int
) -> None:
    expect_same(arm, executor, case_of(CaseId(17, generator, index), Scale()))


def test_psql_shows_the_rows_of_a_faulty_server(arm: Arm) -> None:
    ensure_module(arm.build, "pgduel_faults")
    case = canary_case(query("SELECT n, name FROM canary"))
    good, _ = psql(arm, case)
    again, _ = psql(arm, case)
    bad, _ = psql(arm, case, "-c session_preload_libraries=pgduel_faults -c pgduel_faults.action=drop_row")
    assert good == again
    rows_of_good, rows_of_bad = (output.partition("SELECT format(")[0].splitlines() for output in (good, bad))
    assert len(rows_of_good) == len(rows_of_bad) + 1


def test_roles_of_a_case_are_dropped_afterwards(arm: Arm) -> None:
    statements = (
        "CREATE ROLE somebody",
        "CREATE TABLE t (a int)",
        "GRANT SELECT ON t TO somebody",
        "SET ROLE somebody",
    )
    case = Case("by_hand", (), tuple(map(Step, statements)))
    psql(arm, case)
    again, stderr = psql(arm, case)
    assert not stderr
    assert "DROP ROLE" in again
    with psycopg.connect(**arm.cluster.connect_kwargs) as connection:  # type: ignore[arg-type]
        assert not connection.execute("SELECT FROM pg_roles WHERE rolname = 'somebody'").fetchall()


@pytest.mark.parametrize("protocol", Protocol)
def test_psql_shows_the_query_variant(arm: Arm, executor: Executor, protocol: Protocol) -> None:
    canary = MetamorphicJoins.canaries[0]
    case = replace(canary.case, modes=(*canary.case.modes, Mode("m", protocol=protocol)))
    (found,) = plant(MetamorphicJoins(), replace(canary, case=case), executor, (arm,)).findings
    with_fault = f"-c session_preload_libraries=pgduel_faults -c pgduel_faults.action={canary.fault}"
    output, stderr = psql(arm, case, with_fault, found)
    assert not stderr
    wrong, _, right = output.rpartition("UNION ALL")
    rows = {f"{number}|(null)" for number in range(1, 5)}
    assert rows.isdisjoint(wrong.splitlines())
    assert rows.issubset(right.splitlines())
    assert parse(script_of(case, found)) == case


_FIGURES = {
    "miscount": r"Hash Left Join .*\(actual rows=0",
    "outgrow": r"Memory Usage: \d{7,}kB",
    "spill": r"temp written=64",
}


@pytest.mark.parametrize("canary", [*Counters.canaries, *Memory.canaries], ids=lambda canary: canary.fault)
def test_psql_shows_the_figures_of_explain(arm: Arm, canary: Canary) -> None:
    ensure_module(arm.build, "pgduel_faults")
    evidence = (Evidence(canary.case.steps[0].sql, explained=True),)
    found = replace(NOTHING, step=len(canary.case.scene), evidence=evidence)
    with_fault = f"-c session_preload_libraries=pgduel_faults -c pgduel_faults.action={canary.fault}"
    output, stderr = psql(arm, canary.case, with_fault, found)
    assert not stderr
    assert re.search(_FIGURES[canary.fault], output)


@pytest.mark.parametrize("protocol", Protocol)
@pytest.mark.parametrize("canary", Plan.canaries, ids=lambda canary: canary.fault)
def test_psql_shows_the_plan(arm: Arm, canary: Canary, protocol: Protocol) -> None:
    ensure_module(arm.build, "pgduel_faults")
    case = replace(canary.case, modes=(*canary.case.modes, Mode("m", protocol=protocol)))
    found = replace(NOTHING, step=len(case.scene), evidence=(Evidence(case.steps[0].sql, planned=True),))
    with_fault = f"-c session_preload_libraries=pgduel_faults -c pgduel_faults.action={canary.fault}"
    sound, bad = (_shown_plan(*psql(arm, case, options, found)) for options in ("", with_fault))
    assert sound != bad
    assert "Output: " in sound


def _shown_plan(output: str, stderr: str) -> str:
    assert not stderr
    return output.partition("EXPLAIN (VERBOSE")[2]

"""Tests of the executor: observations of statements under each protocol, and of a case's remains."""

import pytest

from fuzz.errors import ServerError
from fuzz.execution import wire
from fuzz.execution.executor import Executor
from fuzz.execution.messages import values_of
from fuzz.execution.modes import MODES
from fuzz.execution.modes.roles import ORDINARY, ROLE
from oracles.explain.nodes import (
    CANCEL_DELAY,
    EXECUTOR_CPU,
    EXECUTOR_MEMORY,
    MEASURED,
    PLANNER_CPU,
    UNINTERRUPTED,
    WIDEST_HASH_TUPLE,
    canceling,
    plan_shape,
    planning_time,
)
from oracles.model.case import Case, Kind, Step
from oracles.model.mode import HASH_ONLY, Mode, Protocol
from oracles.model.observation import UNKNOWN_TYPE, CaseObservation, Outcome, ResultColumn, Run
from tests.execution.conftest import PROTOCOLS, Observe, query

pytestmark = pytest.mark.servers

NUMBERS = (Step("CREATE TABLE numbers AS SELECT n FROM generate_series(1, 20) n"),)


def values(observed: CaseObservation, step: int = 0) -> list[str | None]:
    seen = observed.steps[step].read_back or observed.steps[step]
    return [values_of(row)[0] for row in seen.rows]


@pytest.mark.parametrize("protocol", Protocol)
def test_a_query_gives_its_rows_under_each_protocol(observe: Observe, protocol: Protocol) -> None:
    modes = (PROTOCOLS[protocol],)
    observed = observe(query("SELECT n FROM numbers WHERE n > 12 ORDER BY n"), modes=modes, scene=NUMBERS)
    once = [str(n) for n in range(13, 21)]
    expected = {Protocol.PREPARED: once + once, Protocol.CLOSED_EARLY: once[:5]}.get(protocol, once)
    assert values(observed) == expected
    is_binary = protocol is Protocol.BINARY
    assert observed.steps[0].columns == (ResultColumn("n", "23", length=4, attribute=1, binary=is_binary),)
    assert observed.steps[0].outcome is Outcome.OK


@pytest.mark.parametrize("protocol", Protocol)
def test_parameters_reach_the_query_under_each_protocol(observe: Observe, protocol: Protocol) -> None:
    step = query("SELECT n FROM numbers WHERE n = $1::int OR $2::text IS NOT NULL", "7", None)
    assert set(values(observe(step, modes=(PROTOCOLS[protocol],), scene=NUMBERS))) == {"7"}


@pytest.mark.parametrize("protocol", Protocol)
def test_a_query_neither_ends_nor_survives_its_transaction(observe: Observe, protocol: Protocol) -> None:
    steps = (
        *(Step("BEGIN"), query("SELECT 1"), query("SELECT 1/0"), query("SELECT 2")),
        *(Step("ROLLBACK"), query("SELECT 3")),
    )
    observed = observe(*steps, modes=(PROTOCOLS[protocol],))
    assert [step.sqlstate for step in observed.steps] == ["", "", "22012", "25P02", "", ""]
    assert [step.transaction for step in observed.steps] == list("TTEEII")


@pytest.mark.parametrize("protocol", Protocol)
def test_explain_gives_the_plan_under_each_protocol(observe: Observe, protocol: Protocol) -> None:
    steps = (query("SELECT n FROM numbers"), query("SELECT n FROM numbers WHERE n < $1", "5"))
    observed = observe(*steps, modes=(PROTOCOLS[protocol],), scene=NUMBERS, explain=True)
    for step, rows in zip(observed.steps, (20, 4), strict=True):
        assert step.plan is not None
        assert step.plan["Plan"]["Node Type"] == "Seq Scan"
        assert step.plan["Plan"]["Actual Rows"] == rows


@pytest.mark.parametrize("protocol", Protocol)
def test_a_run_may_have_another_query_instead(observe: Observe, protocol: Protocol) -> None:
    steps = (query("SELECT n FROM numbers WHERE n <> $1", "3"), query("SELECT 7"), query("SELECT 1"))
    instead = ((1, "SELECT 8"), (3, "SELECT"))  # positions count the scene
    observed = observe(*steps, modes=(PROTOCOLS[protocol],), scene=NUMBERS, instead=instead)
    assert set(values(observed)) == {"8"}
    assert set(values(observed, 1)) == {"7"}
    assert set(observed.steps[2].rows) == {b"\0\0"}


def test_errors_have_the_fields_that_the_server_sends(observe: Observe) -> None:
    observed = observe(
        Step("CREATE TEMP TABLE t (n integer CONSTRAINT positive CHECK (n > 0))"),
        Step("INSERT INTO t VALUES (-1)"),
        query("SELECT nothing"),
        Step("DO $$BEGIN EXECUTE 'SELECT nothing'; END$$"),
    )
    assert [dict(step.messages[0].fields) for step in observed.steps[1:]] == [
        {"schema": "pg_temp", "table": "t", "constraint": "positive"},
        {"position": "8"},
        {"internal position": "8", "internal query": "SELECT nothing"},
    ]


@pytest.mark.parametrize("protocol", [Protocol.BINARY, Protocol.TEXT])
def test_rows_are_read_back_exactly(observe: Observe, protocol: Protocol) -> None:
    every_type = "SELECT 1.50::numeric, 'x'::char(3), interval '1 day', '{1,NULL}'::int[], NULL::text, $1::float8"
    steps = (query(every_type, "0.1"), Step("SET DateStyle = German"), query("SELECT date '2026-11-23'"))
    observed = observe(*steps, modes=(PROTOCOLS[protocol],))
    backs = [step.read_back.rows for step in (observed.steps[0], observed.steps[2]) if step.read_back is not None]
    plain = observe(*steps)
    assert backs == [plain.steps[0].rows, plain.steps[2].rows]


def test_values_that_cannot_be_read_back_have_an_error_of_their_own(observe: Observe) -> None:
    steps = (query("SELECT ROW(1)"), query("SELECT acldefault('r', 10)"), query("SELECT 1/0"), query("SELECT 1"))
    observed = observe(*steps, modes=(PROTOCOLS[Protocol.BINARY],))
    assert [step.sqlstate for step in observed.steps] == ["", "42883", "22012", ""]
    backs = [step.read_back for step in observed.steps]
    assert [back.sqlstate for back in backs if back is not None] == ["0A000", "", "", ""]


def test_optional_modes_leave_out_settings_that_an_arm_lacks(observe: Observe) -> None:
    mode = Mode("new", (("enable_telepathy", "off"), ("WORK_MEM", "77kB")), optional=True)
    observed = observe(query("SHOW work_mem"), modes=(mode,))
    assert (values(observed), observed.lacking) == (["77kB"], ("enable_telepathy",))


def test_a_run_with_only_settings_that_an_arm_lacks_is_skipped(executor: Executor) -> None:
    unknown = Mode("unknown", (("enable_telepathy", "off"),), optional=True)
    both = Mode("both", (("enable_telepathy", "off"), ("work_mem", "77kB")), optional=True)
    case = Case("test", NUMBERS, (query("SHOW work_mem"),))
    runs = [Run("a", modes) for modes in ((), (unknown,), (both,))]
    seen = executor.observe(case, runs)
    plain, skipped, executed = (seen[run] for run in runs)
    assert {step.outcome for step in skipped.steps} == {Outcome.SKIPPED}
    assert len(skipped.steps) == len(plain.steps)
    assert skipped.lacking == executed.lacking == ("enable_telepathy",)
    assert values(executed, len(NUMBERS)) == ["77kB"]


def test_the_steps_of_each_repetition_are_kept(observe: Observe) -> None:
    count = query("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()")
    observed = observe(query("SELECT pg_advisory_lock(4711)"), count, repeats=3)
    assert [values_of(steps[1].rows[0]) for steps in (*observed.earlier, observed.steps)] == [["1"]] * 3
    assert observed.earlier[0] is observed.earlier[1]
    drawn = observe(query("SELECT nextval('pgduel_tools.made_before')"), repeats=3)
    first, second, third = (int(values_of(steps[0].rows[0])[0] or 0) for steps in (*drawn.earlier, drawn.steps))
    assert (second - first, third - second) == (1, 1)


def test_explain_has_blocks_and_settings(observe: Observe) -> None:
    observed = observe(query("SELECT 1"), modes=(Mode("small", (("work_mem", "64kB"),)),), explain=True)
    plan = observed.steps[0].plan
    assert plan is not None
    assert (plan["Settings"]["work_mem"], plan["Plan"]["Temp Written Blocks"]) == ("64kB", 0)


@pytest.mark.parametrize("protocol", Protocol)
def test_planning_has_its_processor_time(observe: Observe, protocol: Protocol) -> None:
    observed = observe(query("SELECT n FROM numbers"), modes=(PROTOCOLS[protocol],), scene=NUMBERS, plannings=3)
    plan = observed.steps[0].plan
    assert plan is not None
    assert 0 < planning_time(plan) <= plan["Planning Time"] + 0.1
    assert planning_time(plan) == plan[PLANNER_CPU]


@pytest.mark.parametrize("protocol", Protocol)
def test_execution_has_its_processor_time(observe: Observe, protocol: Protocol) -> None:
    observed = observe(
        query("SELECT n FROM numbers"), modes=(PROTOCOLS[protocol],), scene=NUMBERS, explain=True, executions=3
    )
    plan = observed.steps[0].plan
    assert plan is not None
    assert plan[EXECUTOR_CPU] > 0


def test_execution_has_its_memory(observe: Observe) -> None:
    keeping, streaming = observe(
        query("SELECT DISTINCT g FROM generate_series(1, 5000) AS g OFFSET 4999"),
        query("SELECT g FROM (VALUES (1)) AS v (g)"),
        explain=True,
    ).steps
    assert keeping.plan is not None
    assert streaming.plan is not None
    assert keeping.plan[EXECUTOR_MEMORY] > 5000 * 16 / 1024 > streaming.plan[EXECUTOR_MEMORY] > 0


WIDE = "SELECT FROM generate_series(1, 999) a JOIN (SELECT repeat('x', 9 * g) FROM {} OFFSET 0) b (t) ON a::text = t"


def test_the_widest_tuple_of_hash_tables_is_measured(observe: Observe) -> None:
    modes = (MEASURED, HASH_ONLY)
    steps = [query(WIDE.format(f"generate_series(1, {n}) AS g")) for n in (100, 50)]
    widest, narrow, none = observe(*steps, query("SELECT"), modes=modes, explain=True).steps
    sizes = [step.plan[WIDEST_HASH_TUPLE] for step in (widest, narrow, none) if step.plan]
    assert sizes[0] - sizes[1] in (448, 456)
    assert (900 < sizes[0] < 1000, sizes[2]) == (True, 0)
    (unmeasured,) = observe(query("SELECT"), explain=True).steps
    assert unmeasured.plan is not None
    assert WIDEST_HASH_TUPLE not in unmeasured.plan


def test_the_widest_tuple_is_measured_in_parallel_workers(observe: Observe) -> None:
    workers = Mode(
        "workers",
        (
            *(("max_parallel_workers_per_gather", "2"), ("min_parallel_table_scan_size", "0")),
            *(("parallel_setup_cost", "0"), ("parallel_tuple_cost", "0"), ("parallel_leader_participation", "off")),
        ),
    )
    scene = (
        Step("CREATE TABLE wide AS SELECT g, repeat('x', 10 * g) AS t FROM generate_series(1, 100) AS g"),
        Step("ANALYZE wide"),
    )
    wide = query("SELECT count(b.t) FROM wide AS a JOIN wide AS b USING (g)")
    (parallel,) = observe(wide, scene=scene, modes=(MEASURED, HASH_ONLY, workers), explain=True).steps
    assert parallel.plan is not None
    assert "Parallel" in plan_shape(parallel.plan)
    assert 1000 < parallel.plan[WIDEST_HASH_TUPLE] < 1100


def test_processor_time_of_parallel_workers_counts(observe: Observe) -> None:
    workers = Mode("workers", (("debug_parallel_query", "on"), ("parallel_leader_participation", "off")))
    slow = query("SELECT sum(sqrt(g)) FROM generate_series(1, 300000) AS g")
    (alone,) = observe(slow, explain=True).steps
    (parallel,) = observe(slow, modes=(workers,), explain=True).steps
    assert alone.plan is not None
    assert parallel.plan is not None
    assert parallel.plan["Plan"]["Workers Launched"] == 1
    assert parallel.plan[EXECUTOR_CPU] > alone.plan[EXECUTOR_CPU] / 10


# md5() does not check for interrupts, but repeat() does.
UNINTERRUPTIBLE = query("SELECT md5(repeat(repeat('x', 10000), n)) FROM generate_series(6000, 6000) AS n")
LONG = query("SELECT count(*) FROM (SELECT generate_series(1, 5000000) AS g) AS s")
IN_WORKER = Mode("workers", (("debug_parallel_query", "on"), ("parallel_leader_participation", "off")))


@pytest.mark.parametrize("modes", [(), (IN_WORKER,)], ids=["leader", "worker"])
def test_the_longest_time_without_a_check_for_interrupts_is_measured(observe: Observe, modes: tuple[Mode, ...]) -> None:
    long, never = observe(LONG, UNINTERRUPTIBLE, modes=modes, explain=True).steps
    assert long.plan is not None
    assert never.plan is not None
    assert long.plan[UNINTERRUPTED] < 10 < 40 < long.plan[EXECUTOR_CPU]
    assert 20 < never.plan[UNINTERRUPTED] <= never.plan[EXECUTOR_CPU]


@pytest.mark.parametrize("protocol", [Protocol.SIMPLE, Protocol.PREPARED, Protocol.CURSOR])
def test_a_query_is_canceled_after_some_time(observe: Observe, protocol: Protocol) -> None:
    modes = (PROTOCOLS[protocol], canceling(40))
    steps = (query("SELECT 1"), LONG, UNINTERRUPTIBLE, query("SELECT 2"))
    short, long, never, last = observe(*steps, modes=modes, explain=True).steps
    assert [step.outcome.value for step in (short, long, never, last)] == ["ok", "error", "error", "ok"]
    assert (long.sqlstate, never.sqlstate) == ("57014", "57014")
    assert long.plan is not None
    assert never.plan is not None
    assert long.plan[CANCEL_DELAY] < 10 < never.plan[CANCEL_DELAY]
    assert all(CANCEL_DELAY not in (step.plan or {}) for step in (short, last))


def test_a_query_is_canceled_in_a_parallel_worker(observe: Observe) -> None:
    (long,) = observe(LONG, modes=(IN_WORKER, canceling(40)), explain=True).steps
    assert (long.outcome, long.sqlstate) == (Outcome.ERROR, "57014")
    assert long.plan is not None
    assert long.plan[CANCEL_DELAY] < 10


def test_commands_are_not_canceled(observe: Observe) -> None:
    stored = Step(f"CREATE TABLE counted AS {LONG.sql}")
    observed = observe(stored, query("SELECT 1"), modes=(canceling(1),), explain=True)
    assert [step.outcome.value for step in observed.steps] == ["ok", "ok"]


def test_copy_is_pipelined_even_if_the_server_does_not_read_the_data(observe: Observe) -> None:
    observed = observe(
        Step("COPY numbers FROM STDIN", Kind.COPY_IN, b"21\n22\n"),
        Step("COPY nowhere FROM STDIN", Kind.COPY_IN, b"1\n" * 100_000),
        Step("COPY numbers FROM STDIN", Kind.COPY_IN, b"23\nx\n" + b"24\n" * 100_000),
        Step("COPY (SELECT n FROM numbers WHERE n > 20) TO STDOUT", Kind.COPY_OUT),
        Step("COPY numbers FROM STDIN", Kind.COPY_IN),
        scene=NUMBERS,
    )
    assert [step.outcome.value for step in observed.steps] == ["ok", "error", "error", "ok", "ok"]
    assert observed.steps[0].tags == ("COPY 2",)
    assert [step.sqlstate for step in observed.steps[1:3]] == ["42P01", "22P02"]
    assert 'COPY numbers, line 2, column n: "x"' in observed.steps[2].messages[0].text
    assert observed.steps[3].rows == (b"21\n", b"22\n")


def test_large_data_in_both_directions_at_once_does_not_block(observe: Observe) -> None:
    flood = query("SELECT repeat('x', 1000) FROM generate_series(1, 5000)")
    copies = [Step("COPY texts FROM STDIN", Kind.COPY_IN, (b"y" * 1000 + b"\n") * 5000) for _ in range(2)]
    observed = observe(flood, *copies, flood, scene=(Step("CREATE TABLE texts (t text)"),))
    assert [len(step.rows) for step in observed.steps] == [5000, 0, 0, 5000]
    assert dict(observed.digests)["texts"].startswith("10000 ")


def test_types_of_the_case_have_names(observe: Observe) -> None:
    scene = (Step("CREATE TYPE mood AS ENUM ('fine')"), Step("CREATE TABLE moods (m mood, ms mood[])"))
    observed = observe(query("SELECT *, moods FROM moods"), scene=scene)
    assert [column.type for column in observed.steps[0].columns] == ["mood", "_mood", "moods"]


def test_types_of_a_lost_session_have_no_names(observe: Observe) -> None:
    scene = (Step("CREATE TYPE mood AS ENUM ('fine')"), Step("CREATE TABLE moods (m mood, n int)"))
    observed = observe(query("TABLE moods"), query("SELECT pg_terminate_backend(pg_backend_pid())"), scene=scene)
    assert [column.type for column in observed.steps[0].columns] == [UNKNOWN_TYPE, "23"]
    assert observed.steps[1].outcome is Outcome.LOST


def test_repetitions_have_the_role_of_the_first(observe: Observe) -> None:
    observed = observe(query("SELECT current_user"), modes=(ORDINARY,), repeats=3)
    (rows,) = {steps[-1].rows for steps in (*observed.earlier, observed.steps)}
    assert ROLE.encode() in rows[0]


def test_messages_come_with_their_step_and_sqlstate(observe: Observe) -> None:
    observed = observe(
        Step("DO $$BEGIN RAISE WARNING 'look' USING ERRCODE = '01007', DETAIL = 'here', HINT = 'there'; END$$"),
        query("SELECT 1"),
    )
    warning = observed.steps[0].messages[0]
    assert (warning.severity, warning.sqlstate) == ("WARNING", "01007")
    assert warning.text.split("\n")[:3] == ["look", "DETAIL: here", "HINT: there"]
    assert not observed.steps[1].messages
    assert any(line.startswith("WARNING:  look") for line in observed.log)


def test_an_error_that_a_statement_raises_is_no_timeout(twins: tuple[object, ...]) -> None:
    with Executor(twins, "hasty", statement_timeout_ms=200) as executor:  # type: ignore[arg-type]
        raised = Step("DO $$BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '57014'; END$$")
        case = Case("test", (), (query("SELECT pg_sleep(5)"), raised, query("SELECT 1")))
        (observed,) = executor.observe(case, [Run("a", ())]).values()
    assert [step.outcome for step in observed.steps] == [Outcome.TIMEOUT, Outcome.ERROR, Outcome.OK]


def test_a_large_result_is_not_kept(executor: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "RESULT_BYTES", 100_000)
    case = Case("test", (), (query("SELECT repeat('x', 1000) FROM generate_series(1, 1000)"), query("SELECT 1")))
    (observed,) = executor.observe(case, [Run("a", ())]).values()
    assert [step.outcome for step in observed.steps] == [Outcome.TOO_LARGE, Outcome.OK]
    assert [len(step.rows) for step in observed.steps] == [0, 1]


def test_settings_and_open_objects_of_a_case_do_not_affect_the_next(observe: Observe) -> None:
    steps = (
        Step("SET search_path = pg_catalog"),
        Step("SET statement_timeout = '1s'"),
        Step("PREPARE p AS SELECT 1"),
        Step("CREATE SERVER mine FOREIGN DATA WRAPPER postgres_fdw"),
        Step("BEGIN"),
        Step("DECLARE c CURSOR WITH HOLD FOR SELECT 1"),
        Step("CREATE TABLE duel.t (n int)"),
    )
    for _ in range(2):
        observed = observe(*steps)
        assert {step.outcome for step in observed.steps} == {Outcome.OK}
        assert observed.residue is not None
        assert not any((observed.residue.pins, observed.residue.locks, observed.residue.cursors))
        assert not any((observed.residue.temp_files, observed.residue.prepared))
        assert observed.digests == ()


def test_residue_shows_locks_that_outlive_the_case(observe: Observe) -> None:
    residue = observe(query("SELECT pg_advisory_lock(7)")).residue
    assert residue is not None
    assert residue.locks == ("advisory ExclusiveLock 0/7/1",)


def test_the_loopback_server_has_the_cases_own_tables(observe: Observe) -> None:
    scene = (*NUMBERS, Step("CREATE FOREIGN TABLE far (n int) SERVER loopback OPTIONS (table_name 'numbers')"))
    observed = observe(query("SELECT count(*) FROM far"), scene=scene)
    assert values(observed) == ["20"]
    assert list(dict(observed.digests)) == ["numbers"]


def test_repetitions_show_what_a_backend_holds_after_each(executor: Executor) -> None:
    case = Case("test", NUMBERS, (query("SELECT n FROM numbers"),))
    (observed,) = executor.observe(case, [Run("a", (), repeats=3)]).values()
    assert len(observed.resources) == 3
    for resources in observed.resources:
        assert resources.open_files > 5
        assert resources.contexts["TopMemoryContext"][0] == 1
        assert "CacheMemoryContext" not in resources.contexts
    assert [step.outcome for step in observed.steps] == [Outcome.OK] * 2


def test_repetitions_show_the_functions_that_each_calls(executor: Executor) -> None:
    functions = [
        Step(f"CREATE FUNCTION {name}() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN 1; END'") for name in "fg"
    ]
    case = Case("test", tuple(functions), (query("SELECT f()"), query("SELECT g() WHERE false")))
    (observed,) = executor.observe(case, [Run("a", (), repeats=2)]).values()
    assert [resources.called for resources in observed.resources] == [{"f()"}] * 2


def test_equal_runs_are_executed_once_and_all_have_observations(executor: Executor) -> None:
    case = Case("test", (), (query("SELECT pg_backend_pid()"),))
    runs = [Run("a", ()), Run("a", ()), Run("b", ()), Run("a", (MODES["extended"],))]
    assert set(executor.observe(case, runs)) == set(runs)


def test_databases_are_renewed_and_dropped(twins: tuple[object, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzz.execution.worker_database.RENEW_AFTER", 2)
    case = Case("test", NUMBERS, (query("SELECT oid FROM pg_database WHERE datname = current_database()"),))
    with Executor(twins, "mayfly") as executor:  # type: ignore[arg-type]
        (first,) = executor.observe(case, [Run("a", ())]).values()
        executor.observe(case, [Run("a", (), repeats=2)])
        (second,) = executor.observe(case, [Run("a", ())]).values()
    assert first.steps[1].rows != second.steps[1].rows
    with Executor(twins, "tests2") as executor:  # type: ignore[arg-type]
        count = Case("test", (), (query("SELECT count(*) FROM pg_database WHERE datname LIKE 'duel_mayfly%'"),))
        (observed,) = executor.observe(count, [Run("a", ())]).values()
    assert values(observed) == ["0"]


def test_settings_that_the_server_refuses_are_named(executor: Executor) -> None:
    mode = Mode("nonsense", (("work_mem", "plenty"),))
    with pytest.raises(ServerError, match="work_mem"):
        executor.observe(Case("test", (), ()), [Run("a", (mode,))])


def test_messages_have_no_paths_of_an_arm(observe: Observe) -> None:
    lacking = Step("CREATE FUNCTION f() RETURNS int LANGUAGE c AS '$libdir/plpgsql', 'nobody'")
    steps = observe(lacking, Step("DO $$BEGIN RAISE NOTICE '%', current_setting('data_directory'); END$$")).steps
    assert 'in file "INSTALLATION/lib/postgresql/plpgsql.so"' in steps[0].messages[0].text
    assert steps[1].messages[0].text.startswith("DATA\n")


def test_notifications_settings_and_formats_of_copy_are_equal_on_equal_arms(observe: Observe) -> None:
    """The fixture compares the arms, whose sessions have other process numbers and application names."""
    steps = (
        *(Step("LISTEN here"), Step("NOTIFY here, 'a payload'"), Step("SET application_name = 'own'")),
        *(Step("RESET application_name"), Step("SET DateStyle = 'SQL, DMY'")),
        *(
            Step("COPY (SELECT 1, 'x') TO STDOUT (FORMAT binary)", Kind.COPY_OUT),
            Step("CREATE TABLE t (a int, b text)"),
        ),
        Step("COPY t FROM STDIN", Kind.COPY_IN, b"1\tx\n"),
    )
    found = [step.protocol for step in observe(*steps).steps]
    assert found == [
        (),
        ("NotificationResponse: here = a payload",),
        ("ParameterStatus: application_name = own",),
        ("ParameterStatus: application_name = pgduel",),
        ("ParameterStatus: DateStyle = SQL, DMY",),
        ("CopyOutResponse: format 1, of columns 1, 1",),
        (),
        ("CopyInResponse: format 0, of columns 0, 0",),
    ]


@pytest.mark.parametrize("protocol", [Protocol.PREPARED, Protocol.CURSOR])
def test_both_descriptions_of_a_query_are_kept(observe: Observe, protocol: Protocol) -> None:
    (step,) = observe(query("SELECT n FROM numbers"), modes=(PROTOCOLS[protocol],), scene=NUMBERS).steps
    assert step.earlier_columns == (step.columns,) != ((),)

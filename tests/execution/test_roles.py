"""Tests of the mode `ordinary`: cases run as a role without privileges beyond their own objects."""

import pytest

from fuzz.engines.seeded import case_of
from fuzz.execution.executor import Executor
from fuzz.execution.modes.roles import ORDINARY, ROLE, may_be_ordinary
from fuzz.generators.generator import Scale, all_generators
from oracles.model.case import Case, CaseId, Step
from oracles.model.observation import Outcome, Run
from tests.execution.conftest import Observe

CASES = 24
DENIED = "42501"
SECURED = "ENABLE ROW LEVEL SECURITY"


@pytest.mark.servers
@pytest.mark.timeout(300)
class TestOnServers:
    def test_the_session_checks_privileges(self, observe: Observe) -> None:
        who = "SELECT current_user, current_setting('is_superuser')"
        steps = (
            Step(who),
            Step("SELECT rolname FROM pg_authid"),
            Step("SET ROLE postgres"),
            Step("RESET ROLE"),
            Step(who),
        )
        seen = observe(*steps, modes=(ORDINARY,)).steps
        assert [step.sqlstate for step in seen] == ["", DENIED, "", "", ""]
        assert seen[0].rows == seen[4].rows
        assert ROLE.encode() in seen[0].rows[0]
        assert seen[0].rows[0].endswith(b"off")

    def test_what_the_role_leaves_is_observed_and_dropped(self, observe: Observe) -> None:
        steps = Step("CREATE TABLE t AS SELECT 1 AS a"), Step("CREATE SCHEMA elsewhere"), Step("SET ROLE NONE")
        for _ in range(2):
            seen = observe(*steps, modes=(ORDINARY,))
            assert [step.outcome for step in seen.steps] == [Outcome.OK] * 3
            assert [name for name, _ in seen.digests] == ["t"]

    def test_row_security_applies_to_the_role_and_not_to_superusers(self, observe: Observe) -> None:
        policy = "ALTER TABLE t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (a > 1)"
        steps = Step("CREATE TABLE t AS SELECT 1 AS a"), Step(policy), Step("TABLE t")
        assert len(observe(*steps).steps[2].rows) == 1
        assert len(observe(*steps, modes=(ORDINARY,)).steps[2].rows) == 0

    @pytest.mark.parametrize("generator", all_generators())
    def test_no_generated_statement_is_denied(self, executor: Executor, generator: str) -> None:
        """Also row security changes no result."""
        for index in range(CASES):
            case = case_of(CaseId(9, generator, index), Scale())
            if ORDINARY not in case.modes:
                continue
            ordinary, plain = (
                Run("a", modes) for modes in (case.modes, tuple(mode for mode in case.modes if mode != ORDINARY))
            )
            seen = executor.observe(case, [ordinary, plain])
            assert DENIED not in {step.sqlstate for step in seen[ordinary].steps}
            outcomes = [[step.sqlstate for step in seen[run].steps] for run in (ordinary, plain)]
            assert outcomes[0] == outcomes[1]
            assert seen[ordinary].digests == seen[plain].digests


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE EXTENSION IF NOT EXISTS postgres_fdw",
        "COPY t FROM '/dev/null'",
        "copy t to program 'cat'",
        "UPDATE pg_class SET reltuples = 1",
        "CREATE OPERATOR CLASS a FOR TYPE int4 USING btree AS OPERATOR 1 <",
        "SET SESSION AUTHORIZATION duel_guest",
    ],
)
def test_statements_of_superusers_keep_a_case_from_being_ordinary(sql: str) -> None:
    assert not may_be_ordinary(Case("test", (), (Step("SELECT 1"), Step(sql))))


def test_copying_from_the_client_needs_no_superuser() -> None:
    assert may_be_ordinary(Case("test", (), (Step("COPY t FROM STDIN"), Step("CREATE FUNCTION f() ... LANGUAGE sql"))))


def test_most_cases_are_ordinary_and_some_have_row_security() -> None:
    cases = [case_of(CaseId(3, "outer_joins", index), Scale()) for index in range(100)]
    ordinary = [case for case in cases if ORDINARY in case.modes]
    assert 60 <= len(ordinary) <= 90
    assert 5 <= sum(any(SECURED in step.sql for step in case.scene) for case in ordinary) <= 40

"""Tests of stores in PostgreSQL: errors in one line, claims, migrations, and a server that is killed."""

import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from sqlalchemy import column, select, text

from fuzz.campaign import postgresql, schema
from fuzz.campaign.catalog import all_campaigns, last_seed, new_campaign, opened, opened_new, require_store
from fuzz.campaign.continuous import claimed, keep_plan, kept_plan, runner_of, runs_of, stop
from fuzz.campaign.plan import Plan
from fuzz.campaign.postgresql import has_password
from fuzz.campaign.schema import VERSION, StoreError, StoreUnreachable
from fuzz.campaign.store import Store
from fuzz.errors import CaseError
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.cluster import Cluster
from fuzz.store_url import VARIABLE
from fuzz.triage.interestingness import ReducedCase
from oracles.model.case import Case, Step
from oracles.model.finding import Finding
from tests.forking import FORKING
from tests.shared_store import ON_POSTGRESQL, execute, url_of

PLAN = Plan(1, {}, None, None, stop_at_first=False, arms=ArmOptions())
NIGHTLY = replace(PLAN, name="nightly")
FINDING = Finding("result", ("master", "patched"), "rows", None, "1 row missing", "", "")
_COLUMNS = "information_schema.columns WHERE table_schema = 'campaign_1' AND table_name = 'finding'"
CASE = Case("x", (Step("CREATE TABLE t (a int)"),), ())


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDUEL_CAMPAIGNS", str(tmp_path))


def on_postgresql(test: Callable[..., None]) -> Callable[..., None]:
    for mark in ON_POSTGRESQL:
        mark(test)  # it marks the function itself
    return test


@pytest.mark.parametrize(
    "url",
    [
        "mysql://me:secret@host/database",
        "secret",
        "postgresql://me:a@secret@host/database",
        "postgresql://me:a/secret@host/database",
        "postgresql://me:%zzsecret@host/database",
        "postgresql://me@host/database?passwrod=secret",
    ],
)
def test_a_wrong_url_is_refused_without_its_password(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, url)
    with pytest.raises(StoreError, match=f"^{VARIABLE} is no URL of a PostgreSQL database; give ") as error:
        all_campaigns()
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("password", [":secret@localhost:1/d", "@localhost:1/d?password=secret"])
def test_a_server_that_does_not_answer_is_an_error_without_a_password(
    password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"postgresql://me{password}"
    monkeypatch.setenv(VARIABLE, url)
    assert has_password(url)
    with pytest.raises(StoreUnreachable) as error:
        all_campaigns()
    line = f"the store postgresql://localhost:1/d does not answer (Connection refused); check its server and {VARIABLE}"
    assert str(error.value) == line


@on_postgresql
def test_a_missing_database_is_refused_in_one_line(store_server: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, url_of(store_server, "nowhere"))
    with pytest.raises(StoreUnreachable, match=r'\(FATAL: +database "nowhere" does not exist\); check its server'):
        require_store()


@on_postgresql
def test_missing_rights_are_named(store_server: Cluster, shared_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    new_campaign()
    execute(store_server, "CREATE ROLE guest LOGIN")
    monkeypatch.setenv(VARIABLE, url_of(store_server, shared_store, user="guest"))
    with pytest.raises(StoreError, match="cannot be used: role guest has no right to create schemas in this database"):
        require_store()
    with pytest.raises(StoreError, match=r"cannot be used: permission denied for database .*; docs/campaigns.md has"):
        new_campaign()
    (directory,) = all_campaigns()
    with pytest.raises(StoreError, match=r"cannot be used: permission denied for schema campaign_1; docs/campaigns.md"):
        Store(directory)


@on_postgresql
def test_members_of_a_team_use_each_others_campaigns(
    store_server: Cluster, shared_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(store_server, f"CREATE ROLE team; GRANT CREATE ON DATABASE {shared_store} TO team")
    for member in ("alice", "bob"):
        execute(store_server, f"CREATE ROLE {member} LOGIN IN ROLE team")
        execute(store_server, f"ALTER ROLE {member} IN DATABASE {shared_store} SET ROLE team")
    monkeypatch.setenv(VARIABLE, url_of(store_server, shared_store, user="alice"))
    with closing(Store(new_campaign())) as store:
        store.begin(PLAN, {})
        store.add_finding(FINDING, "1/x/0", CASE)
    monkeypatch.setenv(VARIABLE, url_of(store_server, shared_store, user="bob"))
    require_store()
    (directory,) = all_campaigns()
    with opened(directory) as store:
        store.begin(PLAN, {})
        assert not store.add_finding(FINDING, "1/x/1", CASE)
        assert store.finding(FINDING.fingerprint).count == 2
        store.drop_details()


def _run(directory: Path, variables: dict[str, str], pipe: Connection) -> None:
    """Begin a campaign in another process, and hold it until the pipe is closed."""
    os.environ.update(variables)
    with opened(directory) as store:
        store.begin(NIGHTLY, {})
        pipe.send(os.getpid())
        pipe.recv()


@pytest.fixture
def elsewhere(shared_store: str) -> Iterator[tuple[Path, int]]:
    """Yield the directory and the process of a campaign that another process runs."""
    directory = new_campaign()
    mine, theirs = FORKING.Pipe()
    process = FORKING.Process(target=_run, args=(directory, dict(os.environ), theirs))
    process.start()
    yield directory, mine.recv()
    mine.send(None)
    process.join()


@on_postgresql
def test_one_process_runs_a_campaign(elsewhere: tuple[Path, int]) -> None:
    directory, process = elsewhere
    with opened(directory) as store:
        with pytest.raises(
            StoreError, match=rf"^campaign 1 runs already: process {process} on .+; stop it there first$"
        ):
            store.begin(PLAN, {})
        assert store.plan == NIGHTLY  # others read it
    with opened(new_campaign()) as store:
        with pytest.raises(StoreError, match=r"^campaign nightly runs already: process "):
            store.begin(NIGHTLY, {})
        store.begin(PLAN, {})


@on_postgresql
def test_a_named_campaign_of_another_machine_is_seen_and_not_started(elsewhere: tuple[Path, int]) -> None:
    _, process = elsewhere
    assert runner_of("nightly").startswith(f"process {process} on ")
    assert runner_of("weekly") == ""
    assert [run.number for run in runs_of("nightly")] == ["1"]
    assert kept_plan("nightly") == NIGHTLY
    with pytest.raises(CaseError, match="campaign nightly runs already: process "), claimed("nightly"):
        pass
    with pytest.raises(CaseError, match=r"campaign nightly runs elsewhere: process .*; stop it there"):
        stop("nightly")
    keep_plan(NIGHTLY)
    with claimed("weekly"):
        pass


@on_postgresql
def test_scripts_of_another_machine_are_absent_but_statements_are_not(shared_store: str, tmp_path: Path) -> None:
    with opened(new_campaign()) as store:
        store.add_finding(FINDING, "1/x/0", CASE)
        store.record_reproducer(FINDING.fingerprint, tmp_path / "elsewhere.sql")
        store.record_reduction(FINDING.fingerprint, ReducedCase(CASE, FINDING, 3, 3), 1.0)
        (found,) = store.findings()
    assert (found.reproducer, found.case, found.least.case) == (None, CASE, CASE)


@on_postgresql
def test_a_store_outlasts_the_kill_of_its_server_and_claims_its_campaign_again(
    store_server: Cluster, shared_store: str
) -> None:
    lines: list[str] = []
    directory = new_campaign()
    with opened(directory, lines.append) as store, opened(directory) as impatient:
        store.begin(NIGHTLY, {})
        store_server.kill9()
        with pytest.raises(StoreUnreachable, match=f"does not answer .*; check its server and {VARIABLE}$"):
            impatient.findings()
        starting = threading.Timer(1.0, store_server.start)
        starting.start()
        assert store.add_finding(FINDING, "1/x/0", CASE)
        starting.join()
        assert [found.finding for found in impatient.findings()] == [FINDING]
        assert len(lines) == 2
        assert re.search(r" does not answer \(.*\); .*; trying again for 10 minutes$", lines[0])
        with pytest.raises(StoreError, match="campaign 1 runs already"):
            impatient.begin(PLAN, {})


@on_postgresql
def test_a_process_that_never_ends_to_begin_is_named(shared_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgresql, "_TURN_TIMEOUT", 100)
    with opened(new_campaign()) as one, opened(new_campaign()) as other:
        error = f"^campaign_2 in .* cannot begin: process {os.getpid()} on .* begins a campaign; try again"
        with one._database.in_turn(), pytest.raises(StoreError, match=error):
            other.begin(PLAN, {}, partial(last_seed, {}))


@on_postgresql
def test_a_campaign_that_begins_outlasts_the_kill_of_its_server(store_server: Cluster, shared_store: str) -> None:
    lines: list[str] = []
    with opened(new_campaign()) as store:
        store.begin(PLAN, {})
    with opened_new(lines.append) as store:
        store_server.kill9()
        starting = threading.Timer(1.0, store_server.start)
        starting.start()
        store.begin(PLAN, {}, partial(last_seed, {}))
        starting.join()
        assert store.plan.seed == 2
    assert lines[-1] == "the store answers again"


@on_postgresql
def test_a_lost_connection_is_opened_again(store_server: Cluster, shared_store: str) -> None:
    with opened(new_campaign(), print) as store:
        store.begin(PLAN, {})
        for number in range(3):
            execute(
                store_server,
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE pid <> pg_backend_pid()",
            )
            store.add_finding(FINDING, f"1/x/{number}", CASE)
        assert store.finding(FINDING.fingerprint).count == 3
        with opened(store.directory) as other, pytest.raises(StoreError, match="campaign 1 runs already"):
            other.begin(PLAN, {})


@contextmanager
def newer_pgduel(*migration: str) -> Iterator[None]:
    """Make this a newer pgduel for a while, with one more migration."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "_MIGRATIONS", (*schema._MIGRATIONS, migration))
        for module in (schema, postgresql):
            patch.setattr(module, "VERSION", VERSION + 1)
        yield


def _columns(store: Store) -> set[str]:
    return {str(row["column_name"]) for row in store.read(select(column("column_name")).select_from(text(_COLUMNS)))}


@on_postgresql
def test_a_migrated_store_is_complete_and_refused_by_an_older_program(shared_store: str) -> None:
    directory = new_campaign()
    with opened(directory) as store:
        store.add_finding(FINDING, "1/x/0", CASE)
    with (
        newer_pgduel("ALTER TABLE finding ADD COLUMN weight INTEGER", "UPDATE finding SET weight = 3"),
        opened(directory) as store,
    ):
        assert "weight" in _columns(store)
        assert [found.case for found in store.findings()] == [CASE]
        store.add_finding(replace(FINDING, origin="another"), "1/x/0", CASE)
    with pytest.raises(StoreError, match=f"has version {VERSION + 1}, this pgduel reads versions up to {VERSION};"):
        Store(directory)


@on_postgresql
def test_a_migration_that_fails_changes_nothing(shared_store: str) -> None:
    directory = new_campaign()
    newer = newer_pgduel("ALTER TABLE finding ADD COLUMN weight INTEGER", "UPDATE finding SET nothing = 3")
    refused = pytest.raises(StoreError, match='cannot be used: column "nothing" of relation "finding" does not exist')
    with newer, refused:
        Store(directory)
    with opened(directory) as store:
        assert "weight" not in _columns(store)


@on_postgresql
def test_a_store_whose_campaign_runs_is_not_migrated(elsewhere: tuple[Path, int]) -> None:
    directory, process = elsewhere
    with newer_pgduel(), pytest.raises(StoreError) as error:
        Store(directory)
    assert re.search(f"cannot be migrated: process {process} on .+ uses it; try again when that has", str(error.value))
    with opened(directory) as store:
        assert store.plan == NIGHTLY

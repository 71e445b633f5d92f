"""Tests of migrations: stores of older versions are read completely, and those of newer versions are refused."""

import json
from pathlib import Path

import pytest

from fuzz.campaign.catalog import find_finding, find_spec_finding, opened
from fuzz.campaign.counters import sample_of
from fuzz.campaign.schema import VERSION, StoreError
from fuzz.campaign.store import SpecFinding, Store, spec_findings
from fuzz.errors import TransientError
from fuzz.report.summary import Summary
from fuzz.servers.arm_options import ArmOptions
from fuzz.sources.source import UserInput
from oracles.model.case import Kind, Step
from oracles.model.feature import Feature
from oracles.model.finding import Evidence, Finding, Vote
from oracles.model.mode import Mode, Protocol
from tests.campaign.old_store import BUG, database, old_campaign
from tests.cli.preloaded import PreloadedCommand

FIRST, SECOND, UNREDUCED, OF_SPEC = "6654c15e963b", "d9c314b8b6b0", "a71363b971b7", "9ec2069dfedf"


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of a campaign with a store of version 0."""
    monkeypatch.setenv("PGDUEL_CAMPAIGNS", str(tmp_path / "campaigns"))
    return old_campaign(tmp_path / "campaigns")


def test_a_migrated_store_has_the_tables_of_a_new_one(old: Path, tmp_path: Path) -> None:
    tables = []
    for directory in (old, tmp_path):
        with opened(directory), database(directory) as connection:
            assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
            names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            columns = 'SELECT name, "notnull", pk FROM pragma_table_info(?)'
            tables.append({name: connection.execute(columns, [name]).fetchall() for name in names})
    assert tables[0] == tables[1]


def test_findings_survive_a_migration(old: Path) -> None:
    with opened(old) as store:
        first, second, unreduced = store.findings()
        assert spec_findings(store) == (
            SpecFinding(
                Finding(
                    "isolation",
                    ("master", "patched"),
                    "merge-update",
                    None,
                    "merge-update differs",
                    "a\nb",
                    "a\nc",
                    vote=Vote("patched", ("master", "bugged")),
                ),
                1,
                old / f"{OF_SPEC}.spec",
            ),
        )
    assert [each.finding.fingerprint for each in (first, second, unreduced)] == [FIRST, SECOND, UNREDUCED]
    assert (first.case_id, first.count, first.reduced) == ("5/copy_batches/3", 1, True)
    assert first.finding.arms == ("master", "bugged")
    assert first.finding.vote == Vote("bugged", ("master", "patched"))
    assert len(first.case.all_steps) > len(first.least.case.all_steps)
    assert (first.least.finding.step, first.least.how_often) == (5, "shows in 3 of 3 runs")
    assert first.reproducer == old / "reproducers" / f"{FIRST}.sql"
    assert [each.blame is not None and each.blame.patches for each in (first, second)] == [(BUG,), (BUG,)]
    assert (unreduced.reduced, unreduced.smallest, unreduced.blame, unreduced.seconds) == (False, None, None, None)
    assert unreduced.finding.evidence == (
        Evidence("SELECT 1", (("work_mem", "64kB"),)),
        Evidence("SELECT 2", explained=True),
    )
    assert unreduced.case.modes == (
        Mode("prepared_generic", (("plan_cache_mode", "force_generic_plan"),), Protocol.PREPARED),
    )
    assert unreduced.case.steps == (
        Step("COPY t FROM STDIN", Kind.COPY_IN, b"1\n\xff\x00\n", may_fail=True, tags=("bad_encoding",)),
        Step("SELECT $1::int", Kind.QUERY, params=("1", None, "\udcff"), ordered=True),
    )


def test_a_campaign_resumes_after_a_migration(old: Path) -> None:
    with opened(old) as store:
        assert store.plan.cases == 60
        assert set(store.plan.generators) == set(store.counters.cases)
        assert set(store.plan.generators.values()) == {1}  # as its version assigned cases
        assert store.plan.arms == ArmOptions(arms=("master", "patched", f"bugged=/pgduel/tests/injected_bugs/{BUG}"))
        assert store.plan.given == UserInput()
        assert list(store.arms) == ["master", "patched", "bugged"]
        assert sum(store.done().values()) == store.counters.cases.total() == 60
        assert store.counters.of_kind("finding") == 2
        store.progress(store.counters, {0: 11})
        assert not store.add_finding(store.finding(FIRST).finding, "5/copy_batches/30", store.finding(FIRST).case)
        assert store.finding(FIRST).count == 2
        assert (store.samples(), store.features, store.not_compared, store.ended) == ((), (), (), "")
        assert store.replays() == ()
        store.record_start((Feature("bloom", "Bloom filter"),), ["plan: not used"])
        store.record_end("time is up")
        sample = sample_of(store.counters, 3, at=1.5)
        store.progress(store.counters, {}, [sample])
        assert (store.samples(), store.ended) == ((sample,), "time is up")
        assert (store.features, store.not_compared) == ((Feature("bloom", "Bloom filter"),), ("plan: not used",))


@pytest.mark.parametrize("name", [FIRST, f"1/{FIRST}"])
def test_old_findings_are_found_by_fingerprint(old: Path, name: str) -> None:
    directory, found = find_finding(name)
    assert (directory, found.finding.fingerprint) == (old, FIRST)
    assert find_spec_finding(OF_SPEC) is not None


def test_old_findings_are_listed_and_shown(old: Path, tmp_path: Path) -> None:
    pgduel = PreloadedCommand(old.parent)
    file = tmp_path / "listed.json"
    assert pgduel("list", "findings", "--json", file).status == 0
    listed = json.loads(file.read_text())
    assert [row["finding"] for row in listed] == [f"1/{each}" for each in (FIRST, SECOND, UNREDUCED, OF_SPEC)]
    assert listed[0]["reproducer"] == str(old / "reproducers" / f"{FIRST}.sql")
    shown = pgduel("show", f"1/{FIRST}")
    assert shown.status == 0, shown.err
    assert "FOR VALUES FROM" in shown.out
    assert f"--   blame     {BUG}, number 1 of the 1 patches of bugged" in shown.out


def test_the_summary_of_an_old_campaign_has_all_keys(old: Path) -> None:
    with opened(old) as store:
        summary = Summary("1", "", 5, store.arms, store.canaries, "", store.counters, store.findings(), (), (), (), {})
    output = json.loads(json.dumps(summary.to_json()))
    assert (output["cases"], output["statements_judged"], output["canaries"]["planted"]) == (60, 4816, 49)
    assert output["findings"][0] == {
        "fingerprint": FIRST,
        "oracle": "result",
        "arms": ["master", "bugged"],
        "suspect": "bugged",
        "origin": "rows",
        "summary": "step 29: 1 row missing, 0 surplus, of 1",
        "cases": 1,
        "bug": "4daf25071ed7",
        "known": None,
        "case": "5/copy_batches/3",
        "shown": [3, 3],
        "reduced_in": 62.9,
        "blame": {
            "arm": "bugged",
            "series": [BUG],
            "tried": [[0, False], [1, True]],
            "settings": "",
            "correction": "",
            "uncompiled": [],
            "patches": [BUG],
            "says": f"{BUG}, number 1 of the 1 patches of bugged",
        },
        "reproducer": str(old / "reproducers" / f"{FIRST}.sql"),
        "replay": f"./pgduel replay {old}/reproducers/{FIRST}.sql",
    }


def test_a_store_that_lacks_the_newest_tables_of_version_0_is_migrated(old: Path) -> None:
    with database(old) as connection:
        for name in ("beside", "vote", "smallest", "effort", "blame", "spec_finding"):
            connection.execute(f"DROP TABLE {name}")
    with opened(old) as store:
        found, *_ = store.findings()
        assert (found.reduced, found.smallest, found.blame, found.finding.vote) == (True, None, None, None)
        assert spec_findings(store) == ()


def test_a_migration_waits_until_an_older_program_ended(old: Path) -> None:
    with database(old) as connection:
        assert connection.execute("SELECT count(*) FROM finding").fetchone() == (3,)
        with pytest.raises(StoreError, match=r"another process uses it \(database is locked\); end that") as refused:
            Store(old)
        assert not isinstance(refused.value, TransientError)  # other stores do not wait for this one
    with opened(old) as store:
        assert len(store.findings()) == 3


def test_a_migration_that_fails_changes_nothing(old: Path) -> None:
    with database(old) as connection:
        connection.execute("UPDATE beside SET queries = 'damaged'")
        before = list(connection.iterdump())
    with pytest.raises(StoreError, match="cannot be used: malformed JSON"):
        Store(old)
    with database(old) as connection:
        assert list(connection.iterdump()) == before
        assert connection.execute("PRAGMA user_version").fetchone() == (0,)


def test_a_newer_store_is_refused_in_one_line(old: Path) -> None:
    with opened(old), database(old) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    pgduel, message = (
        PreloadedCommand(old.parent),
        f"has version {VERSION + 1}, this pgduel reads versions up to {VERSION}",
    )
    for command, status in ((("report", old.name), 2), (("list", "campaigns"), 0)):
        ended = pgduel(*command)
        assert ended.status == status
        (line,) = ended.err.splitlines()
        assert message in line

"""Tests of the store: findings, doubts and progress survive kills, and are read unchanged."""

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import literal_column, select, text

from fuzz.campaign.catalog import last_seed, new_campaign
from fuzz.campaign.counters import Counters, sample_of
from fuzz.campaign.plan import Plan
from fuzz.campaign.schema import DOUBT, StoreError
from fuzz.campaign.sqlite import FILE
from fuzz.campaign.store import (
    KEPT,
    HarnessFinding,
    SpecFinding,
    Store,
    StoredDoubt,
    add_harness_finding,
    add_spec_finding,
    harness_findings,
    record_input,
    spec_findings,
)
from fuzz.errors import CaseError
from fuzz.servers.arm_options import ArmOptions
from fuzz.sources.source import UserInput
from fuzz.triage.blame import Blame
from fuzz.triage.interestingness import ReducedCase
from fuzz.triage.replays import ReplayResult
from oracles.model.case import Case, Kind, Step
from oracles.model.finding import Evidence, Finding
from oracles.model.mode import Mode, Protocol
from tests.forking import FORKING

CASE = Case(
    "copy_batches",
    (Step("CREATE TABLE t (a int)"),),
    (
        Step("COPY t FROM STDIN", Kind.COPY_IN, b"1\n\xff\x00\n", may_fail=True, tags=("bad_encoding",)),
        Step("SELECT $1::int", Kind.QUERY, params=("1", None), ordered=True),
    ),
    (Mode("prepared_generic", (("plan_cache_mode", "force_generic_plan"),), Protocol.PREPARED),),
)
ARMS = ArmOptions(arms=("a=", "b="))
PLAN = Plan(
    1, {"a": 1, "b": 3}, 2.5, None, stop_at_first=True, arms=ARMS, given=UserInput("x.sql"), left_out={"c": "d"}
)
ARMS_RECORDED = {"master": {"build": "abc"}}
FINDING = Finding("result", ("master", "patched"), "XX000", 1, "rows differ", "1 row", "2 rows")


@pytest.fixture
def store(campaigns: Path) -> Iterator[Store]:
    opened = Store(new_campaign())
    opened.begin(PLAN, ARMS_RECORDED)
    yield opened
    opened.close()


def test_evidence_is_read_unchanged(store: Store) -> None:
    evidence = (Evidence("SELECT 1", (("work_mem", "64kB"),)), Evidence("SELECT 2", explained=True))
    found = replace(FINDING, origin="another", evidence=evidence)
    for each in (FINDING, found):
        store.add_finding(each, "1/copy_batches/0", CASE)
    assert [each.finding for each in store.findings()] == [FINDING, found]


def test_a_damaged_document_is_refused_in_one_line(store: Store) -> None:
    store.add_finding(FINDING, "1/copy_batches/0", CASE)
    store.write(text("""UPDATE finding SET "case" = '{"generator": "x"}'"""))
    with pytest.raises(StoreError, match=r"^the store .+ is damaged: not a Case: .* @ data.scene$"):
        store.findings()


def test_findings_are_read_unchanged_and_counted_by_case(store: Store) -> None:
    assert store.add_finding(FINDING, "1/copy_batches/0", CASE)
    assert not store.add_finding(FINDING, "1/copy_batches/7", CASE)
    assert not store.add_finding(FINDING, "1/copy_batches/7", CASE)  # a range that was cut off runs again
    (found,) = store.findings()
    assert (found.finding, found.case_id, found.case, found.count) == (FINDING, "1/copy_batches/0", CASE, 2)
    assert found.reproducer is None
    script = store.directory / "x.sql"
    script.touch()
    store.record_reproducer(FINDING.fingerprint, script)
    assert store.findings()[0].reproducer == script
    assert not store.findings()[0].reduced
    assert store.findings()[0].smallest is None


def test_doubts_are_read_unchanged_and_their_number_is_limited(store: Store) -> None:
    doubt = StoredDoubt("result", "unstable", "rows: differed once", "1/copy_batches/0", CASE, 1, ("1 row", "2 rows"))
    assert store.add_doubt(doubt)
    assert not store.add_doubt(doubt)  # a range that was cut off runs again
    assert store.doubts() == (doubt,)
    for number in range(1, KEPT + 5):
        store.add_doubt(replace(doubt, case_id=f"1/copy_batches/{number}"))
    assert len(store.doubts()) == KEPT
    assert store.add_doubt(replace(doubt, reason="another"))
    store.tried_again(doubt.name, "decided 20 times")
    assert store.doubts()[0].outcome == "decided 20 times"


def test_doubts_of_two_workers_at_the_same_time_do_not_exceed_their_number(store: Store) -> None:
    first, *others = (
        StoredDoubt("result", "unstable", "rows", f"1/copy_batches/{number}", CASE) for number in range(KEPT + 1)
    )
    for doubt in others[1:]:
        store.add_doubt(doubt)
    with ThreadPoolExecutor() as pool, closing(Store(store.directory)) as another:
        with store._database.begin() as connection:
            row = {"name": first.name} | {each.name: getattr(first, each.name) for each in fields(first)}
            connection.execute(store.new(DOUBT, **row))
            added = pool.submit(another.add_doubt, others[0])
            with suppress(TimeoutError):
                added.result(timeout=0.5)  # it waits, or would have counted too few
        assert not added.result()
    assert len(store.doubts()) == KEPT


def test_campaigns_that_begin_at_the_same_time_have_different_seeds(store: Store) -> None:
    """The second one begins while the first one chooses."""
    with ThreadPoolExecutor() as pool, closing(Store(new_campaign())) as one, closing(Store(new_campaign())) as other:
        choosing = threading.Event()

        def chosen() -> int:
            choosing.set()
            with suppress(TimeoutError):
                second.result(timeout=0.5)  # it waits, or would choose the same seed
            return last_seed(ARMS_RECORDED)

        def begin_second() -> None:
            choosing.wait()
            other.begin(PLAN, ARMS_RECORDED, partial(last_seed, ARMS_RECORDED))

        second = pool.submit(begin_second)
        one.begin(PLAN, ARMS_RECORDED, chosen)
        second.result()
        assert (store.plan.seed, one.plan.seed, other.plan.seed) == (1, 2, 3)
        one.begin(PLAN, ARMS_RECORDED, lambda: 7)
        assert one.plan.seed == 2  # a resumed campaign keeps its seed


def test_an_interrupted_reduction_leaves_its_smallest_case(store: Store) -> None:
    store.add_finding(FINDING, "1/copy_batches/0", CASE)
    assert store.findings()[0].least.case == CASE
    smaller = ReducedCase(replace(CASE, scene=()), FINDING, 1, 1)
    store.record_progress(FINDING.fingerprint, smaller)
    (found,) = store.findings()
    assert (found.reduced, found.least, found.case) == (False, smaller, CASE)


def test_a_reduction_is_read_unchanged(store: Store) -> None:
    store.add_finding(FINDING, "1/copy_batches/0", CASE)
    shown = replace(FINDING, step=0, evidence=(Evidence("SELECT 1", (("work_mem", "64kB"),)),))
    for runs in (3, 7):  # the second time after a kill
        smallest = ReducedCase(replace(CASE, scene=()), shown, 2, runs)
        store.record_reduction(FINDING.fingerprint, smallest, runs)
        (found,) = store.findings()
        assert found.reduced
        assert (found.smallest, found.seconds) == (smallest, runs)
    blame = Blame("patched", ("0001.patch",), ((0, False), (1, True)))
    store.record_blame(FINDING.fingerprint, blame)
    assert store.findings()[0].blame == blame


def test_progress_is_read_back(store: Store) -> None:
    counters = Counters(cases=Counter(a=3), verdicts=Counter({("result", "a", "agree"): 3}), seconds=1.5)
    store.progress(counters, {0: 8, 4: 2})
    store.progress(counters, {4: 5})
    assert store.counters == counters
    assert store.done() == {0: 8, 4: 5}


def test_a_resumed_campaign_keeps_its_plan(store: Store) -> None:
    store.begin(replace(PLAN, seed=2), {})
    assert store.plan == PLAN
    assert store.arms == ARMS_RECORDED


@pytest.mark.usefixtures("campaigns")
def test_a_campaign_that_ended_before_it_began_has_no_plan() -> None:
    with closing(Store(new_campaign())) as store:
        assert not store.begun
        assert store.counters == Counters()
        with pytest.raises(CaseError, match="ended before its first case"):
            _ = store.plan


def test_a_file_that_is_no_store_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no database, but long enough to look like one" * 100)
    with pytest.raises(StoreError, match="cannot be used: file is not a database"):
        Store(tmp_path)


def test_a_finding_that_cannot_be_kept_is_an_error(store: Store) -> None:
    store.write(text("DROP TABLE finding"))
    reason = 'no such table: finding|relation "finding" does not exist'
    with pytest.raises(StoreError, match=f"cannot be used: ({reason})$"):
        store.add_finding(FINDING, "1/copy_batches/0", CASE)


def _find_and_be_killed(directory: Path, variables: Mapping[str, str]) -> None:
    os.environ.update(variables)
    Store(directory).add_finding(FINDING, "1/copy_batches/0", CASE)
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_finding_survives_the_kill_of_its_worker(store: Store) -> None:
    worker = FORKING.Process(target=_find_and_be_killed, args=(store.directory, dict(os.environ)))
    worker.start()
    worker.join()
    assert worker.exitcode == -signal.SIGKILL
    assert [found.finding for found in store.findings()] == [FINDING]


def test_a_finding_of_a_spec_is_read_unchanged_and_is_none_of_a_case(store: Store, tmp_path: Path) -> None:
    finding = Finding("isolation", ("master", "patched"), "merge-update", None, "differs", "a", "b")
    spec = tmp_path / "it.spec"
    spec.touch()
    assert add_spec_finding(store, finding, "merge-update under plain", spec, b"setup {}")
    assert not add_spec_finding(store, finding, "merge-update under parallel", tmp_path / "other.spec", b"another")
    assert spec_findings(store) == (SpecFinding(finding, 2, spec),)
    assert store.findings() == ()


def test_a_finding_of_a_harness_is_read_unchanged_and_is_none_of_a_case(store: Store, tmp_path: Path) -> None:
    finding = Finding("harness", ("patched", "patched"), "resowner: check in it", None, "differs", "a", "b")
    input = tmp_path / "input"
    input.touch()
    assert add_harness_finding(store, finding, "resowner/1", "resowner", input, b"\xff\x00")
    assert not add_harness_finding(store, finding, "resowner/2", "resowner", tmp_path / "other", b"another")
    assert harness_findings(store) == (HarnessFinding(finding, 2, "resowner", input),)
    assert store.findings() == ()


def test_a_file_that_a_finding_needs_is_written_again_from_the_store(store: Store, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    add_spec_finding(store, FINDING, "x under plain", elsewhere / "x.spec", b"setup {}")
    add_harness_finding(store, FINDING, "resowner/1", "resowner", elsewhere / "x.input", b"\xff\x00")
    record_input(store, FINDING.fingerprint, b"\xff")
    (of_spec,), (of_harness,) = spec_findings(store), harness_findings(store)
    assert (of_spec.spec, of_spec.spec.read_bytes()) == (store.directory / "x.spec", b"setup {}")
    assert (of_harness.input, of_harness.input.read_bytes()) == (store.directory / "x.input", b"\xff")
    assert spec_findings(store) == (of_spec,)


def test_replays_are_read_unchanged_and_recorded_once(store: Store) -> None:
    outcomes = (ReplayResult("0" * 12, shown=False), ReplayResult("1" * 12, shown=True, of_base=True))
    for outcome in reversed(outcomes):
        store.record_replay(outcome)
    store.record_replay(ReplayResult("0" * 12, shown=True))
    assert store.replays() == outcomes


def _bytes_of(store: Store) -> int:
    """Return the size of a store."""
    file = store.directory / FILE
    if file.exists():
        return file.stat().st_size
    tables = text("pg_class WHERE relkind = 'r' AND relnamespace = 'campaign_1'::regnamespace")
    (row,) = store.read(select(literal_column("sum(pg_total_relation_size(oid))").label("size")).select_from(tables))
    return int(row["size"])


def test_without_details_findings_and_counters_are_left(store: Store) -> None:
    store.add_finding(FINDING, "1/copy_batches/0", CASE)
    for number in range(40):
        case = replace(CASE, scene=(Step(Random(number).randbytes(10_000).hex()),))
        store.add_doubt(StoredDoubt("result", "unstable", f"reason {number}", f"1/copy_batches/{number}", case))
        counters = Counters(cases=Counter({"a": number}))
        store.progress(counters, {0: number}, [sample_of(counters, 1, at=float(number))])
    findings = store.findings()
    store.drop_details()
    store.close()
    assert _bytes_of(store) < 500_000
    assert (store.findings(), store.doubts(), store.done()) == (findings, (), {0: 39})
    assert [(sample.cases, sample.at) for sample in store.samples()] == [(39, 39.0)]
    assert store.counters.cases.total() == 39

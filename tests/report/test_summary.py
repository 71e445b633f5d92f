"""Tests of a campaign's summary: on the terminal, and as JSON."""

import io
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from fuzz.campaign.counters import Counters
from fuzz.campaign.known import KnownFault
from fuzz.report.console import Console
from fuzz.report.summary import Summary, print_summary
from fuzz.sources.scripts.trial import LACKING
from fuzz.sources.source import UNPARSED
from fuzz.triage.findings import StoredFinding
from fuzz.triage.interestingness import ReducedCase
from oracles.model.case import Case
from oracles.model.finding import Finding

FINDING = Finding("result", ("master", "patched"), "rows", 0, "1 row [missing]", "", "")
COUNTERS = Counters(
    cases=Counter(joins=10),
    judged=Counter(joins=300),
    steps=Counter(joins=400),
    valid=Counter(joins=399),
    judged_by=Counter({("result", "joins"): 290, ("tlp", "joins"): 0}),
    verdicts=Counter({("result", "joins", "agree"): 8, ("result", "joins", "inconclusive"): 2}),
    reasons=Counter({("result", "joins", "inconclusive", "timeout"): 2}),
    tags=Counter({("joins", "lateral"): 12}),
    reach=Counter(hash_join=7),
    shapes=Counter({("joins", "1f"): 3, ("joins", "2e"): 1}),
    seconds=60.0,
    client_cpu=5.0,
    server_cpu=95.0,
)
CLEAN = Summary(
    "3", "time is up", 1, {"master": {"build": "abc"}}, {"planted": 4, "caught": 4}, "", COUNTERS, (), (), (), (), {}
)


def printed(summary: Summary, *, verbose: bool = False) -> str:
    out = io.StringIO()
    print_summary(Console(file=out, width=100), summary, verbose=verbose)
    return out.getvalue()


def test_json_has_findings_and_counters() -> None:
    output = json.loads(json.dumps(CLEAN.to_json()))
    assert output["statements_judged"] == 300
    assert output["valid_share"] == 0.9975
    assert (output["findings"], output["unstable"], output["inconclusive"]) == ([], 0, 2)
    assert output["canaries"] == {"planted": 4, "caught": 4}
    assert output["reach"] == {"hash_join": 7}
    assert output["generators"]["joins"]["plans"] == {"explained": 4, "shapes": 2, "once": 1}
    assert output["cpu_seconds"] == {"client": 5.0, "server": 95.0}
    assert (output["arms"], output["seed"]) == ({"master": {"build": "abc"}}, 1)
    assert output["statements_per_second"] == 5.0


def test_the_verdict_is_first_and_all_fits_on_a_screen() -> None:
    lines = printed(CLEAN).splitlines()
    assert lines[1] == "No finding, and all health checks passed."
    assert "10 cases, 300 statements compared in 1:00 (5/s), 99.8% valid, seed 1" in lines
    assert "planted bugs: 4 of 4 found" in lines
    assert "result 290 statements judged 2 inconclusive" in [" ".join(line.split()) for line in lines]
    assert len(lines) < 10


def test_statements_that_cannot_be_parsed_are_counted() -> None:
    counters = replace(COUNTERS, tags=COUNTERS.tags + Counter({("regress", UNPARSED): 2, ("user_sql", UNPARSED): 1}))
    summary = replace(CLEAN, counters=counters)
    line = "3 statements that pglast cannot parse: arms are compared, and no oracle derives queries from them"
    assert line in printed(summary).splitlines()
    assert "pglast" not in printed(CLEAN)
    assert (summary.to_json()["statements_unparsed"], CLEAN.to_json()["statements_unparsed"]) == (3, 0)


def test_statements_whose_feature_an_arm_lacks_are_counted() -> None:
    summary = replace(CLEAN, counters=replace(COUNTERS, tags=COUNTERS.tags + Counter({("regress", LACKING): 1})))
    line = "1 statement of patches' own tests not applicable, because an arm lacks their feature"
    assert line in printed(summary).splitlines()
    assert (summary.to_json()["statements_not_applicable"], CLEAN.to_json()["statements_not_applicable"]) == (1, 0)


def test_a_newer_base_is_reported() -> None:
    newer = replace(CLEAN, newer_bases=("base pg17 is 17.99",))
    assert "base pg17 is 17.99" in printed(newer).splitlines()
    assert newer.to_json()["newer_bases"] == ["base pg17 is 17.99"]


def test_planted_bugs_that_were_missed_at_first_are_reported() -> None:
    text = printed(replace(CLEAN, canaries={"planted": 4, "caught": 4, "retried": 1}))
    assert "planted bugs: 4 of 4 found, 1 only when planted again" in text


def test_unreduced_findings_are_counted() -> None:
    found = StoredFinding(FINDING, "1/joins/4", Case("joins", (), ()), 3, None, reduced=False)
    hint = "1 finding not reduced; ./pgduel fuzz --resume 3 reduces up to 10 of them"
    assert hint in printed(replace(CLEAN, findings=(found,)))
    triaged = replace(found, reduced=True, smallest=ReducedCase(found.case, FINDING, 0, 4))
    assert "not reduced" not in printed(replace(CLEAN, findings=(triaged,)))


def test_judged_statements_are_reported_by_oracle_and_generator() -> None:
    assert CLEAN.to_json()["judged_by_oracle"] == {"result": {"joins": 290}, "tlp": {"joins": 0}}


def test_the_verbose_summary_has_all_figures() -> None:
    text = printed(CLEAN, verbose=True)
    for text in (
        "95 s in the servers, 5 s in pgduel (5%)",
        "joins: shapes of plans 2, statements explained 4, chance of a new shape 25%",
        "inconclusive x2: timeout (result on joins)",
        "hash_join",
        "lateral",
    ):
        assert text in text
        assert text not in printed(CLEAN)


def test_equal_arms_bound_the_rate_of_false_findings() -> None:
    alike = replace(CLEAN, arms={"a": {"build": "abc"}, "b": {"build": "abc"}})
    judged = CLEAN.counters.judged_by
    assert CLEAN.false_findings_at_most() == {}
    assert replace(alike, arms={"a": {"build": "abc"}, "b": {"build": "def"}}).false_findings_at_most() == {}
    [(oracle, count)] = [(oracle, count) for (oracle, _), count in judged.items() if oracle == "result"]
    none = alike.false_findings_at_most()[oracle]
    assert none == pytest.approx(1 - 0.05 ** (1 / count))  # the rate at which no finding has a probability of 5 %
    assert f"at most 1 false in {1 / none:.0f}" in printed(alike)
    found = StoredFinding(FINDING, "1/joins/4", Case("joins", (), ()), 2, None, reduced=False)
    by_all = replace(found, finding=replace(FINDING, arms=("a", "a")))
    assert replace(alike, findings=(by_all,)).false_findings_at_most()[oracle] == none
    assert replace(alike, findings=(found,)).false_findings_at_most()[oracle] > 2 * none


def test_known_faults_are_named_and_leave_the_exit_status() -> None:
    found = StoredFinding(FINDING, "1/joins/4", Case("joins", (), ()), 3, None, reduced=False)
    known = (KnownFault(FINDING.fingerprint, link="https://example.org/1"), KnownFault("0123456789ab"))
    summary = replace(CLEAN, findings=(found,), known=known)
    lines = printed(summary).splitlines()
    assert lines[1] == "No new finding, and all health checks passed."
    assert f"known fault {FINDING.fingerprint} (https://example.org/1) in 3 cases" in lines
    assert "stale: known fault 0123456789ab did not occur" in lines
    assert not any("not reduced" in line or "replay" in line for line in lines)
    assert summary.exit_code == 0
    assert [each["cases"] for each in summary.to_json()["known"]] == [3, 0]
    assert replace(summary, known=known[1:]).exit_code == 1


def test_a_finding_has_its_replay_command() -> None:
    found = StoredFinding(FINDING, "1/joins/4", Case("joins", (), ()), 3, None, reduced=False)
    by_name = replace(CLEAN, findings=(found,))
    assert f"./pgduel replay 3/{FINDING.fingerprint}" in printed(by_name)
    assert "1 row [missing]" in printed(by_name)
    by_script = replace(CLEAN, findings=(replace(found, reproducer=Path("x.sql")),))
    assert "./pgduel replay x.sql" in printed(by_script)
    assert "./pgduel replay x.sql --arm a=b.patch" in printed(replace(by_script, replay_options=" --arm a=b.patch"))
    assert by_script.to_json()["findings"][0]["reproducer"] == "x.sql"


def test_a_fault_of_the_base_is_distinguished_from_one_of_a_patch() -> None:
    own = StoredFinding(FINDING, "1/joins/4", Case("joins", (), ()), 3, None, reduced=False)
    shared = replace(own, finding=replace(FINDING, arms=("master", "master")))
    assert "2 findings, 1 of them shown by all arms alike." in printed(replace(CLEAN, findings=(own, shared)))


def test_an_interrupted_campaign_has_the_command_to_resume() -> None:
    assert "./pgduel fuzz --resume 3" in printed(replace(CLEAN, why="interrupted"))


@pytest.mark.parametrize(
    ("found", "failed_checks", "status"), [(False, (), 0), (True, (), 1), (False, ("dull",), 2), (True, ("dull",), 1)]
)
def test_exit_status(found: bool, failed_checks: tuple[str, ...], status: int) -> None:  # noqa: FBT001
    findings = (StoredFinding(FINDING, "1/joins/4", Case("joins", (), ()), 3, None, reduced=False),) if found else ()
    assert replace(CLEAN, findings=findings, failed_checks=failed_checks).exit_code == status


def test_a_failed_health_check_is_reported() -> None:
    text = printed(replace(CLEAN, failed_checks=("joins: only 90.0% of the statements succeeded",)))
    assert "health check failed: joins: only 90.0%" in text
    assert "this run proves little" in text


def test_unreached_branches_are_reported() -> None:
    summary = replace(CLEAN, unreached=("bloom.left.late", "bloom.semi.shared"))
    assert "never reached: bloom.left.late, bloom.semi.shared" in printed(summary, verbose=True)
    assert summary.to_json()["unreached"] == ["bloom.left.late", "bloom.semi.shared"]
    assert "never reached" not in printed(CLEAN, verbose=True)


def test_parts_are_counted_by_their_modes() -> None:
    done = [("plain", "a"), ("plain", "b"), ("parallel", "a")]
    parts = Counter({("regress", modes, part, what): 1 for modes, part in done for what in ("cases", "statements")})
    summary = replace(CLEAN, counters=replace(COUNTERS, parts=parts), parts={"regress": 3})
    assert "parts of regress replayed, of 3:\n  parallel     1   plain        2\n" in printed(summary, verbose=True)
    assert json.loads(json.dumps(summary.to_json()))["parts"]["regress"]["plain"]["a"] == {"cases": 1, "statements": 1}

"""Tests of the oracle `statistics` on hand-made analyses: deviations, and correct samples."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from oracles.model.case import Case, Kind, Step
from oracles.model.finding import Finding
from oracles.model.observation import CaseObservation, Message, Observation, Remote, Residue, Run
from oracles.model.oracle import Agree, Inconclusive, NotApplicable, Unstable, Verdict
from oracles.statistics.oracle import Statistics
from tests.oracles.observed import LOST, error, judged, ok, row

ROWS = 1000
CASE = Case(
    "by_hand",
    (Step("CREATE FOREIGN TABLE far (n integer) SERVER loop"),),
    (Step("ANALYZE far"), Step("SELECT count(*) FROM near", Kind.QUERY)),
)
BERNOULLI = "DECLARE c1 CURSOR FOR SELECT n FROM duel.near TABLESAMPLE BERNOULLI(25)"
EVERYTHING = "DECLARE c1 CURSOR FOR SELECT n FROM duel.near"
LIMITED = (
    "DECLARE c1 CURSOR FOR SELECT n, pg_catalog.row_number() OVER (), pg_catalog.random() FROM duel.near"
    " ORDER BY 3 LIMIT 300"
)


def analyzed(
    kept: int = 260,
    total: float | None = None,
    requests: Sequence[str] = (BERNOULLI,),
    *,
    method: str | None = "bernoulli",
    null_frac: float = 0.0,
    quoted: float = ROWS,
    in_tree: bool = False,
    stored: float | None = None,
) -> CaseObservation:
    """Return the observation of the oracle's own run: 1000 rows without NULLs, and a target of 300 rows."""
    total = kept * 4 if total is None else total
    facts = {
        "remote": "duel.near",
        "method": method,
        "wanted": 300,
        "current": True,
        "in_tree": in_tree,
        "estimate": total if stored is None else stored,
        "quoted": quoted,
        "quoted_parts": quoted,
        "foreign": None,
    }
    column = {
        "name": "n", "widest": 1, "ranks": [1] * ROWS, "values": ["7"], "null_frac": null_frac, "n_distinct": 1,
        "common": ["7"], "frequencies": [1 - null_frac], "bounds": None, "correlation": 1,
    }  # fmt: skip
    seen = {"rows": ROWS, "members": None, "blocks": [1] * ROWS, "columns": [column]}
    messages = (
        Message("INFO", "00000", 'analyzing "duel.far"'),
        Message("INFO", "00000", f'"far": table contains {total:.0f} rows, {kept} rows in sample'),
    )
    read = replace(ok(), rows=(row(json.dumps(facts), json.dumps(seen)),))
    return CaseObservation(
        "",
        (ok(), ok(messages=messages), read),
        residue=Residue(),
        log=(
            "LOG:  statement: CREATE SCHEMA duel",
            "LOG:  statement: ANALYZE VERBOSE far",
            "LOG:  statement: SELECT 1",
        ),
        remote=tuple(Remote(1, 2, f"LOG:  statement: {statement}") for statement in requests),
    )


def respond(suspect: CaseObservation, reference: CaseObservation | None = None) -> Callable[[Run], CaseObservation]:
    return lambda run: suspect if run.arm == "patched" else reference or analyzed()


def verdicts(suspect: CaseObservation, reference: CaseObservation | None = None) -> tuple[Verdict, ...]:
    return judged(Statistics(), CASE, respond(suspect, reference))


def origins(found: Sequence[Verdict]) -> set[str]:
    return {each.origin for each in found if isinstance(each, Finding)}


def test_a_correct_sample_agrees() -> None:
    assert verdicts(analyzed()) == (Agree(1),)


@pytest.mark.parametrize(
    ("suspect", "origin"),
    [
        (analyzed(total=4160), "row estimate: bernoulli"),  # scaled twice
        (analyzed(stored=520), "row estimate: bernoulli"),
        (analyzed(kept=100), "rows sampled: bernoulli"),
        (analyzed(null_frac=0.5), "null fraction: bernoulli"),
        (analyzed(requests=[EVERYTHING], kept=300, total=ROWS), "remote SQL: bernoulli"),
        (analyzed(requests=[BERNOULLI.replace("25", "0.003")], kept=0, total=0), "remote SQL: bernoulli"),
        (analyzed(method="off"), "remote SQL: off"),
        (analyzed(method="random"), "remote SQL: random"),
        (analyzed(requests=[LIMITED.replace("300", "30")], kept=30, total=ROWS, quoted=-1), "rows sampled: bernoulli"),
        (analyzed(requests=[LIMITED], kept=300, total=ROWS * 2, quoted=-1), "row estimate: bernoulli"),
    ],
)
def test_deviations_of_samples_are_found(suspect: CaseObservation, origin: str) -> None:
    assert origin in origins(verdicts(suspect))


@pytest.mark.parametrize(
    "suspect",
    [
        analyzed(kept=230),  # chance
        analyzed(requests=[LIMITED], kept=300, total=ROWS + 20, quoted=-1),
        analyzed(requests=[BERNOULLI.replace("25", "35.2")], kept=300, total=1010, in_tree=True),  # thinned locally
        analyzed(requests=[EVERYTHING], kept=300, total=ROWS, method="off"),
        analyzed(requests=[EVERYTHING], kept=300, total=ROWS, method=None),  # an arm without the option
        analyzed(requests=[EVERYTHING], kept=300, total=ROWS, quoted=-1),  # no estimate
        analyzed(total=80_000, quoted=80_000),  # the remote server's own bad estimate
        analyzed(requests=[BERNOULLI.replace("25", "90"), BERNOULLI]),  # the first request was abandoned
    ],
)
def test_probable_samples_are_no_finding(suspect: CaseObservation) -> None:
    assert verdicts(suspect) == (Agree(1),)


GUESS = "EXPLAIN SELECT n FROM duel.near"
ALL = "SELECT relkind, reltuples FROM pg_catalog.pg_class", EVERYTHING, "FETCH 100 FROM c1", "CLOSE c1"


def read_all(*more: str, method: str | None = "off", in_tree: bool = False) -> CaseObservation:
    return analyzed(requests=[*more, *ALL], kept=300, total=ROWS, method=method, in_tree=in_tree)


@pytest.mark.parametrize("method", ["off", None])
def test_more_queries_than_on_the_reference_are_found_where_both_read_all_rows(method: str | None) -> None:
    assert origins(verdicts(read_all(GUESS), read_all(method=method))) == {"remote queries: off"}


@pytest.mark.parametrize(
    ("suspect", "reference"),
    [
        (read_all(), read_all()),
        (read_all("FETCH 100 FROM c1", "START TRANSACTION"), read_all()),
        (read_all(), read_all(GUESS)),
        (read_all(GUESS, in_tree=True), read_all()),  # the table's share of the tree's sample depends on the guess
        (read_all(GUESS), analyzed()),  # the reference takes a sample
        (analyzed(requests=[GUESS, ALL[0], BERNOULLI], method="auto"), read_all()),
    ],
)
def test_needed_queries_are_no_finding(suspect: CaseObservation, reference: CaseObservation) -> None:
    assert verdicts(suspect, reference) == (Agree(1),)


def of_tree(
    near: int,
    far: int,
    *sampled: str,
    sample: int = 150,
    request: str = EVERYTHING,
    total: float | None = None,
    quoted: float | None = None,
) -> CaseObservation:
    """Return an observation of ANALYZE of a tree of two tables with so many rows, some of which are sampled.

    The second table is foreign. `total` is the estimate of its rows, and `quoted` their number in the remote catalogs.
    """
    rows = near + far
    facts = {
        "remote": None, "method": None, "wanted": 300, "current": None, "in_tree": True, "estimate": -1, "quoted": -1,
        "quoted_parts": 0,
        "foreign": {
            "far": {"remote": "duel.near", "current": True} | dict.fromkeys(("quoted", "quoted_parts"), quoted or far)
        },
    }  # fmt: skip
    column = {
        "name": "n", "widest": 1, "ranks": [1] * rows, "values": ["7"], "null_frac": 0, "n_distinct": 1,
        "common": ["7"], "frequencies": [1], "bounds": None, "correlation": 1,
    }  # fmt: skip
    seen = {"rows": rows, "members": ["near"] * near + ["far"] * far, "blocks": None, "columns": [column]}
    messages = [Message("INFO", "00000", 'analyzing "duel.far" inheritance tree')]
    for table in sampled:
        contained = near if table == "near" else far if total is None else total
        text = f'"{table}": table contains {contained:.0f} rows, {sample} rows in sample'
        messages.append(Message("INFO", "00000", text))
    read = replace(ok(), rows=(row(json.dumps(facts), json.dumps(seen)),))
    return replace(analyzed(requests=[request]), steps=(ok(), replace(ok(), messages=tuple(messages)), read))


def test_a_table_that_only_the_reference_samples_is_found() -> None:
    found = verdicts(of_tree(500, 500, "near"), of_tree(500, 500, "near", "far"))
    assert origins(found) == {"tables sampled: not chosen"}


@pytest.mark.parametrize(
    ("suspect", "reference"),
    [
        (of_tree(500, 500, "near", "far"), of_tree(500, 500, "near")),
        (of_tree(500, 500, "near"), of_tree(500, 500, "near")),
        (of_tree(1000, 5, "near"), of_tree(1000, 5, "near", "far")),  # 1.5 rows are due to it
    ],
)
def test_a_table_that_the_reference_omits_or_to_which_few_rows_are_due_may_be_omitted(
    suspect: CaseObservation, reference: CaseObservation
) -> None:
    assert verdicts(suspect, reference) == (Agree(1),)


SHARE = BERNOULLI.replace("25", "35")  # of 500 rows, 175 in the mean: more than 150, so that hardly ever fewer arrive
LESS = BERNOULLI.replace("25", "25.1")  # of 500 rows, 125.5 in the mean


@pytest.mark.parametrize(
    ("suspect", "origin"),
    [
        (of_tree(500, 500, "near", "far", request=LESS), "rows requested: not chosen"),
        (of_tree(500, 500, "near", "far", request=LIMITED.replace("300", "100")), "rows requested: not chosen"),
        (of_tree(500, 500, "near", "far", request=EVERYTHING, total=600), "row estimate: not chosen"),
        (of_tree(500, 500, "near", "far", request=SHARE, total=900), "row estimate: not chosen"),
        (
            of_tree(500, 500, "near", "far", request=LIMITED.replace("300", "150"), total=900),
            "row estimate: not chosen",
        ),
        (of_tree(500, 50, "near", "far", sample=50, request=LIMITED.replace("300", "1"), total=1), "row estimate"),
    ],
)
def test_deviations_of_foreign_tables_of_a_tree_are_found(suspect: CaseObservation, origin: str) -> None:
    assert any(each.startswith(origin) for each in origins(verdicts(suspect, of_tree(500, 500, "near", "far"))))


@pytest.mark.parametrize(
    "suspect",
    [
        of_tree(500, 500, "near", "far", request=SHARE, total=480),
        of_tree(500, 500, "near", "far", request=SHARE, total=1000, quoted=1000),  # the remote server's own estimate
        of_tree(500, 500, "near", "far", request=LESS, total=550, quoted=600),  # a request by a wrong estimate
        of_tree(100, 500, "near", "far", sample=100, request=LESS, total=550),  # the share of the other is unknown
        of_tree(
            500, 100, "near", "far", sample=100, request=LIMITED.replace("300", "100"), total=100
        ),  # fewer rows than the share
    ],
)
def test_probable_samples_of_foreign_tables_of_a_tree_are_no_finding(suspect: CaseObservation) -> None:
    assert verdicts(suspect, of_tree(500, 500, "near", "far")) == (Agree(1),)


def test_rows_counted_in_some_blocks_of_a_table_of_a_tree_may_mislead() -> None:
    counted = (Remote(1, 2, "LOG:  statement: SELECT count(*) FROM duel.near TABLESAMPLE SYSTEM(50)"),)
    suspect = of_tree(500, 500, "near", "far", request=LESS, total=550)
    assert verdicts(replace(suspect, remote=counted + suspect.remote), of_tree(500, 500, "near", "far")) == (Agree(1),)


def test_a_deviation_in_one_sample_is_unstable() -> None:
    def once(run: Run) -> CaseObservation:
        again = run.repetition > 0
        return analyzed(total=4160) if run.arm == "patched" and not again else analyzed()

    assert judged(Statistics(), CASE, once) == (Unstable("row estimate: not in all samples"),)


def test_a_deviation_of_the_reference_too_is_unstable() -> None:
    found = verdicts(analyzed(total=4160), analyzed(total=4200))
    assert found == (Unstable("row estimate: master is as far off"),)


def test_a_reference_that_did_not_analyze_each_time_is_inconclusive() -> None:
    def once(run: Run) -> CaseObservation:
        cut = run.arm == "master" and run.repetition == 1
        return CaseObservation("", (ok(), LOST, LOST)) if cut else analyzed(total=4160)

    assert judged(Statistics(), CASE, once) == (Inconclusive("row estimate: master did not analyze each time"),)


def test_a_missing_log_is_inconclusive() -> None:
    assert verdicts(analyzed(requests=[])) == (Inconclusive("remote SQL not seen"),)


def test_a_lost_connection_is_inconclusive() -> None:
    lost = CaseObservation("", (ok(), LOST, LOST))
    assert verdicts(lost) == (Inconclusive("connection lost"),)
    assert verdicts(analyzed(), lost) == (Inconclusive("connection lost"),)


FAILED = replace(analyzed(), steps=(ok(), error("42501"), error("42501")))
SKIPPED = replace(analyzed(), steps=(ok(), replace(ok(), messages=()), Observation(ok().outcome)))


@pytest.mark.parametrize("seen", [FAILED, SKIPPED])
def test_an_analysis_that_only_one_arm_has_is_inconclusive(seen: CaseObservation) -> None:
    doubt = Inconclusive("only one arm analyzed the table")
    assert verdicts(seen, analyzed()) == (doubt,)
    assert doubt in verdicts(analyzed(), seen)
    assert verdicts(seen, seen) == (NotApplicable(),)


def test_only_cases_with_foreign_tables_are_judged() -> None:
    local = replace(CASE, scene=(Step("CREATE TABLE far (n integer)"),))
    assert Statistics().own_runs(local, ("master", "patched")) == ()


def test_the_query_is_replaced_by_a_query_of_statistics() -> None:
    (run, _) = Statistics().own_runs(CASE, ("master", "patched"))
    assert run.instead == ((1, "ANALYZE VERBOSE far"), (2, "SELECT * FROM pgduel_tools.analyzed('far')"))

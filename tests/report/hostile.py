"""A campaign whose names, rows and messages try to be markup, script or terminal control."""

from collections import Counter
from pathlib import Path
from typing import Final

from fuzz.campaign.catalog import opened
from fuzz.campaign.counters import Counters, sample_of
from fuzz.campaign.known import KnownFault
from fuzz.campaign.plan import Plan
from fuzz.campaign.store import Store, StoredDoubt
from fuzz.campaign.usage import Usage
from fuzz.report.bench_result import BenchMail, BenchResult, BenchRow
from fuzz.report.coverage_result import AddedLine, AddedLines, CoverageResult, LineCounts, MeasuredPatch
from fuzz.servers.arm_options import ArmOptions
from fuzz.triage.blame import Blame
from fuzz.triage.interestingness import ReducedCase
from oracles.model.case import Case, Kind, Step
from oracles.model.feature import Branch, Feature, Formula
from oracles.model.finding import Evidence, Finding, Vote

MARKUP: Final = "</script></pre><script>alert(1)</script><img src=http://example.org/x onerror=alert(2)>"
CONTROL: Final = "\x1b]0;title\x07\u202eevil\x00\udcff\ufffe"
CODE: Final = "```\n# heading\n| a | b | `c` @all <b> [x](http://example.org)"
HOSTILE: Final = f"{MARKUP} {CONTROL} {CODE}"
WORDS: Final = HOSTILE.replace("\udcff", "").replace("\x00", "")  # can be stored in a column, too
PATCH: Final = f"0001-{MARKUP}.patch"
CASE: Final = Case("joins", (Step("CREATE TABLE t (a int)"),), (Step(f"SELECT '{MARKUP}'", Kind.QUERY),))
BUGS: Final = 12
BENCH: Final = BenchResult(
    "copy",
    f"tps {MARKUP}",
    BenchMail(HOSTILE, "a@example.org"),
    rounds=9,
    seconds=1,
    processors=2,
    rows=(
        BenchRow(f"10 rows {MARKUP}", ("master", "patched"), 1.2, 1.1, 1.3, {"master": 10.0, "patched": 12.0}, 1.25),
        BenchRow(WORDS, ("master", "patched"), 1.0, 0.9, 1.1, {"master": 10.0, "patched": 10.0}),
    ),
)
_REACHED: Final = LineCounts(3)
_NOT_REACHED: Final = LineCounts(0)
COVERAGE: Final = CoverageResult(
    arms={"master": {}, f"patched {MARKUP}": {}},
    seed=7,
    cases=1200,
    patches=(
        MeasuredPatch(
            PATCH,
            {
                f"src/{MARKUP}.c": AddedLines(
                    (
                        AddedLine(7, f"/* {HOSTILE} */", None),
                        AddedLine(8, f'\tif (a && b == "{MARKUP}")', LineCounts(2, (0, 2)), LineCounts(5, (1, 4))),
                        AddedLine(9, "\t\tcall(a);", _NOT_REACHED, _REACHED),
                        AddedLine(30, '\t\telog(ERROR, "%s", a);', None, internal_error=True),
                        AddedLine(31, f"\treturn {'a + ' * 40}b;", _REACHED, _REACHED),
                        AddedLine(32, "\treturn;", _NOT_REACHED, _NOT_REACHED),
                    )
                ),
                "src/whole.c": AddedLines((AddedLine(1, "\tdone();", _REACHED, _NOT_REACHED),)),
            },
        ),
        MeasuredPatch("0002-comment.patch", {"a.h": AddedLines((AddedLine(1, "/* a */", None),))}),
        MeasuredPatch("0003-removes.patch", {}),
    ),
)
_BLOOM: Final = Feature(
    "bloom",
    f"Bloom {MARKUP}",
    joins=("Inner", "Left"),
    branches=(
        Branch("discarded", (Formula.parse("Rows > 0"),), joins=("Inner",)),
        Branch("late", (Formula.parse("Late > 0"),)),
    ),
    counters=("bloom.extra",),
)


def hostile_campaign(directory: Path, name: str = "") -> Path:
    """Create a campaign with BUGS bugs, one of them known, and return its directory. `name` makes it a run."""
    directory.mkdir(parents=True)
    counters = Counters()
    known = (KnownFault(oracle="crash", origin="signal 11", link="https://example.org/bug"),)
    plan = Plan(7, {"joins": 1}, 1.0, None, stop_at_first=False, arms=ArmOptions(), known=known, name=name)
    facts = {"build": "abc", "flavor": "assert", "base": {"name": HOSTILE, "version": "17.11"}, "tree": "def"}
    arms = {"master": facts | {"series": []}, "patched": facts | {"series": [PATCH], "settings": [f"x.y={HOSTILE}"]}}
    with opened(directory) as store:
        store.begin(plan, arms)
        store.record_start([_BLOOM], [f"plan: not used, {HOSTILE}"])
        store.record_canaries({"planted": 40, "caught": 40, "retried": 0})
        for number in range(20):
            _count(counters, number)
            usage = Usage(memory=10**9 + number, disk=10**8, files=300)
            sample = sample_of(counters, number // 2, 1_700_000_000.0 + number, usage)
            store.progress(counters, {0: number}, [sample])
        for number in range(BUGS - 1):
            _add(store, directory, number)
        store.add_finding(
            Finding("crash", ("master", "master"), "signal 11", 0, HOSTILE, "", HOSTILE), "7/joins/9", CASE
        )
        store.add_doubt(StoredDoubt("result", "unstable", WORDS, "7/joins/3", CASE, outcome="decided 20 times"))
        store.record_end(f"time is up {MARKUP}")
    return directory


def _add(store: Store, directory: Path, number: int) -> None:
    """Add a finding. The first is reduced and blamed, and has a script."""
    sides = (f"{HOSTILE}\nplan: Sort(Append(Seq Scan))", "none\nplan: Append(Index Scan)")
    evidence = (Evidence(f"SELECT '{HOSTILE}'", (("work_mem", MARKUP),), explained=True),)
    summary = f"step 1: row {number} differs: {HOSTILE}"
    vote = Vote("patched", ("master", MARKUP))
    finding = Finding("result", ("master", "patched"), f"rows {number}", 1, summary, *sides, evidence, vote)
    store.add_finding(finding, f"7/joins/{number}", CASE)
    if number == 0:
        script = directory / "reproducers" / f"{MARKUP.replace('/', '')}.sql"
        script.parent.mkdir()
        script.write_bytes(f"SELECT 1; -- {MARKUP} {CODE}\x1b\n".encode() + b"\xff")
        store.record_reproducer(finding.fingerprint, script)
        store.record_reduction(finding.fingerprint, ReducedCase(CASE, finding, 3, 3), 1.5)
        store.record_blame(finding.fingerprint, Blame("patched", (PATCH,), ((0, False), (1, True))))


def _count(counters: Counters, number: int) -> None:
    counters.cases["joins"] += 10
    counters.judged["joins"] += 100 + number
    counters.steps["joins"] += 100
    counters.valid["joins"] += 100
    counters.judged_by["result", "joins"] += 100
    counters.judged_by["tlp", "joins"] += 10
    counters.verdicts.update({("result", "joins", "agree"): 10, ("tlp", "joins", "agree"): 2})
    counters.shapes["joins", f"{number:x}"] += 2
    counters.seconds += 3.0
    if number == 10:
        counters.verdicts["result", "joins", "unstable"] += 1
        counters.reasons["result", "joins", "unstable", WORDS] += 1
        counters.reach += Counter({"explained": 9, "hash_join": 4, "memoize": 1, MARKUP: 2, "bloom": 3})
        counters.reach["bloom.inner.late"] += 3

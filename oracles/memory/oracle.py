"""Memory: no statement may exceed its memory limit, or write more to temporary files, unless the reference does, too.

The figures are those of EXPLAIN (ANALYZE, BUFFERS, SETTINGS): exact, of a single statement, and measured by the server.
They are compared if both arms executed the same plan over the same rows.

**Peak memory.** A node may use work_mem * hash_mem_multiplier (get_hash_memory_limit). A Parallel Hash may use as much
for each participant if it has a single batch (ExecChooseHashTableSize). There are seven legal kinds of excess:

- The tuples of one key cannot be split, so the server stops adding batches (ExecHashIncreaseNumBatches). That happens
  on the reference, too, so its peak is allowed if it is above the limit.
- Hash values determine the batch of that key. The first batch is always in memory, another one only if there are tuples
  to join it with (ExecHashJoinNewBatch). So if a table has several batches, the excess must occur again under 14 salts,
  as for temporary files below (for example, 157 kB in the first batch, which the reference has not read).
- Buckets, if the reference does not count its own. A run with a table of one tuple shows whether it does. PostgreSQL
  counts those of the first batch only (MultiExecPrivateHash), and no figure shows that. So half a pointer for each
  tuple of a table with several batches is inconclusive.
- Since 18, the server doubles the limit instead of the batches if their files' buffers would take as much
  (ExecChooseHashTableSize, ExecHashIncreaseBatchSize). EXPLAIN does not report the new limit, only the batches. A run
  with a table that seems immense shows whether the reference does so.
- The server inserts a tuple before it doubles the batches (ExecHashTableInsert). So a table may exceed the limit by the
  widest tuple. The probe measures that in a run of the suspect. If fewer than 32 of these tuples fill the memory, they
  may all be in one batch by chance. Then the server stops adding batches, and the excess is inconclusive. A larger
  excess must occur again with a somewhat larger limit, unless the plan is another one there.
- Tuples of the most common values have 2 % of the memory. They are inserted without regard to the buckets, which count
  in the end (ExecHashSkewTableInsert, MultiExecPrivateHash).
- Each participant of a Parallel Hash takes chunks of 32 kB without a check (`batches`).

The peak of a node that is no Hash is not compared above a hash join or in a parallel plan (`depends_on_order`).

**Planned batches.** Each batch of a hash join has two pointers to files (hashjoin.h), and more in a Parallel Hash. They
are not part of the figures of EXPLAIN. Before a row is read, they must not exceed the limit, unless the reference plans
as many. ExecChooseHashTableSize has such a limit (max_pointers) for immense estimates.

**Temporary files.** Blocks are counted when they are written (BufFileDumpBuffer), the last one of a file as a whole
block. A hash join has two files per batch. They are flushed once, when they are first read. That number of blocks is
tolerated. A Parallel Hash has these files for each participant, and writes chunks of STS_CHUNK_PAGES blocks
(sharedtuplestore.c). There are two legal kinds of excess:

- A server that counts the array of buckets, at most 16 bytes per tuple, needs batches for somewhat fewer tuples. So an
  excess must occur again with more memory for the suspect, and for both. If that is still too little, or the plan
  differs there, the figures must show which joins need their batches (`batches`).
- Hash values determine which tuples are in the first batch, which is not written, and which are written again when
  batches are doubled. Arms may use other bits of them (ExecHashGetBucketAndBatch). So an excess must occur again under
  14 salts, each of which changes all hash values on both arms. If both servers write equally much on average, the
  suspect writes more under one salt with a probability of at most one half, whatever the tuples and their keys are.

If a batch is larger than the memory, the verdict is inconclusive: a server that counts the array of buckets doubles the
batches earlier, so it writes more under each salt (for example, 16 batches, and 8 on the reference).

Timing determines the work of each participant of a parallel plan, their number, and so the number of files. So each
run of the suspect must exceed each run of the reference. Files are compared only if both did the same work in each
node.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain, cycle
from typing import ClassVar, Final

from oracles.buckets import BATCHES, BUCKETS, PEAK, POINTER
from oracles.explain.hash_memory import DEFAULT_WORK_MEM, Variation, allowance, kilobytes, with_work_mem
from oracles.explain.nodes import (
    EXPLAINED,
    MEASURED,
    WIDEST_HASH_TUPLE,
    Node,
    explained_runs,
    is_shared,
    loops,
    places,
    plan_kinds,
    plan_shape,
    plans,
    rows,
    salted,
)
from oracles.framework.canaries import canary_case, query
from oracles.framework.pairwise import REPETITIONS, Pair, SampledPairwise
from oracles.framework.verdicts import lost_session
from oracles.memory.batches import (
    ORIGINAL_BATCHES,
    WRITTEN,
    Path,
    counts_files,
    depends_on_order,
    has_uneven_batches,
    joins_short_of_memory,
    larger_batch,
    largest_peak,
    may_be_indivisible,
    measures_tuples,
    memory_of_buckets,
    overfull_tables,
    own_written,
    partial_blocks,
    splits,
    written_without,
)
from oracles.model.case import Case
from oracles.model.finding import UNDER_PLAN, Evidence, Finding
from oracles.model.mode import HASH_ONLY
from oracles.model.observation import CaseObservation, Run
from oracles.model.oracle import Agree, Canary, Inconclusive, More, Sample, Unstable, Verdict

_REPETITIONS: Final = tuple(Variation(repetition=number) for number in REPETITIONS)  # by chance alone: 1 of 16,000
_MEASURING: Final = Variation((MEASURED,))
_SALTS: Final = range(1, 15)  # by chance alone, the suspect writes more under all of them in 1 of 16,000 cases
_MEMORY_FACTORS: Final = (9 / 8, 5 / 4)  # factors of work_mem, so small that most hash tables still need batches

_CANARY: Final = canary_case(
    query("SELECT canary.n, nest.name FROM canary LEFT JOIN nest ON canary.n = nest.n"),
    modes=(HASH_ONLY,),
    samples=(EXPLAINED,),
)


@dataclass(frozen=True, slots=True)
class Excess:
    """An excess of the suspect in a figure of a node."""

    step: int
    path: tuple[int, ...]
    figure: str


Excesses = Mapping[Excess, tuple[str, str]]  # excess -> texts of expected and actual figure

# The memory for one tuple shows whether buckets are counted.
_ONE_TUPLE: Final = "SELECT FROM (VALUES (1)) AS a (n) FULL JOIN (VALUES (1)) AS b (n) ON a.n = b.n"


# The batches for an immense number of expected tuples show whether files' buffers are counted.
_IMMENSE: Final = (
    "SELECT n FROM generate_series(1, (SELECT 1)) AS n, generate_series(1, (SELECT 1)) AS m,"
    " generate_series(1, (SELECT 1)) AS o OFFSET 0"
)
_IMMENSE_JOIN: Final = f"SELECT FROM ({_IMMENSE}) AS a FULL JOIN ({_IMMENSE}) AS b ON a.n = b.n"


def _probe(excess: Excess) -> Variation:
    return Variation((), ((excess.step, _ONE_TUPLE),))


def _immense_probe(excess: Excess) -> Variation:
    return Variation((HASH_ONLY,), ((excess.step, _IMMENSE_JOIN),))


def _node_at(observed: CaseObservation, excess: Excess) -> Node:
    return next(place.node for place in places(dict(plans(observed))[excess.step]) if place.path == excess.path)


class _MemoryPair(Pair):
    def judge(self) -> tuple[Verdict, ...] | More:
        compared, doubt = comparable_steps(self._seen(self.reference), self._seen(self.suspect))
        suspected = self._excesses(Variation(), Variation())
        missing = self.missing(self._confirming_runs(suspected)) if suspected else ()
        if missing := missing or self.missing(self._salted_runs(suspected)):
            return More(missing, frozenset(excess.figure for excess in suspected))
        verdicts: list[Verdict] = [self._verdict(excess, texts) for excess, texts in suspected.items()]
        if doubt:
            verdicts.append(doubt)
        clean = compared - {excess.step for excess in suspected}
        return (*verdicts, Agree(len(clean))) if clean or not verdicts else tuple(verdicts)

    def _verdict(self, excess: Excess, texts: tuple[str, str]) -> Finding | Unstable | Inconclusive:
        if refutation := self._refutation(excess):
            return Unstable(f"{excess.figure}: {refutation}", excess.step, texts)
        if doubt := self._doubt(excess):
            return Inconclusive(doubt, excess.step, texts)
        if not all(self._recurs(excess, *salted_pair) for salted_pair in self._salted_pairs(excess)):
            return Unstable(f"{excess.figure}: not with other tuples in each batch", excess.step, texts)
        plan = dict(plans(self._seen(self.suspect)))[excess.step]
        return Finding(
            oracle=Memory.name,
            arms=(self.reference, self.suspect),
            origin=f"{excess.figure}{UNDER_PLAN}{plan_kinds(plan)}",
            step=excess.step,
            summary=f"step {excess.step}: {excess.figure}: {texts[1]}, {texts[0]}",
            expected=texts[0],
            actual=f"{texts[1]}\nplan: {plan_shape(plan)}",
            evidence=(Evidence(self.case.all_steps[excess.step].sql, explained=True),),
        )

    def _refutation(self, excess: Excess) -> str:
        """Return the runs that lack the excess; "" if there are none.

        Each run of the suspect is compared with each run of the reference.
        """
        variations = (Variation(), *_REPETITIONS)
        if not all(excess in self._excesses(ours, theirs) for ours in variations for theirs in variations):
            return "not in all runs"
        persists = self._peak_persists if excess.figure.startswith(PEAK) else self._writes_persist
        if not all(persists(excess, variation) for variation in self._with_more_memory()):
            return "not with a little more memory"
        return ""

    def _doubt(self, excess: Excess) -> str:
        """Return the reason why the excess may be legal; "" if there is none."""
        if excess.figure == WRITTEN:
            if self._is_for_buckets(excess):
                return "joins need other batches for their buckets"
            return (
                "a batch is larger than memory, so arms may split it at different times"
                if self._has_overfull_batches(excess)
                else ""
            )
        if not excess.figure.startswith(PEAK):
            return ""
        if doubt := self._doubt_about_tuples(excess):
            return doubt
        if self._is_uncounted(excess):
            return "the reference does not count buckets"
        if self._may_be_of_later_batches(excess):
            return "the reference may not count buckets of later batches"
        if self._has_larger_batches(excess):
            return "batches may exceed memory, because more of them need more for files"
        if self._is_divided_otherwise(excess):
            return "a batch is larger than memory, and its other tuples differ between arms"
        return ""

    def _peak_persists(self, excess: Excess, variation: Variation) -> bool:
        """Return whether the excess occurs in this variation, too, or the plan or the need for batches is another."""
        ours, theirs = self._seen(self.reference, variation), self._seen(self.suspect, variation)
        if excess.step not in comparable_steps(ours, theirs)[0]:
            return True
        plan, usual = (dict(plans(seen))[excess.step] for seen in (theirs, self._seen(self.suspect)))
        other = plan_shape(plan) != plan_shape(usual) or splits(plan, excess.path) != splits(usual, excess.path)
        return other or excess in self._excesses(variation, variation)

    def _doubt_about_tuples(self, excess: Excess) -> str:
        """Return the reason why the tuples of a hash table may cause the excess; "" if there is none."""
        explained = dict(plans(self._seen(self.suspect)))[excess.step]
        node = _node_at(self._seen(self.suspect), excess)
        if node["Node Type"] != "Hash":
            return ""
        if excess.step not in self._widths or not measures_tuples(node):
            return "the widest tuple is unknown"
        if may_be_indivisible(allowance(explained.get("Settings", {})), self._widths[excess.step]):
            return "tuples are so wide that by chance all of them may be in one batch"
        return ""

    def _writes_persist(self, excess: Excess, variation: Variation) -> bool:
        """Return whether more is written even with memory for uncounted buckets, or plans differ.

        Sorts and tuple stores may write more with this memory, so the reference must write less with it, too.
        """
        theirs = self._seen(self.suspect, variation)
        with_less, with_as_much = self._seen(self.reference), self._seen(self.reference, variation)
        return excess.step not in comparable_steps(with_less, theirs)[0] or all(
            excess in excesses(ours, theirs, {}) for ours in (with_less, with_as_much)
        )

    def _is_for_buckets(self, excess: Excess) -> bool:
        """Return whether only joins that need more batches for their buckets write more."""
        return not self._exceeds(excess, Variation(), Variation())

    def _recurs(self, excess: Excess, ours: Variation, theirs: Variation) -> bool:
        """Return whether the excess occurs in these runs, too."""
        if excess.figure == WRITTEN:
            return self._exceeds(excess, ours, theirs)
        return excess in self._excesses(ours, theirs)

    def _exceeds(self, excess: Excess, ours: Variation, theirs: Variation) -> bool:
        """Return whether the suspect writes more in these runs, without joins that need more batches."""
        seen = self._seen(self.reference, ours), self._seen(self.suspect, theirs)
        if excess.step not in comparable_steps(*seen)[0]:
            return False
        before, after = (dict(plans(each))[excess.step] for each in seen)
        more = frozenset() if self._is_settled(excess) else joins_short_of_memory(before, after)
        return any(_written(before, after, more))

    def _is_settled(self, excess: Excess) -> bool:
        """Return whether runs with memory for the buckets have the same plan. Then these are not the reason.

        There may be two of 8 bytes for each tuple, so of the smallest tuples even the last run has too little memory.
        """
        ours = self._seen(self.reference)
        others = [self._seen(self.suspect, variation) for variation in self._with_more_memory()]
        if not all(excess.step in comparable_steps(ours, other)[0] for other in others):
            return False
        before, after = (dict(plans(seen))[excess.step] for seen in (ours, others[-1]))
        return not joins_short_of_memory(before, after)

    def _salted_pairs(self, excess: Excess) -> Iterator[tuple[Variation, Variation]]:
        """Yield the variations of the reference and the suspect in which the batches of a table have other tuples."""
        if excess.figure != WRITTEN and not splits(dict(plans(self._seen(self.suspect)))[excess.step], excess.path):
            return
        settled = excess.figure == WRITTEN and self._is_settled(excess)
        memory = self._with_more_memory() if settled else (Variation(),)
        for salt, more in zip(_SALTS, cycle(memory), strict=False):
            yield Variation((salted(salt),)), Variation((*more.modes, salted(salt)), more.instead)

    def _is_uncounted(self, excess: Excess) -> bool:
        """Return whether the excess is at most the buckets, which the reference does not count."""
        ours, theirs = (_node_at(self._seen(arm), excess) for arm in (self.reference, self.suspect))
        if ours.get(PEAK, 0) + 1 < theirs.get(PEAK, 0) - memory_of_buckets(theirs):
            return False
        probed = dict(plans(self._seen(self.reference, _probe(excess)))).get(excess.step)
        tables = (place.node for place in places(probed) if BUCKETS in place.node) if probed else ()
        return any(table[PEAK] * 1024 < table[BUCKETS] * POINTER for table in tables)

    def _may_be_of_later_batches(self, excess: Excess) -> bool:
        """Return whether the excess over the reference may be the buckets of a batch other than the first one."""
        ours, theirs = (_node_at(self._seen(arm), excess) for arm in (self.reference, self.suspect))
        uneven = has_uneven_batches(dict(plans(self._seen(self.reference)))[excess.step], excess.path)
        more: float = theirs.get(PEAK, 0) - ours.get(PEAK, 0)
        legal = 1 + rows(theirs).high / loops(theirs) * POINTER / 2 / 1024  # figures are rounded up
        return uneven and not is_shared(theirs) and more <= legal

    def _has_larger_batches(self, excess: Excess) -> bool:
        """Return whether the reference has larger instead of more batches, and the excess is legal for these."""
        ours, theirs = (_node_at(self._seen(arm), excess) for arm in (self.reference, self.suspect))
        if theirs.get(PEAK, 0) > larger_batch(min(node.get(BATCHES, 1) for node in (ours, theirs))):
            return False
        probed = dict(plans(self._seen(self.reference, _immense_probe(excess)))).get(excess.step)
        return probed is not None and counts_files(probed)

    def _is_divided_otherwise(self, excess: Excess) -> bool:
        """Return whether the reference has a batch larger than its memory, too, with other tuples in it."""
        plan = dict(plans(self._seen(self.reference)))[excess.step]
        ours, theirs = (_node_at(self._seen(arm), excess) for arm in (self.reference, self.suspect))
        overfull = overfull_tables(plan, self._widths.get(excess.step, 0))
        same = ours.get(BATCHES) == theirs.get(BATCHES) and own_written(ours) == own_written(theirs)
        return excess.path in overfull and not same

    def _has_overfull_batches(self, excess: Excess) -> bool:
        """Return whether a table on either arm has a batch larger than its memory."""
        explained = (dict(plans(self._seen(arm)))[excess.step] for arm in (self.reference, self.suspect))
        return any(map(overfull_tables, explained))

    def _excesses(self, ours: Variation, theirs: Variation) -> Excesses:
        return excesses(self._seen(self.reference, ours), self._seen(self.suspect, theirs), self._widths)

    @property
    def _widths(self) -> Mapping[int, float]:
        """Return the widest tuple of each step's hash tables in bytes, if it was measured on the suspect."""
        measured = self.observations.get(self._run(self.suspect, _MEASURING))
        found = plans(measured) if measured else ()
        return {step: plan[WIDEST_HASH_TUPLE] for step, plan in found if WIDEST_HASH_TUPLE in plan}

    def _with_more_memory(self) -> tuple[Variation, ...]:
        """Return variations with a larger work_mem for all statements, also if statements set it."""
        settings = [plan.get("Settings", {}) for _, plan in plans(self._seen(self.reference))]
        allowed = min((kilobytes(each.get("work_mem", DEFAULT_WORK_MEM)) for each in settings), default=0)
        return tuple(with_work_mem(self.case, allowed, factor) for factor in _MEMORY_FACTORS)

    def _confirming_runs(self, suspected: Excesses) -> Iterator[Run]:
        variations = _REPETITIONS + self._with_more_memory()
        yield from (self._run(arm, variation) for arm in (self.reference, self.suspect) for variation in variations)
        peaks = [excess for excess in suspected if excess.figure.startswith(PEAK)]
        if peaks:
            yield self._run(self.suspect, _MEASURING)
        for excess in peaks:
            for probe in (_probe, _immense_probe):
                yield self._run(self.reference, probe(excess))

    def _salted_runs(self, suspected: Excesses) -> Iterator[Run]:
        """Yield the runs under the next salt for each excess that no earlier run refutes."""
        for excess in suspected:
            pairs = () if self._refutation(excess) or self._doubt(excess) else self._salted_pairs(excess)
            for ours, theirs in pairs:
                runs = (self._run(self.reference, ours), self._run(self.suspect, theirs))
                if self.missing(runs):
                    yield from runs
                    break
                if not self._recurs(excess, ours, theirs):
                    break

    def _run(self, arm: str, variation: Variation) -> Run:
        modes = self.case.modes + variation.modes
        return Run(arm, modes, explain=True, instead=variation.instead, repetition=variation.repetition)

    def _seen(self, arm: str, variation: Variation | None = None) -> CaseObservation:
        return self.observations[self._run(arm, variation or Variation())]


class Memory(SampledPairwise):
    """Memory beyond the limit, or more batches or temporary files than on the reference."""

    name: ClassVar[str] = "memory"
    samples: ClassVar[tuple[Sample, ...]] = (EXPLAINED,)
    canaries: ClassVar[tuple[Canary, ...]] = (Canary("outgrow", _CANARY), Canary("spill", _CANARY))
    pair = _MemoryPair

    def own_runs(self, case: Case, arms: Sequence[str]) -> tuple[Run, ...]:
        """Return the explained runs of a sample of cases."""
        return explained_runs(case, arms)


def comparable_steps(reference: CaseObservation, suspect: CaseObservation) -> tuple[set[int], Inconclusive | None]:
    """Return the steps in which both arms did the same work, and a doubt about the others, if any."""
    if reference.residue is None or suspect.residue is None:
        return set(), lost_session(reference, suspect)
    ours, theirs = dict(plans(reference)), dict(plans(suspect))
    alike = {step for step in ours.keys() & theirs.keys() if _is_comparable(ours[step], theirs[step])}
    others = (ours.keys() | theirs.keys()) - alike
    if not others:
        return alike, None
    sides = [f"plan: {plan_shape(each.get(min(others)))}" for each in (ours, theirs)]
    return alike, Inconclusive("other plans or other work", min(others), (sides[0], sides[1]))


def _is_comparable(ours: Node, theirs: Node) -> bool:
    """Return whether the plans are the same and, unless they are parallel, did the same work."""
    same_plan = plan_shape(ours) == plan_shape(theirs) and len(list(places(ours))) == len(list(places(theirs)))
    parallel = any(place.participants > 1 for place in places(ours))
    return same_plan and (parallel or _same_work(ours["Plan"], theirs["Plan"]))


_WORK: Final = ("Node Type", "Parent Relationship", "Join Type", "Strategy", "Parallel Aware", "Actual Rows")


def _same_work(ours: Node, theirs: Node) -> bool:
    below, others = ours.get("Plans", ()), theirs.get("Plans", ())
    alike = all(ours.get(name) == theirs.get(name) for name in _WORK) and loops(ours) == loops(theirs)
    return alike and len(below) == len(others) and all(map(_same_work, below, others))


def excesses(reference: CaseObservation, suspect: CaseObservation, widths: Mapping[int, float]) -> Excesses:
    """Return the excesses of the suspect over the reference; `widths` has the widest tuple of a step in bytes."""
    ours, theirs = dict(plans(reference)), dict(plans(suspect))
    found = {}
    for step in sorted(comparable_steps(reference, suspect)[0]):
        peaks = _peaks(ours[step], theirs[step], widths.get(step, 0))
        others = (figures(ours[step], theirs[step]) for figures in (_planned_batches, _written))
        for path, figure, expected, actual in chain(peaks, *others):
            found[Excess(step, path, figure)] = (expected, actual)
    return found


_FigureTexts = tuple[tuple[int, ...], str, str, str]


def _peaks(ours: Node, theirs: Node, widest: float) -> Iterator[_FigureTexts]:
    allowed = allowance(theirs.get("Settings", {}))
    for before, after in zip(places(ours), places(theirs), strict=True):
        bound = max(largest_peak(after, allowed, widest), before.node.get(PEAK, 0))
        if after.node.get(PEAK, 0) > bound and not depends_on_order(theirs, after):
            expected = f"at most {bound} kB (allowed: {allowed:g} kB, reference: {before.node.get(PEAK, 0)} kB)"
            yield after.path, f"{PEAK} of {after.node['Node Type']}", expected, f"{after.node[PEAK]} kB"


def _planned_batches(ours: Node, theirs: Node) -> Iterator[_FigureTexts]:
    allowed = allowance(theirs.get("Settings", {}))
    for before, after in zip(places(ours), places(theirs), strict=True):
        expected, actual = (place.node.get(ORIGINAL_BATCHES, 0) for place in (before, after))
        if actual > max(expected, allowed * 1024 // (2 * POINTER)):
            limit = f"at most {allowed:g} kB for pointers to their files (reference: {expected})"
            yield after.path, f"{ORIGINAL_BATCHES} of {after.node['Node Type']}", limit, f"{actual}"


def _written(ours: Node, theirs: Node, left_out: Set[Path] = frozenset()) -> Iterator[_FigureTexts]:
    """Yield the excess of written blocks, if any, without those of the hash joins at these paths."""
    before, after = (written_without(explained, left_out) for explained in (ours, theirs))
    noise = sum(partial_blocks(place.node) for place in places(theirs) if place.path not in left_out)
    if after > before + noise and _same_work(ours["Plan"], theirs["Plan"]):
        yield (), WRITTEN, f"at most {before} + {noise} for the last blocks of files, which may be partial", f"{after}"

"""Tests of the guided engine without servers: choices from bytes, corpora, and libFuzzer itself."""

import os
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.campaign.worker import ERRORS, log_killed
from fuzz.cli.fuzz import new_plan
from fuzz.engines.engine import EngineName
from fuzz.engines.guided import driver
from fuzz.engines.guided.driver import Driver, DriverEnded
from fuzz.engines.guided.engine import INPUTS, SEEDS, GuidedEngine
from fuzz.engines.guided.inputs import (
    LONGEST,
    MAXIMUM,
    SCALES,
    SEPARATOR,
    ByteChoices,
    Corpus,
    CurrentInput,
    case_of_input,
    left_inputs,
    random_input,
    store_input,
    stored_input,
)
from fuzz.engines.guided.known_edges import KnownEdges
from fuzz.engines.guided.novelty import Novelty, Origin
from fuzz.engines.libfuzzer.build import CLANG
from fuzz.engines.libfuzzer.run import input_name
from fuzz.engines.property_based import profile
from fuzz.engines.seeded import draw_case
from fuzz.errors import CaseError, StorageError
from fuzz.generators.choices import Stream
from fuzz.generators.copy_batches.generator import PROLOGUE
from fuzz.generators.generator import Generator, Scale, all_generators
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.edges.counters import Counts, EdgeCounters, EdgeMap, Edges, Layout, Region
from fuzz.sources.source import UserInput
from oracles.model.case import Case, CaseId, Step

GENERATORS = sorted(all_generators())
EDGES = 5000


def test_a_driver_that_does_not_start_leaves_no_file_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "ensure_driver", lambda: tmp_path / "missing")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for log in (tmp_path / "log", tmp_path / "missing" / "log"):
        with pytest.raises((FileNotFoundError, StorageError)):
            Driver(0, Layout((), 0), tmp_path / "corpus", log, seed=1)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_choice_takes_the_bytes_that_its_range_needs() -> None:
    choices = ByteChoices(bytes([255, 128, 0, 1, 255, 255]))
    assert choices.randrange(100) == 99
    assert choices.randrange(10, 20) == 15
    assert choices.randrange(1000) == 0  # 1 of 65536 is less than one of 1000
    assert choices.randrange(1) == 0
    assert choices.used() == bytes([255, 128, 0, 1]) + 2 * SEPARATOR
    assert choices.randrange(0, 600, 2) == 598
    assert choices.used() == bytes([255, 128, 0, 1, 255, 255]) + 2 * SEPARATOR


def test_choices_beyond_the_last_byte_are_the_simplest() -> None:
    choices = ByteChoices(b"\xff")
    assert choices.randrange(1 << 64) == 0xFF << 56
    assert [choices.randrange(9), choices.randrange(3, 9), choices.random(), choices.getrandbits(7)] == [0, 3, 0.0, 0]
    assert choices.choice("abc") == "a"
    with pytest.raises(ValueError, match="is empty"):
        choices.randrange(5, 5)


def test_all_values_of_a_range_are_drawn_about_equally_often() -> None:
    drawn = [ByteChoices(bytes([byte])).randrange(100) for byte in range(256)]
    assert sorted(drawn) == drawn
    assert {drawn.count(value) for value in range(100)} == {2, 3}


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_generator_takes_any_bytes(generator: str) -> None:
    rng = random.Random(f"any bytes for {generator}")
    for length in (0, 1, 10, 100, 300, LONGEST):
        data = SEPARATOR.join(rng.randbytes(length) for _ in range(rng.randrange(1, 9)))
        case = case_of_input(data, generator)
        assert case == case_of_input(data, generator)
        assert case.generator == generator
        assert case.all_steps


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_random_input_has_a_byte_for_each_choice(generator: str) -> None:
    data = random_input(generator, random.Random(7))
    assert data == random_input(generator, random.Random(7))
    assert 20 < len(data) <= LONGEST
    more = SEPARATOR.join(stream + b"more" for stream in data.split(SEPARATOR))
    assert case_of_input(data, generator) == case_of_input(more, generator)


@pytest.mark.parametrize("generator", GENERATORS)
def test_some_inputs_have_several_actions_in_streams_of_their_own(generator: str) -> None:
    inputs = [random_input(generator, random.Random(seed)) for seed in range(3)]
    assert any(len(data.split(SEPARATOR)) >= len(("modes", "scene", "edits", "action", "action")) for data in inputs)


class Unmarked(Generator):
    """A generator that does not mark the parts of its case."""

    name = "unmarked"
    modes = ("plain", "hash_only")

    def generate(self, rng: random.Random, _scale: Scale) -> Case:
        return Case(self.name, (), tuple(Step(f"SELECT {rng.randrange(256)}") for _ in range(3)))


def test_a_generator_without_marks_takes_all_choices_from_the_stream_of_the_scene() -> None:
    data = SEPARATOR.join((b"", b"\1\2\3", b"", b"action"))
    case = draw_case(ByteChoices(data), Unmarked(), SCALES[0])
    assert [step.sql for step in case.steps] == ["SELECT 1", "SELECT 2", "SELECT 3"]


def generated(data: bytes, generator: str) -> Case:
    """Return the case of an input without modes, role, row security and edits."""
    choices = ByteChoices(data)
    choices.begin(Stream.SCENE)
    return all_generators()[generator].generate(choices, SCALES[1])


def scene_alone(case: Case) -> list[Step]:
    """Return a case's scene without what `copy_batches` adds to it for the steps."""
    return [step for step in case.scene if step.sql not in PROLOGUE]


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_child_has_the_scene_of_one_input_and_the_modes_of_the_other(generator: str) -> None:
    for seed in range(3):
        one, other = (random_input(generator, random.Random(f"{seed} {name}")) for name in ("one", "other"))
        modes, scene, *rest = one.split(SEPARATOR)
        modes_of_other, scene_of_other, *_ = other.split(SEPARATOR)
        child = generated(SEPARATOR.join((modes, scene_of_other, *rest)), generator)
        assert scene_alone(child) == scene_alone(generated(other, generator))
        child = generated(SEPARATOR.join((modes_of_other, scene, *rest)), generator)
        assert child == generated(one, generator)


@profile()
@given(seed=st.integers(0, 999), data=st.data())
def test_actions_are_exchanged_and_dropped(seed: int, data: st.DataObject) -> None:
    parent = random_input("set_operations", random.Random(seed))
    modes, scene, edits, *actions = parent.split(SEPARATOR)
    kept = data.draw(st.lists(st.sampled_from(range(len(actions))), min_size=1, max_size=len(actions), unique=True))
    child = SEPARATOR.join((modes, scene, edits, *(actions[place] for place in kept)))
    steps = generated(parent, "set_operations").steps
    assert generated(child, "set_operations").steps == tuple(steps[place] for place in kept)


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Corpus:
    monkeypatch.setenv("PGDUEL_CAMPAIGNS", str(tmp_path))
    return Corpus.of("tests")


def test_a_driver_begins_with_all_inputs_and_some_more(corpus: Corpus) -> None:
    inputs = [b"x" * size for size in range(1, MAXIMUM + 20)]
    assert len(corpus.begin(inputs)) == len(inputs)
    begun = corpus.begin([b"new"])
    assert begun == {input_name(data) for data in (*inputs, b"new")}
    assert corpus.read(input_name(b"new")) == b"new"
    corpus.delete(input_name(b"new"))
    corpus.delete(input_name(b"new"))
    assert corpus.read(input_name(b"new")) is None


def reaching(*edges: int) -> Counts:
    """Return counters of an input that reached these edges."""
    counts = np.zeros(EDGES, np.uint8)
    counts[list(edges)] = 1
    return counts


def shortened(corpus: Corpus, known: KnownEdges) -> set[str]:
    """Return the names of the inputs that a corpus keeps."""
    kept = corpus.shortened(partial(known.added, "tests"))
    assert sorted(kept) == sorted(corpus.sizes())
    return set(kept)


def test_a_corpus_is_bounded_and_keeps_inputs_that_add_edges(corpus: Corpus) -> None:
    """Only the largest inputs reach an edge. The smaller ones are redundant."""
    redundant = [b"x" * size for size in range(1, MAXIMUM + 1)]
    needed = [bytes([number]) * LONGEST for number in range(20)]
    known = KnownEdges.of("builds")
    for data in redundant:
        known.write("tests", input_name(data), reaching(0))
    for number, data in enumerate(needed):
        known.write("tests", input_name(data), reaching(0, 1 + number), again=number % 2 == 0)
    corpus.begin((*redundant, *needed))
    kept = shortened(corpus, known)
    assert kept == {input_name(data) for data in (*redundant[: MAXIMUM - 20], *needed)}


def test_of_too_many_inputs_those_that_add_most_edges_are_kept(corpus: Corpus) -> None:
    inputs = [b"%04d" % number for number in range(MAXIMUM + 50)]
    known = KnownEdges.of("builds")
    for number, data in enumerate(inputs):
        more = (1000 + number,) if number >= 50 else ()
        known.write("tests", input_name(data), reaching(number, *more))
    corpus.begin(inputs)
    assert shortened(corpus, known) == {input_name(data) for data in inputs[50:]}


def test_inputs_of_unknown_edges_are_kept_up_to_a_maximum_of_their_own(corpus: Corpus) -> None:
    unknown = [b"y" * size for size in range(1, MAXIMUM + 3)]
    known = KnownEdges.of("builds")
    inputs = [b"%04d" % number for number in range(MAXIMUM)]
    for data in inputs:
        known.write("tests", input_name(data), reaching(0))
    corpus.begin((*unknown, *inputs))
    assert shortened(corpus, known) == {input_name(data) for data in (*unknown[:MAXIMUM], *inputs)}


@pytest.mark.usefixtures("corpus")
def test_edges_of_earlier_builds_tell_which_inputs_add_some() -> None:
    earlier = KnownEdges.of("earlier builds")
    for name, edges in (("a", (0, 1)), ("b", (1,)), ("c", (1, 2, 3))):
        earlier.write("tests", name, reaching(*edges))
    known = KnownEdges.of("builds")
    known.write("tests", "a", reaching(7))
    os.utime(earlier.directory, (1, 1))
    assert known.added("tests", ["a", "b", "c", "d"]) == {"a": 1, "b": 1, "c": 2}


def test_a_campaign_stores_an_input(tmp_path: Path) -> None:
    store_input(tmp_path, b"bytes")
    assert stored_input(tmp_path, input_name(b"bytes")) == b"bytes"
    assert stored_input(tmp_path, input_name(b"others")) is None


@pytest.mark.skipif(not shutil.which(CLANG), reason=f"{CLANG} is not installed")
def test_libfuzzer_keeps_what_reaches_new_counters(corpus: Corpus, tmp_path: Path) -> None:
    """Counters that say how many bytes of a word an input begins with lead libFuzzer to the word."""
    word, layout = b"pgd", Layout((Region(0, 2), Region(4096, 2)), 8192)
    file = tmp_path / "counters"
    file.write_bytes(bytes(layout.size))
    corpus.begin([b"a word of some bytes"])
    found = b""
    with file.open("r+b", buffering=0) as counters:
        driver = Driver(counters.fileno(), layout, corpus.directory, tmp_path / "log", seed=1)
        for _ in range(200_000):
            data = driver.next_input()
            found = max((word[:length] for length in range(len(word) + 1) if data.startswith(word[:length])), key=len)
            if found == word:
                break
            for place in (0, 1, 4096)[: len(found) + 1]:
                counters.seek(place)
                counters.write(b"\1")
            driver.conclude(keep=True)
    driver.close()
    assert found == word, (tmp_path / "log").read_text()
    assert len(corpus.sizes()) >= 3


@pytest.mark.skipif(not shutil.which(CLANG), reason=f"{CLANG} is not installed")
def test_libfuzzer_combines_the_streams_of_inputs(corpus: Corpus, tmp_path: Path) -> None:
    one, other = (tuple(bytes([letter]) * 30 + bytes([n]) for n in range(5)) for letter in b"ab")
    file = tmp_path / "counters"
    layout = Layout((Region(0, 2),), 4096)
    file.write_bytes(bytes(layout.size))
    corpus.begin([SEPARATOR.join(one), SEPARATOR.join(other)])
    seen: set[tuple[bytes, ...]] = set()
    with file.open("r+b", buffering=0) as counters:
        driver = Driver(counters.fileno(), layout, corpus.directory, tmp_path / "log", seed=1)
        for _ in range(3000):
            data = driver.next_input()
            streams = tuple(data.split(SEPARATOR))
            seen.add(streams)
            if streams in (one, other):  # no others are kept
                counters.seek((one, other).index(streams))
                counters.write(b"\1")
            driver.conclude(keep=True)
        driver.close()
    log = (tmp_path / "log").read_text()
    assert (one[0], other[1], *one[2:]) in seen, log  # another scene
    assert (other[0], *one[1:]) in seen  # other modes
    assert (*one[:2], other[2], *one[3:]) in seen  # other edits
    assert any(streams[:3] == one[:3] and set(streams[3:]) & set(other[3:]) for streams in seen)
    assert (*one[:3], one[4], one[3]) in seen  # exchanged actions
    assert (*one[:3], one[4]) in seen  # an action less
    assert all(len(SEPARATOR.join(streams)) <= LONGEST for streams in seen)


def share_of_rare(corpus: Corpus, log: Path, preferred: Sequence[int]) -> float:
    """Return the share of libFuzzer's inputs with a stream of the only one of twenty that reaches the edge 3.

    That edge is in the second region. No input reaches the edges 1 and 2.
    """
    rare, layout = b"the rare one", Layout((Region(0, 2), Region(4096, 2)), 8192)
    corpus.begin(SEPARATOR.join([b"modes", b"%d" % number * 5, b"edits", b"action"]) for number in range(19))
    corpus.begin([SEPARATOR.join([b"modes", rare, b"edits", b"action"])])
    with TemporaryFile(buffering=0) as counters:
        counters.write(bytes(layout.size))
        driver = Driver(counters.fileno(), layout, corpus.directory, log, seed=1, preferred=preferred)
        inputs = []
        for _ in range(2000):
            inputs.append(driver.next_input())
            for place in (0, 4097) if rare in inputs[-1] else (0,):
                counters.seek(place)
                counters.write(b"\1")
            driver.conclude(keep=True)
        driver.close()
    return sum(rare in data for data in inputs) / len(inputs)


@pytest.mark.skipif(not shutil.which(CLANG), reason=f"{CLANG} is not installed")
def test_inputs_that_reach_changed_functions_are_changed_more_often(corpus: Corpus, tmp_path: Path) -> None:
    alike = share_of_rare(corpus, tmp_path / "log", ())
    assert share_of_rare(corpus, tmp_path / "log", (2, 1, 3)) > alike + 0.1


@pytest.mark.skipif(not shutil.which(CLANG), reason=f"{CLANG} is not installed")
@pytest.mark.parametrize(("others", "least", "most"), [((b"",), 499, 620), ((), 999, 999)])
def test_random_inputs_come_in_place_of_mutated_and_crossed_ones_and_are_kept_as_others(
    corpus: Corpus, tmp_path: Path, others: tuple[bytes, ...], least: int, most: int
) -> None:
    layout, known, drawn = (
        Layout((Region(0, 2),), 4096),
        SEPARATOR.join([b"modes", b"scene", b"edits", b"one", b"two"]),
        SEPARATOR.join([b"r"] * 9),
    )
    corpus.begin([known])
    turns = cycle((drawn, *others))
    with TemporaryFile(buffering=0) as counters:
        counters.write(bytes(layout.size))
        driver = Driver(
            counters.fileno(), layout, corpus.directory, tmp_path / "log", seed=1, draw_random=lambda: next(turns)
        )
        inputs = []
        for _ in range(1000):
            inputs.append(driver.next_input())
            counters.seek(inputs[-1] == drawn)
            counters.write(b"\1")
            driver.conclude(keep=True)
        driver.close()
    assert inputs[0] == known
    assert least <= inputs.count(drawn) <= most
    assert input_name(drawn) in corpus.sizes()


def test_the_origin_of_more_new_edges_has_a_larger_share_but_no_origin_has_all() -> None:
    novelty = Novelty()
    assert novelty.random_share == 0.9
    for _ in range(20):
        novelty.note(Origin.RANDOM, 30)
        novelty.note(Origin.MUTATED, 10)
    assert novelty.random_share == 0.9
    for _ in range(400):
        novelty.note(Origin.RANDOM, 0)
        novelty.note(Origin.MUTATED, 10)
    assert novelty.random_share == 0.1
    for _ in range(400):
        novelty.note(Origin.RANDOM, 10)
        novelty.note(Origin.MUTATED, 0)
    assert novelty.random_share == 0.9


@contextmanager
def begun(directory: Path, reached: EdgeMap, seed: int = 1) -> Iterator[tuple[GuidedEngine, EdgeCounters]]:
    """Yield an engine with counters of one region, which no server writes to."""
    file, layout = directory / "counters", Layout((Region(0, EDGES),), 8192)
    file.write_bytes(bytes(layout.size))
    counters = object.__new__(EdgeCounters)
    counters.layout, counters.descriptor = layout, os.open(file, os.O_RDWR)
    known = KnownEdges.of("builds")
    engine = GuidedEngine(Edges(counters, reached), known, (), directory, (), seed=seed, number=0)
    try:
        yield engine, counters
    finally:
        engine.close()
        counters.close()


@pytest.mark.usefixtures("corpus")
@pytest.mark.skipif(not shutil.which(CLANG), reason=f"{CLANG} is not installed")
def test_a_killed_libfuzzer_is_replaced_by_another(tmp_path: Path) -> None:
    case = CaseId(1, "set_operations", 0)
    with begun(tmp_path, EdgeMap(EDGES)) as (engine, _):
        engine.draw(case)
        (driver,) = (each for each in psutil.Process().children() if each.name() == "driver")
        driver.kill()
        engine.conclude(executed=True)
        with pytest.raises(DriverEnded, match="libFuzzer ended with status -9"):
            engine.draw(case)
        engine.conclude(executed=False)
        assert engine.draw(case).case.steps


@pytest.mark.usefixtures("corpus")
@pytest.mark.skipif(not shutil.which(CLANG), reason=f"{CLANG} is not installed")
def test_a_tried_input_is_judged_if_it_is_new_and_one_of_several_always(tmp_path: Path) -> None:
    reached, case = EdgeMap(EDGES), CaseId(1, "set_operations", 0)
    reached.add(np.eye(1, EDGES, 7, dtype=np.uint8)[0])

    def is_new(edge: int) -> bool | None:
        """Return whether a trial of the next input, which reaches this edge, is new; None if it needs no trial."""
        drawn = engine.draw(case)
        counters.write(np.eye(1, EDGES, edge, dtype=np.uint8)[0])
        found = None if drawn.is_new is None else drawn.is_new()
        engine.conclude(executed=True)
        return found

    with begun(tmp_path, reached) as (engine, counters):
        assert [is_new(7) for _ in range(SEEDS)] == [None] * SEEDS
        assert is_new(8)
        assert [is_new(7) for _ in range(INPUTS)] == [False] * (INPUTS - 1) + [None]


@pytest.mark.usefixtures("corpus")
@pytest.mark.skipif(not shutil.which(CLANG), reason=f"{CLANG} is not installed")
def test_the_input_of_a_killed_worker_is_kept(tmp_path: Path) -> None:
    with begun(tmp_path, EdgeMap(EDGES)) as (engine, _):
        drawn = engine.draw(CaseId(1, "set_operations", 0))
    (name,) = left_inputs(tmp_path, 0)
    assert name == drawn.name
    assert stored_input(tmp_path, name.rpartition("/")[2]) is not None
    assert not left_inputs(tmp_path, 0)


def test_inputs_of_killed_workers_are_logged_also_if_a_resumed_run_has_fewer_workers(tmp_path: Path) -> None:
    for number in (1, 11):
        CurrentInput(tmp_path, number).write("tests", b"input of worker %d" % number)
    names = [f"libfuzzer/tests/{input_name(b'input of worker %d' % number)}" for number in (1, 11)]
    assert left_inputs(tmp_path, 0) == []
    assert left_inputs(tmp_path, 1) == names[:1]
    log_killed(tmp_path)
    assert (tmp_path / ERRORS).read_text() == f"a worker was killed during case {names[1]}\n"
    assert stored_input(tmp_path, input_name(b"input of worker 11")) == b"input of worker 11"
    assert left_inputs(tmp_path) == []


def reached_by(name: str) -> Counts:
    """Return counters as if an input reached the first edge and another one, which its name decides."""
    counts = np.zeros(EDGES, np.uint8)
    counts[[0, 1 + int(name[:4], 16) % (EDGES - 1)]] = 1
    return counts


@pytest.mark.usefixtures("corpus")
@pytest.mark.skipif(not shutil.which(CLANG), reason=f"{CLANG} is not installed")
def test_inputs_whose_edges_are_known_are_not_executed_again(tmp_path: Path) -> None:
    case, first, second = CaseId(1, "set_operations", 0), EdgeMap(EDGES), EdgeMap(EDGES)

    def executed(reached: EdgeMap, seed: int, cases: int) -> list[str]:
        names: list[str] = []
        with begun(tmp_path, reached, seed) as (engine, counters):
            engine.begin(["set_operations"])
            for _ in range(cases):
                drawn = engine.draw(case)
                if not names:
                    drawn.record()
                names.append(drawn.name.rpartition("/")[2])
                counters.write(reached_by(names[-1]))
                reached.add(counters.counts())
                engine.conclude(executed=True)
        return names

    before = executed(first, 1, 200)
    kept = set(Corpus.of("set_operations").sizes())
    assert len(kept & set(before)) > 20
    after = executed(second, 2, 20)
    assert kept & set(after) <= {before[0]}  # a case with a finding is executed again
    assert second.reached >= first.reached
    known = KnownEdges.of("builds")
    assert {path.stem for path in (known.directory / "set_operations").iterdir()} <= set(before) | set(after)


@pytest.mark.usefixtures("corpus")
@pytest.mark.skipif(not shutil.which(CLANG), reason=f"{CLANG} is not installed")
def test_kept_inputs_that_were_only_tried_are_judged_in_the_next_run_which_counts_their_edges(tmp_path: Path) -> None:
    case, first = CaseId(1, "set_operations", 0), EdgeMap(EDGES)
    first.add(np.ones(EDGES, np.uint8))  # other generators reached all edges
    tried: set[str] = set()
    with begun(tmp_path, first) as (engine, counters):
        for _ in range(200):
            drawn = engine.draw(case)
            name = drawn.name.rpartition("/")[2]
            counters.write(reached_by(name))
            if drawn.is_new is not None:
                assert not drawn.is_new()
                tried.add(name)
            engine.conclude(executed=True)
    kept = tried & Corpus.of("set_operations").sizes().keys()
    assert len(kept) > 20
    second = EdgeMap(EDGES)
    with begun(tmp_path, second, 2) as (engine, counters):
        engine.begin(["set_operations"])
        assert second.reached > len(kept) / 2
        judged = set()
        for _ in range(len(kept)):
            drawn = engine.draw(case)
            assert drawn.is_new is None
            judged.add(drawn.name.rpartition("/")[2])
            counters.write(reached_by(drawn.name.rpartition("/")[2]))
            engine.conclude(executed=True)
    assert len(judged & kept) >= len(kept) - SEEDS - 1
    known = KnownEdges.of("builds")
    assert sum(known.read("set_operations", name, EDGES) is not None for name in kept) >= len(kept) - SEEDS - 2


@pytest.mark.usefixtures("corpus")
@pytest.mark.skipif(not shutil.which(CLANG), reason=f"{CLANG} is not installed")
def test_inputs_that_other_workers_kept_do_not_count_as_mutations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[Origin] = []
    monkeypatch.setattr(Novelty, "note", lambda _, origin, _edges: noted.append(origin))
    case, shared = CaseId(1, "set_operations", 0), random_input("set_operations", random.Random("shared"))
    with begun(tmp_path, EdgeMap(EDGES)) as (engine, counters):
        for number in range(300):
            drawn, before = engine.draw(case), len(noted)
            counters.write(reaching(0))
            is_shared = drawn.name.endswith(input_name(shared))
            if drawn.is_new is not None:
                drawn.is_new()
                assert len(noted) == before + (not is_shared)
            engine.conclude(executed=True)
            if is_shared and drawn.is_new is not None:
                return
            if number == 20:
                Corpus.of("set_operations").begin([shared])
            if number > 20:
                time.sleep(0.05)  # libFuzzer reads the corpus every second
    pytest.fail("libFuzzer did not read the input of another worker, or it needed no trial")


@pytest.mark.usefixtures("corpus")
@pytest.mark.skipif(not shutil.which(CLANG), reason=f"{CLANG} is not installed")
def test_the_cpu_time_of_running_drivers_is_counted(tmp_path: Path) -> None:
    with begun(tmp_path, EdgeMap(EDGES)) as (engine, _):
        assert engine.cpu_seconds() == 0
        for _ in range(2000):
            engine.draw(CaseId(1, "set_operations", 0))
            engine.conclude(executed=True)
            if engine.cpu_seconds() > 0:  # a multiple of 10 ms
                break
        (process,) = (each for each in psutil.Process().children() if each.name() == "driver")
        used = process.cpu_times()
        assert 0 < used.user + used.system <= engine.cpu_seconds() < 60
    assert engine.cpu_seconds() == 0  # it is in os.times()


@pytest.mark.usefixtures("corpus")
@pytest.mark.skipif(not shutil.which(CLANG), reason=f"{CLANG} is not installed")
def test_the_last_input_of_a_run_is_kept_with_its_edges(tmp_path: Path) -> None:
    for number in range(5):
        with begun(tmp_path, EdgeMap(EDGES), number) as (engine, counters):
            for edge in (2 * number, 2 * number + 1):
                drawn = engine.draw(CaseId(1, "set_operations", 0))
                counters.write(reaching(edge))
                engine.conclude(executed=True)
        name = drawn.name.rpartition("/")[2]
        assert name in Corpus.of("set_operations").sizes()
        assert KnownEdges.of("builds").read("set_operations", name, EDGES) is not None


def test_known_edges_are_those_of_the_last_used_builds(corpus: Corpus) -> None:
    counts = np.array([1, 0, 200, 0, 0, 0, 0, 0, 7], np.uint8)
    for number in range(20):
        known = KnownEdges.of(f"builds {number}")
        os.utime(known.directory, (number, number))
        known.write("tests", "an input", counts)
        known.write("tests", "another", counts)
        os.utime(known.directory, (number, number))
    read = known.read("tests", "an input", len(counts))
    assert read is not None
    assert read.tolist() == [1, 0, 1, 0, 0, 0, 0, 0, 1]
    draft = known.directory / "tests" / "an input.7.draft"  # of another worker
    draft.touch()
    known.write("tests", "another one", counts, again=True)
    known.keep_only("tests", {"another"})
    assert known.read("tests", "another one", len(counts), again=True) is None
    assert known.read("tests", "an input", len(counts)) is None
    assert draft.exists()
    assert KnownEdges.of("builds 19").read("tests", "another", len(counts)) is not None
    assert KnownEdges.of("builds 1").read("tests", "another", len(counts)) is None


@pytest.mark.usefixtures("corpus")
def test_edges_of_inputs_to_execute_again_are_read_on_request_until_they_are_judged() -> None:
    known = KnownEdges.of("builds")
    known.write("tests", "an input", reaching(1), again=True)
    assert known.read("tests", "an input", EDGES) is None
    assert known.read("tests", "an input", EDGES, again=True) is not None
    known.write("tests", "an input", reaching(1, 2))
    assert known.read("tests", "an input", EDGES) is not None
    assert [path.name for path in (known.directory / "tests").iterdir()] == ["an input"]


@pytest.mark.usefixtures("corpus")
def test_known_edges_that_are_lost_or_cannot_be_written_are_no_error() -> None:
    known = KnownEdges.of("builds")
    shutil.rmtree(known.directory)  # by a campaign on other builds
    known.write("tests", "an input", reaching(1))
    assert known.read("tests", "an input", EDGES) is not None
    shutil.rmtree(known.directory)
    known.directory.touch()
    known.write("tests", "an input", reaching(1))
    assert KnownEdges.of("builds").read("tests", "an input", EDGES) is None


@pytest.mark.parametrize(
    ("generators", "flavor", "message"),
    [
        (["typed"], "assert", "typed is a source"),
        (["hash_growth"], "release", "needs flavor guided"),
    ],
)
def test_libfuzzer_refuses_what_it_cannot_steer(generators: list[str], flavor: str, message: str) -> None:
    with pytest.raises(CaseError, match=message):
        new_plan(ArmOptions(flavor=flavor), UserInput(), generators=generators, engine=EngineName.LIBFUZZER)


def test_libfuzzer_selects_its_flavor() -> None:
    plan = new_plan(ArmOptions(), UserInput(), generators=["hash_growth"], engine=EngineName.LIBFUZZER)
    assert plan.arms.flavor == "guided"
    assert " --flavor guided" in plan.replay_options()

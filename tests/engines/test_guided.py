"""Tests of the guided engine without servers: choices from bytes, corpora, and libFuzzer itself."""

import random
import shutil
from pathlib import Path

import pytest

from fuzz.cli.fuzz import new_plan
from fuzz.engines.engine import EngineName
from fuzz.engines.guided.driver import Driver
from fuzz.engines.guided.inputs import (
    LONGEST,
    MAXIMUM,
    SCALE,
    ByteChoices,
    Corpus,
    case_of_input,
    random_input,
    store_input,
    stored_input,
)
from fuzz.engines.libfuzzer.build import CLANG
from fuzz.engines.libfuzzer.run import input_name
from fuzz.errors import CaseError
from fuzz.generators.generator import all_generators
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.edges.counters import Layout, Region
from fuzz.sources.source import UserInput

GENERATORS = sorted(all_generators())


def test_a_choice_takes_the_bytes_that_its_range_needs() -> None:
    choices = ByteChoices(bytes([255, 128, 0, 1, 255, 255]))
    assert choices.randrange(100) == 99
    assert choices.randrange(10, 20) == 15
    assert choices.randrange(1000) == 0  # 1 of 65536 is less than one of 1000
    assert choices.randrange(1) == 0
    assert choices.read == 4
    assert choices.randrange(0, 600, 2) == 598
    assert choices.read == 6


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
    for length in (0, 1, 10, 100, 300, LONGEST, LONGEST):
        data = rng.randbytes(length)
        case = case_of_input(data, generator)
        assert case == case_of_input(data, generator)
        assert case.generator == generator
        assert case.all_steps


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_random_input_has_a_byte_for_each_choice(generator: str) -> None:
    data = random_input(generator, random.Random(7))
    assert data == random_input(generator, random.Random(7))
    assert 20 < len(data) <= LONGEST
    assert case_of_input(data, generator) == case_of_input(data + b"more", generator)
    assert SCALE.queries < 30


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Corpus:
    monkeypatch.setenv("PGDUEL_CAMPAIGNS", str(tmp_path))
    return Corpus.of("tests")


def test_a_corpus_is_bounded_and_keeps_the_smallest_inputs(corpus: Corpus) -> None:
    inputs = [b"x" * size for size in range(1, MAXIMUM + 20)]
    assert len(corpus.begin(inputs)) == len(inputs)
    begun = corpus.begin([b"new"])
    assert len(begun) == MAXIMUM + 1
    assert begun >= {input_name(b"x"), input_name(b"new")}
    assert input_name(inputs[-1]) not in begun
    assert corpus.read(input_name(b"new")) == b"new"
    corpus.delete(input_name(b"new"))
    corpus.delete(input_name(b"new"))
    assert corpus.read(input_name(b"new")) is None


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

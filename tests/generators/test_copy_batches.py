"""Tests of the generator `copy_batches` without servers: its data, and its scale."""

import csv
import io
import random
from collections import Counter

import pytest
from pglast import parse_sql

from fuzz.generators.copy_batches.batch import BUFFERED_BYTES, LARGEST, MISTAKES, make_size, pad_to_bytes
from fuzz.generators.copy_batches.copy import Requirements, make_copy
from fuzz.generators.copy_batches.formats import Absent, Batch, Format, Options, records, stream
from fuzz.generators.copy_batches.generator import CopyBatches
from fuzz.generators.copy_batches.table import CopyColumn, CopyState, CopyTable, Role
from fuzz.generators.copy_batches.values import INT4, STRINGS, TEXT, int4, int4range, noise, numeric, text
from fuzz.generators.generator import Scale
from oracles.model.case import Case, Kind

COLUMNS = (
    CopyColumn("id", INT4, Role.ID, nullable=False),
    CopyColumn("k", INT4, Role.KEY),
    CopyColumn("pad", TEXT, Role.PAD),
)
TABLE = CopyTable("t", COLUMNS)
STATE = CopyState(Scale(), (TABLE,))


def case_of(seed: int, scale: Scale | None = None) -> Case:
    return CopyBatches().generate(random.Random(seed), scale or Scale())


def batch_of(*strings: str) -> Batch:
    numbers = tuple(int4(number) for number in range(len(strings)))
    return Batch(COLUMNS, (numbers, (Absent.NULL,) * len(strings), tuple(map(text, strings))))


@pytest.mark.parametrize("seed", range(25))
def test_all_sql_parses(seed: int) -> None:
    for step in case_of(seed).all_steps:
        parse_sql(step.sql)


@pytest.mark.parametrize("seed", range(25))
def test_only_copies_have_data(seed: int) -> None:
    for step in case_of(seed).all_steps:
        assert (step.copy_data is not None) == (step.kind is Kind.COPY_IN)
        assert step.kind is Kind.QUERY or not step.params


def test_a_smaller_scale_makes_smaller_cases() -> None:
    small = Scale(rows=10, relations=2, partitions=2, queries=5)
    for seed in range(40):
        case = case_of(seed, small)
        assert len(case.steps) < 60
        data = [step.copy_data for step in case.steps if step.copy_data and "copy.text" in step.tags]
        assert all(lines.count(b"\n") <= LARGEST * 10 + 2 for lines in data)
        assert not any("copy.partition_spill" in step.tags for step in case.steps)


def test_sizes_are_around_every_limit() -> None:
    rng = random.Random(1)
    drawn = Counter(make_size(rng, STATE, TABLE) for _ in range(6000))
    for limit in (1, 32, 33, 64, 65, 96, 97, 192, 384, 768, 999, 1000, 1001, 2000):
        assert drawn[limit], limit
    assert sorted(drawn.elements())[3000] <= 100


@pytest.mark.parametrize("total", [BUFFERED_BYTES - 1, BUFFERED_BYTES, BUFFERED_BYTES + 1])
@pytest.mark.parametrize("options", [Options(), Options(Format.CSV, delimiter="|"), Options(newline="\r\n")])
def test_the_size_of_lines_is_exact_to_the_byte(total: int, options: Options) -> None:
    padded = pad_to_bytes(batch_of(*["x"] * 40), options, 33, total)
    assert padded is not None
    assert sum(map(len, records(padded, options)[:33])) == total


def test_padding_needs_a_column_and_room() -> None:
    assert pad_to_bytes(batch_of("x", "y"), Options(), 2, 5) is None
    assert pad_to_bytes(batch_of("x"), Options(), 2, 100) is None


def test_csv_is_read_by_pythons_reader() -> None:
    batch = batch_of(*STRINGS, "")
    data = stream(records(batch, Options(Format.CSV)), batch, Options(Format.CSV)).decode()
    rows = list(csv.reader(io.StringIO(data, newline="")))
    assert [row[2] for row in rows] == [*STRINGS, ""]


def test_text_stays_on_its_line() -> None:
    batch = batch_of(*STRINGS)
    lines = stream(records(batch, Options()), batch, Options()).split(b"\n")
    assert len(lines) == len(STRINGS) + 1
    assert all(line.count(b"\t") == 2 for line in lines[:-1])


def test_binary_forms_are_those_of_the_server() -> None:
    assert numeric("0.50").binary.hex() == "0001ffff000000021388"
    assert numeric("-12345.6").binary.hex() == "0003000140000001000109291770"
    assert int4range(1, 5).binary.hex() == "0200000004000000010000000400000005"
    assert len(noise(3, 9).text) == 9


def test_each_mistake_occurs_in_each_place() -> None:
    made: Counter[str] = Counter()
    table = CopyTable(
        "t",
        (*COLUMNS, CopyColumn("r", INT4, Role.REFERENCE), CopyColumn("span", INT4, Role.SPAN)),
        keys=(0, 1),
        checked=frozenset({"check", "unique", "reference", "exclusion", "raise"}),
    )
    for homes in (True, False):
        state = CopyState(
            Scale(), (CopyTable("t", table.columns, checked=table.checked, takes_any_key=homes, keys=(0, 1)),)
        )
        for seed in range(1500):
            step, _ = make_copy(random.Random(seed), state, state.tables[0], Requirements(rows=5, mistaken=True))
            assert step.may_fail
            made.update(step.tags)
    assert {tag.removeprefix("copy.mistake.") for tag in made if "mistake" in tag} == {m.name for _, m in MISTAKES}
    assert all(made[f"copy.error.{place}"] > 100 for place in ("first", "middle", "last"))


def test_row_numbers_are_never_used_twice() -> None:
    rng, state = random.Random(4), STATE
    seen: set[bytes] = set()
    for _ in range(60):
        step, state = make_copy(rng, state, TABLE)
        if step.sql == "COPY t FROM STDIN" and step.copy_data:
            numbers = {line.split(b"\t")[0] for line in step.copy_data.splitlines()} - {b"\\."}
            assert not numbers & seen
            seen |= numbers
    assert seen

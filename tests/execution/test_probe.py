"""Tests of the probe's counters of COPY and resource owners, in sessions that request them."""

import pytest

from oracles.model.case import Kind, Step
from tests.execution.conftest import Observe, query

pytestmark = pytest.mark.servers


def rows(count: int, *, width: int = 1, keys: int = 1) -> bytes:
    return b"".join(b"%d\t%s\n" % (number % keys, b"x" * width) for number in range(count))


def partitioned(keys: int) -> tuple[Step, ...]:
    partitions = (Step(f"CREATE TABLE p{key} PARTITION OF p FOR VALUES IN ({key})") for key in range(keys))
    return (Step("CREATE TABLE p (k int, v text) PARTITION BY LIST (k)"), *partitions)


@pytest.mark.parametrize(
    ("data", "keys", "expected"),
    [
        (rows(1), 1, {"flush_1": 1, "round_last": 1, "round_1_relation": 1}),
        (rows(99), 1, {"flush_2_99": 1, "round_last": 1}),
        (rows(1000), 1, {"flush_1000": 1, "round_full": 1, "round_last": 0}),
        (rows(1500), 1, {"flush_1000": 1, "flush_100_999": 1, "round_full": 1, "round_last": 1}),
        (rows(400, width=500), 1, {"round_bytes": 3, "round_last": 1}),
        (rows(1000, keys=32), 32, {"flush_2_99": 32, "round_2_32_relations": 1, "round_33_relations": 0}),
        (rows(1000, keys=33), 33, {"flush_2_99": 33, "round_2_32_relations": 0, "round_33_relations": 1}),
    ],
)
def test_flushes_are_counted_by_size_and_reason(
    observe: Observe, data: bytes, keys: int, expected: dict[str, int]
) -> None:
    observed = observe(Step("COPY p FROM STDIN", Kind.COPY_IN, data), scene=partitioned(keys), explain=True)
    counted = {name: observed.reach.get(f"copy.{name}", 0) for name in expected}
    assert counted == expected
    assert observed.reach["copy.statements"] == 1


def test_growth_of_resource_owners_is_counted(observe: Observe) -> None:
    observed = observe(Step("COPY p FROM STDIN", Kind.COPY_IN, rows(1000)), scene=partitioned(1), explain=True)
    assert observed.reach["owner.1000_items"] == 1  # a slot, so a reference to the descriptor, for each row
    assert observed.reach["owner.growths"] == 6
    assert observed.reach["owner.hash_1024_4096"] == 1


def test_owners_released_below_a_copy_are_counted(observe: Observe) -> None:
    function = """
        CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            BEGIN
                PERFORM 1 / new.k;
            EXCEPTION WHEN division_by_zero THEN
            END;
            RETURN new;
        END $$
    """
    scene = (
        Step("CREATE TABLE p (k int, v text)"),
        Step(function),
        Step("CREATE TRIGGER t BEFORE INSERT ON p FOR EACH ROW EXECUTE FUNCTION f()"),
    )
    data = b"".join(b"%d\tx\n" % key for key in (0, 1, 2, 0, 3))
    observed = observe(Step("COPY p FROM STDIN", Kind.COPY_IN, data), scene=scene, explain=True)
    assert observed.reach["owner.released_in_copy"] == 3
    assert observed.reach["owner.aborted_in_copy"] == 2


def test_copy_without_batches_has_its_own_counter(observe: Observe) -> None:
    volatile = "CREATE TABLE p (k int, v text, w int GENERATED ALWAYS AS IDENTITY)"
    trigger = (
        Step("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'"),
        Step("CREATE TRIGGER t BEFORE INSERT ON p FOR EACH ROW EXECUTE FUNCTION f()"),
    )
    copy = Step("COPY p (k, v) FROM STDIN", Kind.COPY_IN, rows(10))
    observed = observe(copy, scene=(Step(volatile), *trigger), explain=True)
    assert observed.reach["copy.without_batch"] == 1


def test_nothing_is_counted_without_a_request(observe: Observe) -> None:
    assert observe(query("SELECT 1")).reach == {}

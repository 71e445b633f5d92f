"""Parts of about equal time of the tests marked `long`. No part exceeds the budget.

`times.json` has the seconds of tests on servers, as `./pgduel test --rest` runs them on two processors. Long tests that
share builds form a group, and a group is in one part: `pytest.mark.long(group="sanitized")`.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

BUDGET: Final = 35 * 60.0  # seconds for `./pgduel test --rest`, with any part of the long tests
FILE: Final = Path(__file__).with_name("times.json")
LEAST: Final = 1  # seconds; shorter tests are not recorded


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds by test: of the long tests by group, and of the others."""

    long: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    others: Mapping[str, float] = field(default_factory=dict)

    def of(self, test: str) -> float | None:
        """Return the seconds of a test."""
        return next((tests[test] for tests in self.long.values() if test in tests), self.others.get(test))

    def with_long(self, groups: Mapping[str, str]) -> "Times":
        """Return these times with the missing long tests, each with the median time."""
        known = [seconds for tests in self.long.values() for seconds in tests.values()]
        usual = median(known) if known else 1.0
        added = {group: dict(tests) for group, tests in self.long.items()}
        for test, group in groups.items():
            if self.of(test) is None:
                added.setdefault(group, {})[test] = usual
        return Times(added, self.others)


def noted_times() -> Times:
    """Return the recorded times."""
    return Times(**json.loads(FILE.read_text()))


def note_times(seconds: Mapping[str, float], groups: Mapping[str, str]) -> None:
    """Record the times of tests; `groups` has the groups of the long ones."""
    known = noted_times()
    long = {group: dict(tests) for group, tests in known.long.items()}
    for test, group in groups.items():
        long.setdefault(group, {})[test] = round(seconds[test])
    others = {test: round(taken) for test, taken in seconds.items() if test not in groups and taken >= LEAST}
    noted = {"long": long, "others": {**known.others, **others}}
    FILE.write_text(json.dumps(noted, indent=1, sort_keys=True) + "\n")


def parts_of(times: Times, number: int) -> tuple[frozenset[str], ...]:
    """Return the long tests of each part. From the longest group to the shortest, each goes to the shortest part."""
    parts: list[set[str]] = [set() for _ in range(number)]
    taken = [0.0] * number
    for tests in sorted(times.long.values(), key=lambda tests: (-seconds_of(tests), min(tests))):
        shortest = taken.index(min(taken))
        parts[shortest].update(tests)
        taken[shortest] += seconds_of(tests)
    return tuple(map(frozenset, parts))


def seconds_of(times: Mapping[str, float]) -> float:
    """Return the total time of tests that run two at once."""
    return sum(times.values()) / 2


def seconds_with(part: Iterable[str], times: Times) -> float:
    """Return the time of `./pgduel test --rest` with a part of the long tests."""
    long = {test: seconds for tests in times.long.values() for test, seconds in tests.items()}
    return seconds_of({test: long[test] for test in part}) + seconds_of(times.others)

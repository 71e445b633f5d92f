"""Known faults: findings that the user expects, read from a TOML file.

[[known]]
fingerprint = "9fd45e560f0b"       # of the finding; or its oracle and origin, which do not depend on names of arms
link = "https://example.org/bug"   # optional: where the fault is discussed
until = "17.12"                    # optional: version or date from which it is no longer expected
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import date
from pathlib import Path
from typing import Any, Final

from fuzz.errors import CaseError
from oracles.model.finding import Finding
from oracles.model.oracle import all_oracles

_VERSION: Final = re.compile(r"\d+(\.\d+)*")
_FORM: Final = 'fingerprint = "...", or oracle = "..." and origin = "..."'


@dataclass(frozen=True, slots=True)
class KnownFault:
    """An expected fault: the fingerprint of its finding, or oracle and origin."""

    fingerprint: str = ""
    oracle: str = ""
    origin: str = ""  # without the plan, as in the first lines of a reproducer
    link: str = ""
    until: str = ""  # version of PostgreSQL, or date (YYYY-MM-DD)

    def __str__(self) -> str:
        what = self.fingerprint or f"{self.oracle}: {self.origin}"
        return f"{what} ({self.link})" if self.link else what

    def matches(self, finding: Finding) -> bool:
        """Return whether a finding is this fault."""
        if self.fingerprint:
            return finding.fingerprint == self.fingerprint
        return (finding.oracle, finding.symptom) == (self.oracle, self.origin)

    def is_expected(self, version: str, today: date) -> bool:
        """Return whether the fault is still expected in this version of PostgreSQL, on this day."""
        if _VERSION.fullmatch(self.until):
            return _numbers(version) < _numbers(self.until)
        return not self.until or today < date.fromisoformat(self.until)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def known_fault(finding: Finding, known: Iterable[KnownFault]) -> KnownFault | None:
    """Return the known fault that a finding is, if any."""
    return next((fault for fault in known if fault.matches(finding)), None)


def read_known(file: Path) -> tuple[KnownFault, ...]:
    """Return the known faults of a file. Raises CaseError that names the file and what to change."""
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CaseError(f"--known {file} cannot be read: {error}") from error
    entries = tables.get("known")
    if set(tables) != {"known"} or not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise CaseError(f"--known {file}: write a table [[known]] for each fault, with {_FORM}, and nothing else")
    return tuple(_fault(f"--known {file}, fault {number}", entry) for number, entry in enumerate(entries, 1))


def _fault(where: str, entry: Mapping[str, Any]) -> KnownFault:
    values = {key: value.isoformat() if isinstance(value, date) else value for key, value in entry.items()}
    if other := sorted(values.keys() - {field.name for field in fields(KnownFault)}):
        raise CaseError(f"{where}: no key is called {other[0]!r}; write {_FORM}, link, until")
    if not all(isinstance(value, str) for value in values.values()):
        raise CaseError(f"{where}: all values are texts, and until may be a date")
    fault = KnownFault(**values)
    if bool(fault.fingerprint) == bool(fault.oracle or fault.origin) or bool(fault.oracle) != bool(fault.origin):
        raise CaseError(f"{where}: write {_FORM}")
    if fault.oracle and fault.oracle not in {oracle.name for oracle in all_oracles()}:
        raise CaseError(f"{where}: no oracle is called {fault.oracle!r}; pgduel list oracles names them")
    if not _is_until(fault.until):
        raise CaseError(f"{where}: until is a version such as 17.12 or a date such as 2027-01-31, not {fault.until!r}")
    return fault


def _is_until(text: str) -> bool:
    if not text or _VERSION.fullmatch(text):
        return True
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True

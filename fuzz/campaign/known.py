"""Known faults: findings that are expected, read from TOML files: the user's, and one in the corpus (SHIPPED).

[[known]]
fingerprint = "9fd45e560f0b"       # of the finding; or its oracle and origin, which do not depend on names of arms; or:
statement = "SELECT 1 FROM t"      # on which all arms have the fault, whatever its literals and the oracle; or:
correction = "0001-fix.patch"      # beside the file: if all arms show a finding, and the base with this patch does not
link = "https://example.org/bug"   # optional: where the fault is discussed
until = "17.12"                    # optional: version or date from which it is no longer expected
reproducer = "9fd45e560f0b"        # optional: its script in corpus/upstream, which all arms must show
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import date
from pathlib import Path
from typing import Any, Final

from fuzz import workdir
from fuzz.errors import CaseError, text_of
from fuzz.servers.series import Patch
from fuzz.triage.findings import StoredFinding
from oracles.model.case import Case
from oracles.model.finding import Finding
from oracles.model.oracle import oracle_named
from oracles.sql.building import fingerprint_of

SHIPPED: Final = workdir.PROJECT / "corpus" / "upstream" / "known.toml"
_VERSION: Final = re.compile(r"\d{1,3}(\.\d+)*")  # a longer number is a date
_FORM: Final = 'fingerprint = "...", or oracle = "..." and origin = "...", or statement = "...", or correction = "..."'


@dataclass(frozen=True, slots=True)
class KnownFault:
    """An expected fault: the fingerprint of its finding, or oracle and origin, or a statement, or a correction."""

    fingerprint: str = ""
    oracle: str = ""
    origin: str = ""  # without the plan, as in the first lines of a reproducer
    link: str = ""
    until: str = ""  # version of PostgreSQL, or date (YYYY-MM-DD)
    statement: str = ""
    reproducer: str = ""  # the name of a script in corpus/upstream
    correction: Patch | None = None

    def __str__(self) -> str:
        name = self.reproducer or self.fingerprint or self.statement or _name_of(self.correction)
        what = name or f"{self.oracle}: {self.origin}"
        return f"{what} ({self.link})" if self.link else what

    @property
    def identities(self) -> int:
        """Return the number of ways in which its findings are identified."""
        return sum(map(bool, (self.fingerprint, self.oracle or self.origin, self.statement, self.correction)))

    def matches(self, finding: Finding) -> bool:
        """Return whether a finding is this fault: `marked` if of a statement, shown by all arms if of the corpus.

        For a fault with a correction, builds decide (`fault_of`).
        """
        if self.correction is not None:
            return False
        if self.reproducer and not finding.shown_by_all:
            return False
        if self.statement:
            return finding.symptom == self._mark
        if self.fingerprint:
            return finding.fingerprint == self.fingerprint
        return (finding.oracle, finding.symptom) == (self.oracle, self.origin)

    def marks(self, finding: Finding, case: Case) -> bool:
        """Return whether all arms have the finding at this fault's statement."""
        if not self.statement or finding.step is None or not finding.shown_by_all:
            return False
        ours = fingerprint_of(self.statement)
        return ours is not None and ours == fingerprint_of(case.all_steps[finding.step].sql)

    def marked(self, finding: Finding) -> Finding:
        """Return the finding with an origin of its own, so that it has the fingerprint of no other finding."""
        return replace(finding, origin=self._mark)

    @property
    def _mark(self) -> str:
        return f"known fault {self}"

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


def fault_of(found: StoredFinding, known: Iterable[KnownFault]) -> KnownFault | None:
    """Return the known fault that a finding of the store is, if any: also one whose correction hides it."""
    return next((fault for fault in known if fault.matches(found.finding) or _is_hidden(found, fault)), None)


def _is_hidden(found: StoredFinding, fault: KnownFault) -> bool:
    return bool(found.correction) and found.correction == _name_of(fault.correction)


def _name_of(correction: Patch | None) -> str:
    return "" if correction is None else correction.name


def marked(finding: Finding, case: Case, known: Iterable[KnownFault]) -> Finding:
    """Return the finding, marked if its statement has a known fault."""
    fault = next((fault for fault in known if fault.marks(finding, case)), None)
    return fault.marked(finding) if fault else finding


def read_known(file: Path) -> tuple[KnownFault, ...]:
    """Return the known faults of a file. Raises CaseError that names the file and what to change."""
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CaseError(f"--known {file} cannot be read: {error}") from error
    entries = tables.get("known")
    if set(tables) != {"known"} or not isinstance(entries, list) or not all(isinstance(each, dict) for each in entries):
        raise CaseError(f"--known {file}: write a table [[known]] for each fault, with {_FORM}, and nothing else")
    directory = file.resolve().parent
    return tuple(_fault(f"--known {file}, fault {number}", entry, directory) for number, entry in enumerate(entries, 1))


def corrections_of(known: Iterable[KnownFault]) -> tuple[Patch, ...]:
    """Return the corrections of known faults, in their order."""
    return tuple(fault.correction for fault in known if fault.correction is not None)


def _fault(where: str, entry: Mapping[str, Any], directory: Path) -> KnownFault:
    values = {key: value.isoformat() if isinstance(value, date) else value for key, value in entry.items()}
    if other := sorted(values.keys() - {field.name for field in fields(KnownFault)}):
        raise CaseError(f"{where}: no key is called {other[0]!r}; write {_FORM}, link, until, reproducer")
    if not all(isinstance(value, str) for value in values.values()):
        raise CaseError(f"{where}: all values are texts, and until may be a date")
    name = values.pop("correction", "")
    fault = KnownFault(**values, correction=_read_correction(directory / name) if name else None)
    if fault.identities != 1 or bool(fault.oracle) != bool(fault.origin):
        raise CaseError(f"{where}: write {_FORM}")
    if fault.statement and fingerprint_of(fault.statement) is None:
        raise CaseError(f"{where}: statement cannot be parsed; write one statement of PostgreSQL")
    if fault.oracle and oracle_named(fault.oracle) is None:
        raise CaseError(f"{where}: no oracle is called {fault.oracle!r}; pgduel list oracles names them")
    if not _is_until(fault.until):
        raise CaseError(f"{where}: until is a version such as 17.12 or a date such as 2027-01-31, not {fault.until!r}")
    return fault


def _read_correction(file: Path) -> Patch:
    """Read a patch. Raises CaseError."""
    return Patch(file.name, text_of(file, CaseError, "name the patch of the correction").encode())


def _is_until(text: str) -> bool:
    if not text or _VERSION.fullmatch(text):
        return True
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True

"""The psql script."""

from collections.abc import Mapping
from typing import ClassVar

from fuzz.report.forms.form import Form, ReportedFinding


class Sql(Form):
    """A script for psql. `pgduel replay` can read it."""

    name: ClassVar[str] = "sql"

    def files(self, reported: ReportedFinding) -> Mapping[str, str]:
        """Return the reproducer unchanged."""
        return {f"{reported.fingerprint}.sql": reported.script}

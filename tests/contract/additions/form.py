"""A form of one line."""

from collections.abc import Mapping
from typing import ClassVar

from fuzz.report.forms.form import Form, ReportedFinding


class AddedForm(Form):
    """A line with the number of statements."""

    name: ClassVar[str] = "added_form"

    def files(self, reported: ReportedFinding) -> Mapping[str, str]:
        """Return the line."""
        return {"line.txt": f"{reported.oracle}: {len(reported.case.all_steps)} statements\n"}

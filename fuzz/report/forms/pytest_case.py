"""A test for pytest that replays the finding's script."""

from collections.abc import Mapping
from typing import ClassVar

from fuzz import workdir
from fuzz.report.forms.form import Form, ReportedFinding

_FILE = '''\
# ruff: noqa: E501
"""Finding {fingerprint}, by the oracle {oracle}: it must no longer show."""

import shlex
import subprocess
{imports}
ARMS = {options!r}  # options of `pgduel replay`; empty: the shipped arms
SCRIPT = """\\
{script}"""


def test_finding_{fingerprint}_does_not_show(tmp_path: Path) -> None:
    reproducer = tmp_path / "{fingerprint}.sql"
    reproducer.write_text(SCRIPT, encoding="utf-8")
    command = [{command}, "replay", str(reproducer), *shlex.split(ARMS)]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
'''


_IN_CHECKOUT = {
    "imports": "import sys\nfrom pathlib import Path\n\nimport pytest\n\npytestmark = pytest.mark.servers\n",
    "command": 'sys.executable, "-m", "fuzz"',
}
_INSTALLED = {"imports": "from pathlib import Path\n", "command": '"pgduel"'}


class PytestCase(Form):
    """A file for pytest. It runs in pgduel's checkout or, if an installed pgduel wrote it, anywhere."""

    name: ClassVar[str] = "pytest"

    def files(self, reported: ReportedFinding) -> Mapping[str, str]:
        """Return the test, which fails as long as the finding shows."""
        text = _FILE.format(
            fingerprint=reported.fingerprint,
            oracle=reported.oracle,
            options=reported.options.strip(),
            script=_escaped(reported.script),
            **(_IN_CHECKOUT if workdir.IS_CHECKOUT else _INSTALLED),
        )
        return {f"test_{reported.fingerprint}.py": text}


def _escaped(script: str) -> str:
    """Return the script as readable text of a triple-quoted Python string, with control characters escaped."""
    plain = script.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if plain.endswith('"'):
        plain = f'{plain[:-1]}\\"'
    return "".join(char if char == "\n" or char.isprintable() else repr(char)[1:-1] for char in plain)

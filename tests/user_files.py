"""The examples of the documents, as files of a user."""

import re
from pathlib import Path
from typing import Final

from fuzz import workdir

_CODE: Final = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def example(document: str) -> str:
    """Return the only example of a document."""
    (code,) = _CODE.findall((workdir.PROJECT / document).read_text())
    return str(code)


def written_examples(directory: Path) -> tuple[Path, Path]:
    """Write the examples of a generator and of an oracle to files, and return these."""
    generator, oracle = directory / "pairs.py", directory / "as_nested_loops.py"
    generator.write_text(example("CONTRIBUTING.md"))
    oracle.write_text(example("docs/oracles.md"))
    return generator, oracle

"""Samples: shares of cases that get expensive runs. A case's content selects it, so another run selects the same."""

import hashlib
from dataclasses import dataclass, replace

from oracles.model.case import Case


@dataclass(frozen=True, slots=True)
class Sample:
    """One case in `share`, and each case that names the sample. An oracle's file declares its samples."""

    name: str
    share: int

    @property
    def alone(self) -> "Sample":
        """Return the sample of all cases, for a single arm: few other oracles judge that."""
        return replace(self, share=1)

    def __contains__(self, case: Case) -> bool:
        """Return whether a case is in the sample: it names the sample, or a hash of its content selects it."""
        if self.name in case.samples or not case.sampled_by_content:
            return self.name in case.samples
        content = repr([self.name, *((step.sql, step.copy_data, step.params) for step in case.all_steps)])
        return int.from_bytes(hashlib.sha256(content.encode()).digest()[:4], "big") % self.share == 0

"""Looking whether a finding still shows, and how often."""

from collections.abc import Sequence

from fuzz.campaign.known import Smallest
from fuzz.execution.stage import Stage
from fuzz.inquiry.asking import Asking, same_arms
from fuzz.reduction.patience import Patience
from fuzz.servers.arm import Arm
from oracles.case import Case
from oracles.finding import Finding


def look(stage: Stage, arms: Sequence[Arm], case: Case, finding: Finding) -> Smallest:
    """Run the case as often as it takes to say how often it shows something of the finding's oracle and arms.

    What it shows is the finding from now on; the one given stands where it shows nothing. Raises ServerError.
    """
    asking = Asking(stage, arms, finding)
    seen: list[Finding] = []

    def shows(tried: Case) -> bool:
        shown = asking.shown(tried, same_arms)
        seen.extend([] if shown is None else [shown])
        return shown is not None

    showing = Patience(shows).look(case)
    return Smallest(case, seen[0] if seen else finding, showing.shown, showing.runs)

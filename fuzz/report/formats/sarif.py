"""SARIF 2.1.0 (OASIS), which code-scanning services read: bugs are results, oracles are rules."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import quote

from fuzz import __version__
from fuzz.campaign.bug_history import BugStatus
from fuzz.output import visible
from fuzz.report.campaign_report import CampaignReport
from fuzz.report.formats.format import Format
from fuzz.report.reported_bug import ReportedBug, Status
from oracles.model.oracle import all_oracles

_BASELINE: Final = {  # status over all runs -> state relative to earlier ones
    BugStatus.NEW: "new",
    BugStatus.BACK_AGAIN: "new",
    BugStatus.STILL_THERE: "unchanged",
    BugStatus.NOT_SEEN: "unchanged",
    BugStatus.FIXED: "absent",
}
SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


class Sarif(Format):
    """A log of one run. A result's location is the patch to blame, if one is known, or else the reproducer."""

    name: ClassVar[str] = "sarif"
    suffix: ClassVar[str] = "sarif"

    def text(self, report: CampaignReport) -> str:
        """Return the log as JSON."""
        oracles = sorted({bug.oracle for bug in report.bugs})
        log = {
            "$schema": SCHEMA,
            "version": "2.1.0",
            "runs": [
                {
                    "tool": {
                        "driver": {
                            "name": "pgduel",
                            "version": __version__,
                            "rules": [_rule(oracle) for oracle in oracles],
                        }
                    },
                    "automationDetails": {"id": f"pgduel/{report.name}"},
                    "invocations": [_invocation(report)],
                    "results": [_result(bug, oracles.index(bug.oracle)) for bug in report.bugs],
                    "columnKind": "unicodeCodePoints",
                    "properties": {
                        "statementsJudged": report.counters.statements_judged,
                        "seed": report.summary.seed,
                        "arms": {name: facts["build"] for name, facts in report.arms.items()},
                    },
                }
            ],
        }
        return json.dumps(log, indent=2).replace("\x7f", "\\u007f") + "\n"


def _rule(oracle: str) -> Mapping[str, Any]:
    described = {each.name: (type(each).__doc__ or "").strip().partition("\n")[0] for each in all_oracles()}
    text = described.get(oracle) or f"The oracle {oracle}."
    return {"id": oracle, "name": oracle, "shortDescription": {"text": text}}


def _invocation(report: CampaignReport) -> Mapping[str, Any]:
    """Return the run. Reasons not to trust it are notifications."""
    notes = [{"level": "warning", "message": {"text": visible(line)}} for line in report.problems]
    run: dict[str, Any] = {"executionSuccessful": not report.problems, "toolExecutionNotifications": notes}
    if report.began and report.until:
        run["startTimeUtc"] = f"{report.began:%Y-%m-%dT%H:%M:%SZ}"
        run["endTimeUtc"] = f"{report.until:%Y-%m-%dT%H:%M:%SZ}"
    return run


def _result(bug: ReportedBug, rule: int) -> Mapping[str, Any]:
    places = [_place(quote(patch)) for patch in bug.patches]
    if bug.file is not None:
        places.append(_place(_uri(bug.file)))
    result = {
        "ruleId": bug.oracle,
        "ruleIndex": rule,
        "level": "note" if bug.status is Status.KNOWN else "error",
        "kind": "fail",
        "message": {"text": visible(_message(bug))},
        "locations": places[:1],
        "relatedLocations": places[1:],
        "partialFingerprints": {"pgduelBug/v1": bug.key},
        "occurrenceCount": bug.cases,
        "properties": {"status": bug.state, "arms": list(bug.arms), "replay": visible(bug.replay)},
    }
    if bug.over_runs is not None:
        result["baselineState"] = _BASELINE[bug.over_runs.status]
    if bug.status is Status.KNOWN:
        result["suppressions"] = [{"kind": "external", "justification": visible(f"known fault {bug.known}")}]
    return result


def _message(bug: ReportedBug) -> str:
    blame = f" To blame: {bug.blame}." if bug.blame else ""
    return f"{bug.title} ({' and '.join(dict.fromkeys(bug.arms))}).{blame}"


def _place(uri: str) -> Mapping[str, Any]:
    return {"physicalLocation": {"artifactLocation": {"uri": uri}}}


def _uri(file: Path) -> str:
    return file.as_uri() if file.is_absolute() else quote(str(file))

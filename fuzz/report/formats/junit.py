"""JUnit XML, which servers of continuous integration read: bugs are failed tests."""

import re
from collections.abc import Iterator
from typing import ClassVar
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from fuzz.output import visible
from fuzz.report.campaign_report import CampaignReport
from fuzz.report.formats.format import Format
from fuzz.report.reported_bug import ReportedBug, Status

_NOT_IN_XML = re.compile("[\ufffe\uffff]")


class JUnit(Format):
    """A test suite: one test for each bug, for each oracle without a bug, and for the trust in the result."""

    name: ClassVar[str] = "junit"
    suffix: ClassVar[str] = "xml"

    def text(self, report: CampaignReport) -> str:
        """Return the XML document."""
        cases = [_trust(report), *_oracles(report), *map(_bug, report.bugs)]
        counts = {
            "tests": str(len(cases)),
            "failures": str(sum(case.find("failure") is not None for case in cases)),
            "errors": str(sum(case.find("error") is not None for case in cases)),
            "skipped": str(sum(case.find("skipped") is not None for case in cases)),
            "time": f"{report.counters.seconds:.3f}",
        }
        top = Element("testsuites", {"name": "pgduel"} | counts)
        suite = SubElement(top, "testsuite", {"name": f"pgduel campaign {report.name}"} | counts)
        if report.began:
            suite.set("timestamp", f"{report.began:%Y-%m-%dT%H:%M:%S}")
        properties = SubElement(suite, "properties")
        for name, value in _properties(report):
            SubElement(properties, "property", name=_valid(name), value=_valid(value))
        suite.extend(cases)
        indent(top)
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(top, encoding="unicode")}\n'


def _properties(report: CampaignReport) -> Iterator[tuple[str, str]]:
    yield "seed", str(report.summary.seed)
    yield "statements judged", str(report.counters.statements_judged)
    for name, facts in report.arms.items():
        yield f"arm {name}", f"{facts['base']['version']} {facts['build']}"


def _case(group: str, name: str) -> Element:
    return Element("testcase", classname=f"pgduel.{_valid(group)}", name=_valid(name), time="0")


def _trust(report: CampaignReport) -> Element:
    case = _case("campaign", "the result can be trusted")
    if report.problems:
        SubElement(case, "error", message=_valid(report.problems[0]), type="trust").text = _valid(
            "\n".join(report.problems)
        )
    return case


def _oracles(report: CampaignReport) -> Iterator[Element]:
    """Yield a passed test for each oracle that judged statements and reports no bug."""
    with_bug = {bug.oracle for bug in report.bugs}
    for each in report.oracles:
        if each.statements and each.oracle not in with_bug:
            yield _case(each.oracle, "no bug")


def _bug(bug: ReportedBug) -> Element:
    case = _case(bug.oracle, f"bug {bug.key}: {bug.title}")
    if bug.status is Status.KNOWN:
        SubElement(case, "skipped", message=_valid(f"known fault {bug.known}"))
        return case
    if bug.is_fixed:
        SubElement(case, "system-out").text = _valid(f"fixed; replay: {bug.replay}")
        return case
    failure = SubElement(case, "failure", message=_valid(bug.title), type=_valid(bug.oracle))
    lines = [f"status: {bug.state}", f"cases: {bug.cases}"]
    lines += [f"to blame: {bug.blame}"] if bug.blame else []
    lines += [f"replay: {bug.replay}"]
    lines += [line for side in bug.sides for line in ("", f"{side.title}:", side.text)]
    failure.text = _valid("\n".join(lines))
    SubElement(case, "system-out").text = _valid(bug.script)
    return case


def _valid(text: str) -> str:
    """Return text with characters that XML forbids, or that a terminal hides, as escapes."""
    return _NOT_IN_XML.sub(lambda match: f"\\u{ord(match[0]):04x}", visible(text))

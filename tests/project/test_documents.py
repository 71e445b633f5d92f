"""Tests of documents: each generator, source, oracle, mode, bench, form and format has its entry; links exist."""

import random
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pglast
import pytest
import typer

from fuzz import __version__, workdir
from fuzz.bench.bench import all_benches
from fuzz.cli import COMMANDS
from fuzz.cli.bench import benches
from fuzz.engines.libfuzzer.build import all_harnesses
from fuzz.execution.modes import MODES
from fuzz.generators.generator import Generator, Scale, all_generators
from fuzz.report.formats.format import all_formats
from fuzz.report.forms.form import all_forms
from fuzz.sources.source import all_sources
from oracles.dqp import FURTHER_PLANS
from oracles.framework.shared_runs import OTHER_PLANS
from oracles.model.mode import Mode
from oracles.model.oracle import all_oracles

TOP = workdir.PROJECT
DOCUMENTS = sorted(path for path in TOP.rglob("*.md") if not any(part.startswith(".") for part in path.parts))
_CODE = re.compile(r"^ {4}.*$|^```\w*\n(?P<code>(?:.*\n)*?)```$", re.MULTILINE)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_ENTRY = re.compile(r"^#{2,} `([\w-]+)`$", re.MULTILINE)
_ROW = re.compile(r"^\| `([\w-]+)` \|(.*)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_COMMAND = re.compile(r"\./pgduel ([a-z]+)")
_PATH = re.compile(r"`((?:corpus|docs|fuzz|oracles|patches|tests)/[\w./-]+)`")


@pytest.mark.parametrize(
    ("page", "names"),
    [
        pytest.param("generators", all_generators().keys(), id="generators"),
        pytest.param("sources", all_sources().keys(), id="sources"),
        pytest.param("oracles", {oracle.name for oracle in all_oracles()}, id="oracles"),
        pytest.param("benchmarks", all_benches().keys(), id="benches"),
    ],
)
def test_each_has_a_section(page: str, names: set[str]) -> None:
    assert sorted(_ENTRY.findall(_page(page))) == sorted(names)


@pytest.mark.parametrize(
    ("page", "names"),
    [
        pytest.param("modes", MODES.keys(), id="modes"),
        pytest.param("modes", {mode.name for mode in (*OTHER_PLANS, *FURTHER_PLANS)}, id="plan types"),
        pytest.param("modes", {each.name for oracle in all_oracles() for each in oracle.samples}, id="samples"),
        pytest.param("findings", all_forms().keys(), id="forms"),
        pytest.param("report", all_formats().keys(), id="formats"),
        pytest.param("engines", all_harnesses().keys(), id="harnesses"),
    ],
)
def test_each_has_a_line(page: str, names: set[str]) -> None:
    assert names <= _rows(page).keys()


@pytest.mark.parametrize("mode", [*MODES.values(), *OTHER_PLANS, *FURTHER_PLANS], ids=lambda mode: mode.name)
def test_a_mode_has_the_settings_that_its_line_lists(mode: Mode) -> None:
    listed = re.findall(r"`(\w+)=(\S+)`", _rows("modes")[mode.name])
    assert tuple(listed) == mode.settings


def test_a_sample_has_the_oracles_and_the_share_that_its_line_lists() -> None:
    users: dict[str, set[str]] = {}
    shares: dict[str, int] = {}
    for oracle in all_oracles():
        for sample in oracle.samples:
            users.setdefault(sample.name, set()).add(oracle.name)
            shares[sample.name] = sample.share
    for name, line in _rows("modes").items():
        if name in users:
            share = "all" if shares[name] == 1 else f"1/{shares[name]}"
            assert line.split("|")[0].strip() == share
            assert set(re.findall(r"`(\w+)`", line)) == users[name]


def test_each_command_of_bench_is_listed() -> None:
    commands = typer.main.get_group(benches).commands
    assert {name for name in commands if f"`bench {name}`" not in _page("benchmarks")} == set()


def test_readme_has_the_two_commands_and_each_other_one() -> None:
    readme = (TOP / "README.md").read_text()
    assert {"./pgduel fuzz", "./pgduel test"} <= set(re.findall(r"\./pgduel \w+", readme))
    listed = " ".join(line for line in readme.splitlines() if line.startswith("| `"))
    assert {name for name in COMMANDS if f"`{name}" not in listed} == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(TOP)))
def test_links_lead_to_files_and_headings(document: Path) -> None:
    for link in _LINK.findall(_CODE.sub("", document.read_text())):
        if not link.startswith(("http://", "https://")):
            file, _, heading = link.partition("#")
            target = (document.parent / file).resolve() if file else document
            assert target.exists(), link
            assert not heading or heading in set(_anchors(target)), link


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(TOP)))
def test_paths_exist(document: Path) -> None:
    paths = {path for path in _PATH.findall(document.read_text()) if "NAME" not in path}
    assert {path for path in paths if not (TOP / path).exists()} == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(TOP)))
def test_commands_exist(document: Path) -> None:
    assert set(_COMMAND.findall(document.read_text())) <= COMMANDS.keys()


def test_the_example_of_a_generator_works() -> None:
    (code,) = filter(None, (found["code"] for found in _CODE.finditer((TOP / "CONTRIBUTING.md").read_text())))
    made: dict[str, type[Generator]] = {"__name__": "example"}  # type: ignore[dict-item]  # no package, so not found
    exec(code, made)
    generator = made["Pairs"]()
    case, again = (generator.generate(random.Random(7), Scale()) for _ in range(2))
    assert case == again
    assert len([pglast.parse_sql(step.sql) for step in case.all_steps]) == 2 + Scale().queries
    assert set(generator.modes) <= MODES.keys()


def test_the_latest_release_of_the_changelog_is_the_version() -> None:
    releases = re.findall(r"^## \[(\d[^]]*)\] - \d{4}-\d\d-\d\d$", (TOP / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert releases[0] == __version__


def test_new_entries_of_the_changelog_are_unreleased() -> None:
    """The number of a release's entries is fixed. A merge that adds entries there is wrong."""
    _, _, released = (TOP / "CHANGELOG.md").read_text().partition("## [0.1.0]")
    assert len(re.findall(r"^- ", released, re.MULTILINE)) == 89


def _page(name: str) -> str:
    return (TOP / "docs" / f"{name}.md").read_text()


def _rows(page: str) -> Mapping[str, str]:
    """Return the lines of the page's tables that begin with a name: name → rest of the line."""
    return dict(_ROW.findall(_page(page)))


def _anchors(document: Path) -> Iterator[str]:
    """Yield the anchors of a document's headings."""
    for heading in _HEADING.findall(_CODE.sub("", document.read_text())):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")

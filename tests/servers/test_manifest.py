"""Tests of manifests: their syntax, errors, and effects."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from fuzz import workdir
from fuzz.campaign.reach import reach
from fuzz.documents import from_data, to_data
from fuzz.errors import SourceError
from fuzz.execution.modes import composed
from fuzz.servers.arm import parse_series
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.base import Base
from fuzz.servers.manifest import Manifest, read_manifest
from fuzz.servers.series import series_from_directory, series_from_files
from oracles.counters import Counters
from oracles.explain.figures import figures
from oracles.model.feature import Formula
from tests.features import SHIPPED
from tests.oracles.explained import hash_join, node

SORT = """\
[[features]]
name = "runs"
nodes = ["Sort"]
force = { work_mem = "64kB" }
counters = ["hash_join.grown_batches"]

[[features.branches]]
name = "merged"
when = ["Runs > 1", "Sort Method = 'external merge'"]

[[features.branches]]
name = "given_up"
when = "Given Up = 1"
expected = false

[[features.invariants]]
name = "runs have rows"
holds = "Runs <= returned rows"
"""


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return tmp_path / "manifest.toml"


def read(file: Path, text: str) -> Manifest:
    file.write_text(text)
    return read_manifest(file)


def test_the_example_of_the_page_is_a_manifest(written: Path) -> None:
    page = (workdir.PROJECT / "docs" / "manifest.md").read_text()
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    manifest = read(written, example)
    assert manifest.features
    assert manifest.plan_neutral


def test_branches_are_counted_where_explain_reports_them(written: Path) -> None:
    (feature,) = read(written, SORT).features
    assert feature.expected == ("runs.merged", "hash_join.grown_batches")

    def counters(**fields: Any) -> set[str]:
        plan = node("Sort", 9, **fields) | {"Plans": [node("Seq Scan", 9, Runs=7)]}
        return {name for name in reach(plan, [feature]) if name.startswith("runs")}

    assert counters(Runs=3, Sort_Method="external merge") == {"runs", "runs.merged"}
    assert counters(Runs=3, Sort_Method="quicksort") == {"runs"}
    assert counters(Runs=1, Given_Up=True) == {"runs", "runs.given_up"}
    assert counters() == set()


def test_a_violated_invariant_is_an_inconsistency(written: Path) -> None:
    oracle = Counters().of(read(written, SORT).features)
    assert not list(oracle.inconsistencies({"Plan": node("Sort", 3, Runs=3)}))
    (found,) = oracle.inconsistencies({"Plan": node("Sort", 3, Runs=4)})
    assert (found.name, found.of) == ("runs have rows", "Sort")
    assert "Runs: 4" in found.figures


@pytest.mark.parametrize(
    ("formula", "holds"),
    [
        ("Probes = Rows Discarded + 60", True),
        ("Probes = Rows Discarded", False),
        ("Probes < 100", False),
        ("Probes >= 100", True),
        ("Shared = 1", True),
        ("Never Printed = 0", True),
        ("Rate <= 0.5", True),
        ("Probes <= outer rows", True),
        ("Probes > inner rows + returned rows", True),
        ("Bits is a power of two", True),
        ("Probes is a power of two", False),
    ],
)
def test_formulas(formula: str, holds: bool) -> None:  # noqa: FBT001
    fields = {"Probes": 100, "Rows Discarded": 40, "Shared": True, "Rate": 0.5, "Bits": 8192}
    found = figures(SHIPPED[0], hash_join("Inner", 9, 100, 50, Bloom_Filter=fields))
    assert found is not None
    assert found.holds(Formula.parse(formula)) is holds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("features = [", "is no TOML: "),
        ("feature = []", "feature: is no key here; give one of plan_neutral, features"),
        ("plan_neutral = 'yes'", "plan_neutral: is 'yes'; write true, false, or a list"),
        ("[features]\nname = 'a'", "features: is {'name': 'a'}; write [[features]] above each"),
        ("[[features]]", "features[1].name: is missing; write a name"),
        ("[[features]]\nname = 'Big'", "features[1].name: is 'Big'; write a name in lower case"),
        ("[[features]]\nname = 'a'\nforced = {}", "features[1].forced: is no key here; give one of name, "),
        ("[[features]]\nname = 'a'\nforce = { b = true }", "features[1].force: is {'b': True}; write { setting ="),
        ("[[features]]\nname = 'a'\njoins = ['inner']", "features[1].joins: is ['inner']; write a list of: Inner, "),
        ("[[features]]\nname = 'a'\n[[features]]\nname = 'a'", "features: two have the name 'a'; give each"),
        (
            "[[features]]\nname = 'a'\n[[features.branches]]\nname = 'b'\nwhen = 'rows > 0'",
            "features[1].branches[1].when: 'rows > 0' is no formula: 'rows' is none of: a number, a field of EXPLAIN",
        ),
        (
            "[[features]]\nname = 'a'\n[[features.branches]]\nname = 'b'\nwhen = 'Rows'",
            "features[1].branches[1].when: 'Rows' is no formula: write FIGURES = FIGURES",
        ),
        (
            "[[features]]\nname = 'a'\n[[features.invariants]]\nname = 'b'",
            "features[1].invariants[1].holds: is missing; write a formula",
        ),
    ],
)
def test_errors_have_file_key_and_remedy(written: Path, text: str, message: str) -> None:
    with pytest.raises(SourceError) as raised:
        read(written, text)
    assert str(raised.value).startswith(f"{written}: {message}")
    assert "\n" not in str(raised.value)


def plant(directory: Path, *names: str, manifest: str = "") -> Path:
    directory.mkdir(exist_ok=True)
    for name in names:
        (directory / name).write_bytes(name.encode())
    (directory / "series").write_text("\n".join(names))
    (directory / "manifest.toml").write_text(manifest)
    return directory


def test_a_manifest_applies_to_the_patches_of_its_directory_in_each_series(tmp_path: Path) -> None:
    own = plant(tmp_path / "own", "0001-a.patch", "0002-b.patch", manifest=f'plan_neutral = ["-b"]\n{SORT}')
    other = tmp_path / "other.patch"
    other.write_bytes(b"other")
    whole = series_from_directory(own)
    assert [patch.plan_neutral for patch in whole.patches] == [False, True]
    assert [feature.name for feature in whole.features] == ["runs"]
    mixed = series_from_files([own / "0002-b.patch", other])
    assert ([patch.plan_neutral for patch in mixed.patches], mixed.features) == ([True, False], whole.features)
    assert series_from_files([other]).features == ()


def test_a_manifest_is_read_once_for_all_patches_of_its_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = plant(tmp_path / "own", "0001-a.patch", "0002-b.patch", manifest=f'plan_neutral = ["-b"]\n{SORT}')
    paths: list[Path] = []

    def counted(path: Path) -> Manifest:
        paths.append(path)
        return read_manifest(path)

    monkeypatch.setattr("fuzz.servers.series.read_manifest", counted)
    base = Base("pg17", "17.11", "", "0" * 40)
    parsed = parse_series(f"master,{own}/0001-a.patch,{own}/0002-b.patch", base)
    assert [patch.plan_neutral for patch in parsed.patches[-2:]] == [False, True]
    assert [feature.name for feature in parsed.features] == ["runs"]
    assert paths == [own / "manifest.toml"]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (["0003"], "'0003' fits no patch"),
        (["000"], "'000' fits 2 patches, 0001-a.patch, 0002-b.patch; write a longer part"),
    ],
)
def test_a_plan_neutral_patch_must_be_one(tmp_path: Path, parts: Sequence[str], message: str) -> None:
    plant(tmp_path / "own", "0001-a.patch", "0002-b.patch", manifest=f"plan_neutral = {list(parts)}")
    with pytest.raises(SourceError, match=f"plan_neutral: {re.escape(message)}"):
        series_from_directory(tmp_path / "own")


def test_settings_of_all_features_are_forced(written: Path) -> None:
    features = (*SHIPPED, *read(written, SORT).features)
    _, forced = composed("hash_only+features_forced", features)
    assert dict(forced.settings) == {"debug_force_hashjoin_bloom": "on", "work_mem": "64kB"}
    assert composed("features_forced")[0].settings == ()


def options(manifest: Path, arms: Sequence[str]) -> ArmOptions:
    return ArmOptions.given(None, None, None, None, arms, "assert", manifest)


def test_the_option_manifest_is_stored(written: Path) -> None:
    given = options(written, ["a=x.patch"])
    assert given.command_line() == f" --arm a=x.patch --manifest {written}"
    stored = to_data(given)
    assert from_data(stored, ArmOptions) == given
    del stored["manifest"]
    assert from_data(stored, ArmOptions).manifest is None  # a campaign of an older version
    with pytest.raises(SourceError, match="--manifest needs patches"):
        options(written, [])

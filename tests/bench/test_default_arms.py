"""Tests of the default arms of benches: they differ by the patches for the bench's mail."""

import pytest

from fuzz.bench.bench import Bench, all_benches
from fuzz.bench.default_arms import default_arms
from fuzz.errors import SourceError
from fuzz.servers.arm import ArmSpec, parse_arm, parse_series, shipped_series
from fuzz.servers.base import Base
from fuzz.servers.flavor import FLAVORS

pytestmark = pytest.mark.servers

MAILS = [each for each in all_benches().values() if each.mail.message_id]


def specs_of(bench: Bench, base: Base) -> dict[str, ArmSpec]:
    specs = [parse_arm(text, base, FLAVORS["release"], print) for text in default_arms(bench, base, bench.beside)]
    return {spec.name: spec for spec in specs}


@pytest.mark.parametrize("bench", MAILS, ids=lambda bench: bench.name)
def test_the_first_arms_differ_by_the_patches_for_the_mail(bench: Bench, base: Base) -> None:
    specs = specs_of(bench, base)
    without, again, own, *others = (spec.series.patches for spec in specs.values())
    assert list(specs)[:3] == ["without", "again", "with"]
    assert without == again == own[: len(without)]
    links = [b"Discussion: https://postgr.es/m/" in patch.content for patch in own[len(without) :]]
    assert links
    assert all(links)
    whole = shipped_series("patched", base).patches
    assert own == whole or others[0] == whole


def test_bloom_filters_are_measured_over_fixed_buckets(base: Base) -> None:
    own = specs_of(all_benches()["bloom"], base)["with"].series.patches
    assert [patch.name[:4] for patch in own[2:]] == [f"{number:04}" for number in range(11)]


def test_the_whole_is_no_further_arm_if_it_ends_with_the_patch(base: Base, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = all_benches()["fdw_analyze"]
    assert list(specs_of(bench, base)) == ["without", "again", "with", "patched", "upstream"]
    monkeypatch.setattr(
        "fuzz.bench.default_arms.shipped_series",
        lambda name, base: parse_series("patched:0016" if name == "patched" else name, base),
    )
    assert list(specs_of(bench, base)) == ["without", "again", "with", "upstream"]


def test_a_bench_without_a_mail_has_no_arms_of_its_own(base: Base) -> None:
    assert default_arms(all_benches()["sql"], base) == ()


def test_a_shipped_arm_may_end_with_any_of_its_patches(base: Base) -> None:
    assert parse_series("patched:0002", base).patches == shipped_series("patched", base).patches[:5]
    with pytest.raises(SourceError, match="patched has no patch '0099'; give 0001, 0002, "):
        parse_series("patched:0099", base)

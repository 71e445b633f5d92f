"""Findings as JSON, for the store: what dataclasses.asdict makes of one, and back."""

from collections.abc import Mapping, Sequence
from typing import Any

from oracles.model.finding import Evidence, Finding, Vote


def finding_of(told: Mapping[str, Any]) -> Finding:
    """Return the finding that asdict wrote."""
    vote = told.get("vote")
    return Finding(
        **{
            **told,
            "arms": tuple(told["arms"]),
            "beside": beside_of(told["beside"]),
            "vote": vote and Vote(vote["suspect"], tuple(vote["agreeing"])),
        }
    )


def beside_of(queries: Sequence[Mapping[str, Any]]) -> tuple[Evidence, ...]:
    """Return what asdict wrote of the queries beside a finding."""
    return tuple(Evidence(**{**each, "settings": tuple(map(tuple, each["settings"]))}) for each in queries)

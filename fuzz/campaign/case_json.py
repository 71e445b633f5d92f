"""A case as JSON and back, so that a stored finding can be run again by any later version that knows the fields."""

import base64
import json
from dataclasses import asdict
from typing import Any

from fuzz.errors import CaseError
from oracles.model.case import Case, Kind, Step
from oracles.model.mode import Mode, Protocol


def dumps(case: Case) -> str:
    """Return the case as JSON; COPY data, which may be any bytes, as base64."""
    return json.dumps(asdict(case), default=_encoded)


def loads(text: str) -> Case:
    """Return the case. Raises CaseError where the text is not one that `dumps` wrote."""
    try:
        data = json.loads(text)
        return Case(
            data["generator"],
            tuple(_step(step) for step in data["scene"]),
            tuple(_step(step) for step in data["steps"]),
            tuple(_mode(mode) for mode in data["modes"]),
            data.get("part", ""),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise CaseError(f"the stored case cannot be read ({error!r}); run it again from its seed") from error


def _encoded(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    raise TypeError(f"a case holds {type(value).__name__}, which has no place in JSON")


def _step(data: dict[str, Any]) -> Step:
    copy_data = None if data["copy_data"] is None else base64.b64decode(data["copy_data"])
    tuples = {name: tuple(data[name]) for name in ("params", "tags")}
    return Step(**{**data, **tuples, "kind": Kind(data["kind"]), "copy_data": copy_data})


def _mode(data: dict[str, Any]) -> Mode:
    settings = tuple((key, value) for key, value in data["settings"])
    protocol = None if data["protocol"] is None else Protocol(data["protocol"])
    return Mode(**{**data, "settings": settings, "protocol": protocol})

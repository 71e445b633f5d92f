"""The cases of generators' tests without servers, each made once in a process, and the parse trees of their queries."""

import json
import random
from collections.abc import Mapping
from functools import cache
from typing import Any

from pglast.parser import parse_sql_json

from fuzz.generators.generator import Generator, Scale
from oracles.model.case import Case


def cases_of(kind: type[Generator], count: int, scale: Scale | None = None) -> list[Case]:
    """Return the first `count` cases of a generator."""
    return [_case(kind, number, scale or Scale()) for number in range(count)]


@cache
def _case(kind: type[Generator], number: int, scale: Scale) -> Case:
    return kind().generate(random.Random(f"unit/{number}"), scale)


def select_of(sql: str) -> Mapping[str, Any]:
    """Return the parse tree of a SELECT as JSON, without absent fields. pglast's objects take several times as long."""
    (statement,) = json.loads(parse_sql_json(sql))["stmts"]
    select: Mapping[str, Any] = statement["stmt"]["SelectStmt"]
    return select

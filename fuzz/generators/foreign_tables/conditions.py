"""Conditions on one relation of the scene: those that postgres_fdw sends, and those that it checks locally.

It decides that by the types, functions and collations of the parts of an expression. So each kind of expression has a
condition here, and so has each kind of part that it cannot send.
"""

import random
from collections.abc import Sequence

from fuzz.generators.choices import Weighted, between, chance, pick, some
from fuzz.generators.foreign_tables.own_objects import OWN_CONDITIONS, OWN_NAMES
from fuzz.generators.foreign_tables.scene import NEAR, Scene

_COMPARISONS = Weighted((30, "<"), (30, ">="), (20, "="), (20, "<>"))
_SHIPPED = (
    "{0}.k {1} {2}",
    "{0}.a {1} {3}",
    "{0}.a IN ({3}, 1, NULL)",
    "{0}.a = ANY (ARRAY[{3}, {0}.k])",
    "{0}.k <> ALL (ARRAY[1, {2}])",
    "{0}.b LIKE 'v1%'",
    "{0}.b COLLATE \"C\" {1} 'v3'",
    "{0}.d {1} date '2024-01-06'",
    "{0}.c {1} 1.75",
    "{0}.c IS NOT NULL",
    "{0}.a IS DISTINCT FROM {3}",
    "{0}.e[1] {1} 1",
    "({0}.e)[1:1] = ARRAY[2]",
    "{0}.e @> ARRAY[2]",
    "CASE WHEN {0}.a > {3} THEN {0}.k > 9 ELSE {0}.k < {2} END",
    "CASE {0}.a WHEN {3} THEN 'v1' WHEN 2 THEN {0}.b ELSE 'v2' END = {0}.b",
    "NOT ({0}.a > {3} AND {0}.k < {2})",
    "NOT CASE WHEN {0}.a > {3} THEN {0}.k {1} 9 ELSE {0}.k = {2} END",
    "({0}.a = {3} OR {0}.a IS NULL)",
    "abs({0}.a - {3}) < 2",
    "coalesce({0}.a, {3}) {1} 3",
    "nullif({0}.a, {3}) IS NULL",
    "length({0}.b) = 2",
    "({0}.a > 3) IS TRUE",
    "{0}.b::varchar {1} 'v3'",
    "{0}.k::bigint {1} {2} AND {0}.c::int < 40",
    "{3}::int2 {1} {0}.a",
    "({0}.a = {3} AND {0}.k > 9 OR {0}.a + 1 IS NULL)",
    "true = ({0}.a > {3})",
    "CASE WHEN {0}.k > {2} THEN true WHEN {0}.a = {3} THEN false ELSE {0}.a {1} 3 END",
    "CASE WHEN {0}.k > {2} THEN B'101' ELSE B'1' END {1} B'101'",
    "{0}.c {1} 'NaN'::numeric",
    "{0}.b <> E'v\\\\1'",
    "{0}.* IS NOT NULL",
    "NOT ({0} IS NULL)",
    "num_nonnulls(VARIADIC {0}.e) {1} 2",
    "(string_to_array({0}.b, 'v'))[2] = '{3}'",
    "CASE {0}.b WHEN 'v1' THEN 1 ELSE {3} END {1} 1",
    "{0}.b = ANY (ARRAY[{0}.b, 'v1'])",
    "(ARRAY['v2', 'v1', 'v3'])[{0}.a] = {0}.b",
    "CASE WHEN {0}.a > 3 THEN 'p' ELSE 'v1' END = {0}.b",
    "CASE {0}.a > {3} WHEN true THEN 1 ELSE 0 END {1} 1",
    '(jsonb \'["v1", "v2", "v3"]\' ->> {0}.a) {1} {0}.b',
    "(jsonb '[\"v1\", \"v2\"]' ->> {0}.a) {1} 'v2'",
)
# Constants of the types that name objects: sent only if the object is built in.
_NAMING = (
    "regproc 'now'", "regprocedure 'abs(int4)'", "regoper '|/'", "regoperator '+(int4,int4)'", "regclass 'pg_class'",
    "regtype 'int4'", "regcollation '\"C\"'", "regconfig 'english'", "regdictionary 'simple'",
    "regnamespace 'pg_catalog'", "regrole 'pg_monitor'", f"regclass '{NEAR}'", f"regtype '{NEAR}'",
    "regprocedure 'noted()'", "regnamespace 'duel'",
)  # fmt: skip
_TRIGRAMS = ("similarity({0}.b, 'v1') < 0.5", "{0}.b <-> 'v2' > 0.3", "strict_word_similarity({0}.b, 'v') >= 0.1")
_LOCAL = (
    "{0}.k::text LIKE '%3'",
    "({0}.a, {0}.k) < (4, {2})",
    "{0}.b ~ '[1-4]$' AND {0}.k::text <> '5'",
    "{0}.e[length({0}.k::text)] {1} 1",
    "({0}.e)[1:length({0}.k::text)] <> ARRAY[{3}]",
    "({0}.e)[length({0}.k::text):2] <> ARRAY[{3}]",
    "CASE {0}.k::text WHEN '{3}' THEN 1 ELSE 2 END {1} 1",
    "CASE WHEN {0}.a > {3} THEN 'p' ELSE {0}.k::text END <> '{2}'",
    "CASE WHEN {0}.k::text < '{2}' THEN {0}.a {1} 3 END",
    "CASE {0}.a WHEN {3} THEN {0}.k::text ELSE {0}.b END {1} '{2}'",
    "'{3}' = ANY (ARRAY[{0}.a::text, {0}.b])",
    "{0}.a::text IS DISTINCT FROM '{3}'",
    "nullif({0}.a::text, '{3}') IS NOT NULL",
    "coalesce({0}.a::text, 'x') {1} '{3}'",
    "length({0}.k::text) {1} 2",
    "({0}.a::text, {0}.k) IS NOT NULL",
)


def condition(rng: random.Random, scene: Scene, alias: str, *, keys: str = "") -> str:
    """Return a condition on one relation."""
    if chance(rng, 5):
        names = OWN_NAMES if scene.own and chance(rng, 50) else _NAMING
        return f"(CASE WHEN {alias}.k > {rng.randrange(20)} THEN {pick(rng, names)} END) IS NOT NULL"
    return _filled(rng, scene, pick(rng, _forms(rng, scene)), alias, keys)


def _forms(rng: random.Random, scene: Scene) -> Sequence[str]:
    if scene.trigrams and chance(rng, 30):
        return _TRIGRAMS
    if scene.own and chance(rng, 20):
        return OWN_CONDITIONS
    return _LOCAL if chance(rng, 20) else _SHIPPED


def _filled(rng: random.Random, scene: Scene, form: str, alias: str, keys: str = "") -> str:
    return form.format(alias, _COMPARISONS.pick(rng), keys or between(rng, 1, scene.keys), rng.randrange(8))


def conditions_sent(rng: random.Random, scene: Scene, alias: str, number: int) -> list[str]:
    """Return different conditions on one relation, of which at most one is not sent."""
    forms = [*some(rng, _SHIPPED, number - 1), pick(rng, _LOCAL if chance(rng, 40) else _SHIPPED)]
    return [_filled(rng, scene, form, alias) for form in forms]

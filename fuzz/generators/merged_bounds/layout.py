"""Layouts: zones of the keys' domain, and the bounds of single tables within them.

A table has one partition in a zone, or none. Partitions of one zone overlap, and reach into no other zone. So they
match one to one, as PostgreSQL requires where it merges bounds. Some tables break this rule.
"""

import random
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

from fuzz.generators.choices import Weighted, between, chance, pick, shuffled, some
from fuzz.generators.merged_bounds.bounds import HIGH, LOW, Bounds, Edge, Part, Remainder, Rest, Span, Values

_STEP = 6  # least distance of neighboring edges; they move by up to 2
_LAST = 2  # largest move of an edge


@dataclass(frozen=True, slots=True)
class Zone:
    """A part of the domain: a range, or values.

    Each table has the first value of `core`, and some of the other values. `least` is the smallest value. One table has
    it, and so have tables with default partitions. With `spans`, each table has one of these ranges.
    """

    low: Edge = ()
    high: Edge = ()
    spans: tuple[Span, ...] = ()
    least: tuple[int, ...] = ()
    core: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    sub: "Layout | None" = None


@dataclass(frozen=True, slots=True)
class Layout:
    """The common structure of the bounds of a case's tables.

    `owner` is the only table with a default partition, or `ALL` or `NOBODY`. The zone `absorbed` is missing from tables
    with a default partition. `missing`, `cut`, `moved` and `freed` are percentages of zones, ranges, edges and tables.
    A cut range is one part of its zone, so it may overlap some ranges of the zone, but not all. If `matching`, each
    table has a range in each zone, and none has a default partition. If `remaps`, any table may have values below the
    common ones. Otherwise the table `early` has one in each list.
    """

    method: str
    columns: tuple[int, ...]
    zones: tuple[Zone, ...]
    owner: int = -1
    absorbed: int = 0
    nulls: int = 0  # number of the zone with NULL, or of zones: then a partition of its own
    missing: int = 0
    cut: int = 0
    moved: int = 0
    freed: int = 0
    matching: bool = False
    remaps: bool = False
    early: int = 0

    @property
    def levels(self) -> tuple["Layout", ...]:
        """Return this layout and those of its zones."""
        return (self, *(level for zone in self.zones if zone.sub for level in zone.sub.levels))


NOBODY, ALL = -1, -2
_OWNERS = Weighted((48, "nobody"), (30, "one"), (22, "all"))


def draw_layout(rng: random.Random, columns: int, tables: int, limit: int) -> Layout:
    """Return a layout over key columns 0 to `columns` - 1, with up to `limit` leaf partitions."""
    method = _METHODS.pick(rng)
    width = 1 if method == "LIST" else between(rng, 1, columns)
    rest = tuple(range(width, columns))
    nested = limit >= 4 and chance(rng, 75 if rest else 8)
    zones = min(limit // 2 if nested else limit, _ZONES.pick(rng))
    layout = _level(rng, method, tuple(range(width)), tables, zones)
    if not nested:
        return layout
    width = between(rng, 2, min(3, limit // zones))
    subs = [_level(rng, _METHODS.pick(rng), rest[:1] or (0,), tables, width) for _ in range(between(rng, 1, 2))]
    with_subs = tuple(replace(zone, sub=pick(rng, subs)) if chance(rng, 70) else zone for zone in layout.zones)
    return replace(layout, zones=with_subs)


_METHODS = Weighted((52, "RANGE"), (40, "LIST"), (8, "HASH"))
_ZONES = Weighted((20, 2), (35, 3), (25, 4), (12, 5), (8, 6))


def _level(rng: random.Random, method: str, columns: tuple[int, ...], tables: int, zones: int) -> Layout:
    remaps = method == "LIST" and chance(rng, 35)
    matching = method == "RANGE" and chance(rng, 50)
    if method == "LIST":
        drawn = _lists(rng, zones, remaps=remaps)
    elif method == "RANGE":
        shared = some(rng, range(zones), _SHARED.pick(rng))
        ranges = _ranges(rng, len(columns), zones)
        drawn = tuple(_with_shared_edges(rng, zone) if n in shared else zone for n, zone in enumerate(ranges))
    else:
        drawn = (Zone(),) * zones
    owner = {"nobody": NOBODY, "one": rng.randrange(tables), "all": ALL}[_OWNERS.pick(rng)]
    if matching:
        owner = NOBODY
    return Layout(
        method,
        columns,
        drawn,
        owner,
        absorbed=rng.randrange(zones),
        nulls=rng.randrange(zones + 1),
        missing=0 if matching else pick(rng, (0, 15, 0, 30)),
        cut=0 if matching else pick(rng, (0, 20, 0, 45)),
        moved=pick(rng, (50, 25, 0)),
        freed=0 if matching else pick(rng, (0, 10, 30)),
        matching=matching,
        remaps=remaps,
        early=rng.randrange(tables),
    )


def _ranges(rng: random.Random, width: int, zones: int) -> tuple[Zone, ...]:
    edges = [_edge(rng, width, _STEP, 0)]
    for _ in range(zones):
        first, *others = edges[-1]
        if others and others[0] != LOW and others[0] < 2 * _STEP and chance(rng, 35):
            edges.append(_filled((first, others[0] + _STEP), width))
        else:
            edges.append(_edge(rng, width, first + _STEP, 3))
    if chance(rng, 50):
        edges[0] = (LOW,) * width
    if chance(rng, 50):
        edges[-1] = (HIGH,) * width
    return tuple(Zone(low, high) for low, high in pairwise(edges))


def _with_shared_edges(rng: random.Random, zone: Zone) -> Zone:
    """Return the zone with all ranges between two of a few edges, in random order.

    So a third table's range may begin or end between the bounds of two others.
    """
    edges = (zone.low, *(_inside(zone, by) for by in _INNER.pick(rng)), zone.high)
    return replace(zone, spans=shuffled(rng, [Span(low, high) for low, high in combinations(edges, 2)]))


_SHARED = Weighted((30, 0), (40, 1), (30, 2))  # zones with shared edges; without any, the tables may have equal bounds
_INNER = Weighted((2, (_STEP // 2,)), (1, (_STEP // 3, _STEP * 2 // 3)))  # distances of inner edges from the lower one


def _edge(rng: random.Random, width: int, least: int, spread: int) -> Edge:
    """Return an edge whose first value is at least `least`; other columns have a value, or MINVALUE."""
    first = between(rng, least, least + spread)
    if width == 1 or chance(rng, 40):
        return _filled((first,), width)
    return _filled((first, between(rng, _LAST + 1, _STEP)), width)


def _filled(start: Edge, width: int, end: int = LOW) -> Edge:
    return start + (end,) * (width - len(start))


def _lists(rng: random.Random, zones: int, *, remaps: bool) -> tuple[Zone, ...]:
    cores = [between(rng, 1, 3) for _ in range(zones)]
    others = [rng.randrange(4) for _ in range(zones)]
    values = list(range(sum(cores) + sum(others)))
    if chance(rng, 70):  # values of different zones alternate
        values = list(shuffled(rng, values))
    drawn = []
    for core, other in zip(cores, others, strict=True):
        own, values = sorted(values[: core + other]), values[core + other :]
        if remaps:
            drawn.append(Zone(core=tuple(own[other:]), others=tuple(own[:other])))
        else:
            least = min(1, other)
            rest = own[least:]
            drawn.append(Zone(least=tuple(own[:least]), core=tuple(rest[:core]), others=tuple(rest[core:])))
    return tuple(drawn)


def draw_bounds(rng: random.Random, layout: Layout, table: int) -> Bounds:
    """Return the bounds of one table, given by its number."""
    if layout.method == "HASH":
        modulus = len(layout.zones) + chance(rng, layout.freed)
        return Bounds("HASH", layout.columns, tuple(Part(Remainder(modulus, n)) for n in range(modulus)))
    default = layout.owner in (ALL, table)
    parts = _parts(rng, layout, table, default=default)
    if chance(rng, layout.freed):
        parts = (_freed_range if layout.method == "RANGE" else _freed_list)(rng, parts)
    if default:
        parts.append(Part(Rest(), _sub(rng, layout.zones[layout.absorbed], table)))
    return Bounds(layout.method, layout.columns, tuple(parts))


def _parts(rng: random.Random, layout: Layout, table: int, *, default: bool) -> list[Part]:
    kept = [n for n in range(len(layout.zones)) if not _is_missing(rng, layout, n, default=default)]
    kept = kept or [0]
    # Beside a default partition, all but equal edges prevent merging.
    exact = (default or layout.owner == ALL) and not chance(rng, 35)
    nulls = layout.nulls if chance(rng, 70) else pick(rng, (*kept, len(layout.zones), -1))
    parts = []
    for n in kept:
        zone = layout.zones[n]
        bound = (
            (Span(zone.low, zone.high) if exact else _span(rng, zone, layout, table))
            if layout.method == "RANGE"
            else _values(rng, zone, exact=exact, null=n == nulls, least=exact or layout.early == table)
        )
        parts.append(Part(bound, _sub(rng, zone, table)))
    if layout.method == "LIST" and nulls == len(layout.zones):
        parts.append(Part(Values((None,))))
    return parts


def _is_missing(rng: random.Random, layout: Layout, zone: int, *, default: bool) -> bool:
    if default:
        return zone == layout.absorbed and chance(rng, 80)
    return chance(rng, layout.missing)


def _sub(rng: random.Random, zone: Zone, table: int) -> Bounds | None:
    return draw_bounds(rng, zone.sub, table) if zone.sub and chance(rng, 92) else None


def _span(rng: random.Random, zone: Zone, layout: Layout, table: int) -> Span:
    if zone.spans:
        return zone.spans[table % len(zone.spans)]
    low = pick(rng, _after(zone.low)) if chance(rng, layout.moved) else zone.low
    high = pick(rng, _before(zone.high)) if chance(rng, layout.moved) else zone.high
    if chance(rng, layout.cut):
        middle = _inside(zone, _STEP // 2)
        low, high = pick(rng, ((low, middle), (middle, high)))
    return Span(low, high) if low < high else Span(zone.low, zone.high)


def _inside(zone: Zone, by: int) -> Edge:
    """Return an edge inside a zone, `by` above its lower edge, or as far below the upper one if there is no lower."""
    edge, by = (zone.high, by - _STEP) if zone.low[0] == LOW else (zone.low, by)
    start = _start(edge)
    return _filled((*start[:-1], start[-1] + by), len(edge))


def _after(edge: Edge) -> tuple[Edge, ...]:
    """Return edges that are a little higher."""
    start, width = _start(edge), len(edge)
    moved = tuple(_filled((*start[:-1], start[-1] + n), width) for n in range(1, _LAST + 1))
    return (*moved, _filled((*start, 1), width)) if LOW not in start and len(start) < width else moved


def _before(edge: Edge) -> tuple[Edge, ...]:
    """Return edges that are a little lower."""
    if edge[0] == HIGH:  # far above all lower edges
        return tuple(_filled((n,), len(edge)) for n in (100, 101))
    start, width = _start(edge), len(edge)
    moved = tuple(_filled((*start[:-1], start[-1] - n), width) for n in range(1, _LAST + 1))
    return (*moved, _filled((*start[:-1], start[-1] - 1), width, HIGH)) if len(start) < width else moved


def _start(edge: Edge) -> Edge:
    """Return the values before MINVALUE; at least one, which is lower than all values."""
    return tuple(n for n in edge if n != LOW) or (LOW,)


def _values(rng: random.Random, zone: Zone, *, exact: bool, null: bool, least: bool) -> Values:
    values: list[int | None] = [n for n in zone.core if exact or n == zone.core[0] or chance(rng, 90)]
    values += [n for n in zone.others if exact or chance(rng, 50)]
    values += zone.least if least else ()
    if null:
        values.append(None)
    return Values(shuffled(rng, values))


def _freed_range(rng: random.Random, parts: list[Part]) -> list[Part]:
    """Return the ranges after a change that makes one partition overlap two of another table."""
    spans = [part.bound for part in parts if isinstance(part.bound, Span)]
    changed = pick(rng, (_coarser, _finer, _shifted))(rng, spans)
    subs = [part.sub for part in parts] + [None]
    return [Part(span, subs[n]) for n, span in enumerate(changed)]


def _coarser(rng: random.Random, spans: list[Span]) -> list[Span]:
    if len(spans) < 2:
        return spans
    n = rng.randrange(len(spans) - 1)
    return [*spans[:n], Span(spans[n].low, spans[n + 1].high), *spans[n + 2 :]]


def _finer(rng: random.Random, spans: list[Span]) -> list[Span]:
    n = rng.randrange(len(spans))
    low, high = spans[n].low, spans[n].high
    middle = _filled((low[0] + 3,), len(low))
    return [*spans[:n], Span(low, middle), Span(middle, high), *spans[n + 1 :]] if low < middle < high else spans


def _shifted(rng: random.Random, spans: list[Span]) -> list[Span]:
    by = pick(rng, (1, -1, 2))

    def shift(edge: Edge) -> Edge:
        return edge if edge[0] in (LOW, HIGH) else (edge[0] + by, *edge[1:])

    return [Span(shift(span.low), shift(span.high)) for span in spans]


def _freed_list(rng: random.Random, parts: list[Part]) -> list[Part]:
    """Return the lists after a value moved from one partition to another."""
    lists = [list(part.bound.values) for part in parts if isinstance(part.bound, Values)]
    giver, taker = (rng.randrange(len(lists)) for _ in range(2))
    least = min((n for n in lists[taker] if n is not None), default=LOW)
    # The smallest values stay, because smaller ones than the common ones may be merged again (trees.Allowed).
    given = [n for n in sorted(n for n in lists[giver] if n is not None)[1:] if n > least]
    if given and giver != taker:
        lists[giver].remove(given[0])
        lists[taker].append(given[0])
    return [replace(part, bound=Values(tuple(values))) for part, values in zip(parts, lists, strict=True)]

"""Tests of the edges that a campaign reached: by file, in functions that patches change, and by one case only."""

from collections import Counter
from pathlib import Path

from fuzz import documents
from fuzz.campaign.edges import (
    EdgePlaces,
    EdgesOfRuns,
    Reached,
    edges_of_one_case,
    kept_places,
    marks_of,
    number_of_edges,
    reached_edges,
)
from fuzz.servers.edges.counters import SEVERAL
from fuzz.servers.edges.places import Frame

HASH, JOIN = "src/backend/executor/nodeHash.c", "src/backend/executor/nodeHashjoin.c"
GROW, IMPL = Frame(HASH, "ExecHashGrow", 20), Frame(JOIN, "ExecHashJoinImpl", 7)
PLACES = EdgePlaces.of(
    [
        (Frame(JOIN, "ExecInitHashJoin", 20),),
        (GROW,),
        (GROW._replace(line=21),),
        (Frame(HASH, "other", 50),),
        (IMPL, Frame(JOIN, "ExecHashJoin", 90)),
        (),
    ],
    {GROW[:2], IMPL[:2], ("src/backend/commands/copyfrom.c", "CopyFrom")},
    {(HASH, 21), (JOIN, 90), (JOIN, 91)},
)


def test_edges_are_counted_by_file_and_in_changed_functions(tmp_path: Path) -> None:
    (tmp_path / "edge-places.json").write_text(documents.dumps(PLACES))
    (tmp_path / "edges").write_bytes(bytes([1, 0, SEVERAL, 2, 2, 0]))
    edges = reached_edges(tmp_path)
    assert edges is not None
    assert edges.to_json() == {
        "reached": 4,
        "counted": 6,
        "changed": {"reached": 2, "counted": 3},
        "files": {
            "": {"reached": 0, "counted": 1},
            HASH: {"reached": 2, "counted": 3},
            JOIN: {"reached": 2, "counted": 2},
        },
    }
    assert str(edges) == "edges reached: 4 of 6; in functions that the patches change, 2 of 3"
    assert number_of_edges(tmp_path) == 4


def test_edges_at_added_lines_are_preferred_to_others_in_changed_functions() -> None:
    assert Counter(PLACES.preferred) == {1: 1, 2: 2, 4: 2}


def test_the_mark_of_an_edge_is_its_only_generators(tmp_path: Path) -> None:
    (tmp_path / "edges").write_bytes(bytes([1, 0, SEVERAL, 2, 2]))
    generators = ("few_rows", "outer_joins", "typed")
    assert marks_of(generators) == {"few_rows": 1, "outer_joins": 2, "typed": 3}
    assert edges_of_one_case(tmp_path, generators) == Counter(few_rows=1, outer_joins=2, typed=0)
    assert max(marks_of(map(str, range(400))).values()) == SEVERAL - 1


def test_without_patches_only_the_total_is_shown(tmp_path: Path) -> None:
    (tmp_path / "edge-places.json").write_text(documents.dumps(EdgePlaces.of([(GROW,)], frozenset(), frozenset())))
    (tmp_path / "edges").write_bytes(b"\1")
    assert str(reached_edges(tmp_path)) == "edges reached: 1 of 1"


def test_a_campaign_whose_builds_count_nothing_has_no_edges(tmp_path: Path) -> None:
    assert kept_places(tmp_path) is None
    assert reached_edges(tmp_path) is None
    assert number_of_edges(tmp_path) == 0
    assert not edges_of_one_case(tmp_path, ("few_rows",))


def test_edges_of_runs_on_equal_builds_are_combined(tmp_path: Path) -> None:
    old, new = {"a": "0", "b": "1"}, {"a": "0", "b": "2"}
    directories = [tmp_path / str(number) for number in range(6)]
    maps = ([1, 0, 0, 2, 0, 0], [SEVERAL, 0, 0, 0, 0, 3], [0, 1, 0, 0, 0, 0], None, [0, 0, 0, 0, 4, 0], None)
    for directory, marks in zip(directories, maps, strict=True):
        directory.mkdir()
        if marks is not None:
            (directory / "edge-places.json").write_text(documents.dumps(PLACES))
            (directory / "edges").write_bytes(bytes(marks))
    edges = EdgesOfRuns()
    assert (edges.add(old, directories[5]), edges.of(old)) == (0, None)
    assert [edges.add(old, directory) for directory in directories[:2]] == [2, 3]
    assert edges.add(new, directories[2]) == 1
    assert [edges.add(old, directory) for directory in directories[3:5]] == [3, 4]
    assert str(edges.of(old)) == "edges reached: 4 of 6; in functions that the patches change, 1 of 3"
    assert str(edges.of(new)) == "edges reached: 1 of 6; in functions that the patches change, 1 of 3"
    assert edges.of({"a": "0"}) is None
    combined = edges.of(old)
    assert combined is not None
    assert combined.files == {"": Reached(1, 1), HASH: Reached(1, 3), JOIN: Reached(2, 2)}

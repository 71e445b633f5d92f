"""Tests of the reader of PostgreSQL's node trees."""

from fuzz.sources.determinism.analysis import read_nodes

TREE = r"""
({QUERY :commandType 1 :querySource 0 :canSetTag true :utilityStmt <> :rtable ({RANGETBLENTRY :alias <>
:eref {ALIAS :aliasname a\ \{b\} :colnames ("x" "y\(")} :rtekind 0 :relid 16390}) :targetList ({TARGETENTRY :expr
{CONST :consttype 23 :constvalue 4 [ 1 0 0 0 0 0 0 0 ]} :resno 1} {TARGETENTRY :expr {FUNCEXPR :funcid 1598 :args <>}
:resno 2}) :sortClause <>})"""


def test_fields_and_lists_are_read() -> None:
    (query,) = read_nodes(TREE)
    assert (query.kind, query.word("canSetTag"), query.number("commandType")) == ("QUERY", "true", 1)
    assert [target.number("resno") for target in query.children("targetList")] == [1, 2]
    assert (query.word("utilityStmt"), query.number("nothing"), query.children("sortClause")) == ("", 0, [])


def test_braces_in_names_are_no_nodes() -> None:
    (query,) = read_nodes(TREE)
    (entry,) = query.children("rtable")
    (alias,) = entry.children("eref")
    assert alias.fields["colnames"] == ['"x"', r'"y\("']
    assert entry.number("relid") == 16390


def test_all_nodes_are_visited() -> None:
    (query,) = read_nodes(TREE)
    kinds = [node.kind for node in query.walk()]
    assert kinds == ["QUERY", "RANGETBLENTRY", "ALIAS", "TARGETENTRY", "CONST", "TARGETENTRY", "FUNCEXPR"]
    assert next(node for node in query.walk() if node.kind == "FUNCEXPR").number("funcid") == 1598

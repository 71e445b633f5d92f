"""Join order: total planning time of many queries on a film database with large tables partitioned by id.

The mail plans the queries of the Join Order Benchmark. Schema and queries here are pgduel's own, with 4 to 14
relations; `schema` and `queries` accept others. The statements of a schema are executed in order, including those that
fill and analyze tables. Each table PARTITION BY HASH gets its partitions before the next statement.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pglast
from psycopg.sql import SQL, Identifier

from fuzz.bench.bench import SQL_FILE, BenchError, Connection
from fuzz.bench.planning import VARIANTS, PlanningBench, planning_mail
from fuzz.errors import text_of
from oracles.sql.parsing import parse_statements

HOME = Path(__file__).with_suffix("")
_SPEEDUP = MappingProxyType(  # in percent, by v3, v5, v6, v7
    {
        2: (95.8, 97.3, 97.3, 97.7),
        4: (96.9, 98.4, 98.0, 99.2),
        8: (102.2, 102.9, 98.1, 103.0),
        16: (107.6, 109.5, 110.1, 109.4),
        32: (123.5, 125.4, 125.5, 125.0),
        64: (165.2, 165.9, 164.6, 165.9),
        128: (308.2, 309.2, 312.1, 311.4),
        256: (770.1, 772.3, 776.6, 773.2),
    }
)
_WITHOUT_PARTITIONS = """
    SELECT c.relname, c.oid::regclass::text FROM pg_partitioned_table AS p JOIN pg_class AS c ON c.oid = p.partrelid
    WHERE p.partstrat = 'h' AND NOT EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid)"""


class JoinOrderBench(PlanningBench):
    """Planning time of all queries together. The mail's speed-up of s % is shown as the ratio 100 / s."""

    name = "join_order"
    mail = planning_mail(
        {
            variant: {(size,): 100 / line[place] for size, line in _SPEEDUP.items()}
            for place, variant in enumerate(VARIANTS)
        }
    )

    # Raises BenchError for unusable files.
    def __init__(self, schema: Path = HOME / "schema.sql", queries: Path = HOME / "queries") -> None:
        super().__init__()
        self._schema = _statements(schema)
        self._queries = _selects(queries)

    @property
    def parameters(self) -> str:
        """Return all statements."""
        return "\n".join((*self._schema, *self._queries.values()))

    def queries(self) -> Mapping[str, str]:
        """Return the SELECTs of the directory's files, by file and position in it."""
        return self._queries

    def create(self, connection: Connection, partitions: int) -> None:
        """Execute the schema, with `partitions` partitions per hash-partitioned table. Raises BenchError."""
        partitioned = 0
        for statement in self._schema:
            connection.execute(statement)
            partitioned += _add_partitions(connection, partitions)
        if not partitioned:
            raise BenchError("the schema has no table PARTITION BY HASH, so none gets partitions; add the clause")


def _selects(directory: Path) -> dict[str, str]:
    """Return the queries in a directory, in order of the files' names. Raises BenchError."""
    found = {}
    for file in sorted(directory.glob("*.sql")):
        for place, statement in enumerate(_statements(file), start=1):
            if isinstance(pglast.parse_sql(statement)[0].stmt, pglast.ast.SelectStmt):
                found[f"{file.name}:{place}"] = statement
    if not found:
        raise BenchError(f"there is no SELECT in the *.sql files of {directory}; give another directory")
    return found


def _statements(file: Path) -> tuple[str, ...]:
    """Return a file's statements. Raises BenchError."""
    try:
        text = text_of(file, BenchError, SQL_FILE)
        parse_statements(text)
        return tuple(pglast.split(text))
    except pglast.parser.ParseError as error:
        raise BenchError(f"cannot parse {file}: {error}") from error


def _add_partitions(connection: Connection, number: int) -> int:
    """Add partitions to hash-partitioned tables without any; return the number of these tables."""
    tables = connection.execute(_WITHOUT_PARTITIONS).fetchall()
    for name, table in tables:
        for place in range(number):
            partition = Identifier(f"{name}_{place}")
            bound = f"PARTITION OF {table} FOR VALUES WITH (MODULUS {number}, REMAINDER {place})"
            connection.execute(SQL("CREATE TABLE {} {}").format(partition, SQL(bound)))
    return len(tables)

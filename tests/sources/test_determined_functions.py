"""Tests of the table of functions against a real server's catalogs."""

import pytest

from fuzz.execution.source_database import SourceDatabase
from fuzz.sources.determinism.catalog import FILE, table

pytestmark = [pytest.mark.servers, pytest.mark.timeout(600)]


def test_the_table_is_that_of_the_catalogs(target: SourceDatabase) -> None:
    """Otherwise renew it: `python -m fuzz.sources.determinism.catalog`."""
    with target.session(()) as connection:
        assert FILE.read_text() == table(connection)

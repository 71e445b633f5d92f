"""Runs of pytest with the plugin, in a directory of a user."""

from collections.abc import Callable

import pytest

from fuzz import workdir

PLUGIN = "fuzz.pytest_plugin.plugin"
Run = Callable[..., pytest.RunResult]


@pytest.fixture(scope="session")
def cache() -> str:
    """Return the directory of pgduel's cache, which `pytester` would move with the home directory."""
    return str(workdir.root().parent)


@pytest.fixture
def run(cache: str, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a file of tests with options. The package `pgduel` is that of a wheel."""
    monkeypatch.setenv("PYTHONPATH", str(workdir.PROJECT))
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    pytester.makepyfile(pgduel=f"from {PLUGIN} import given_cases")

    def run_tests(text: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(test_patch=text)
        always = ("-p", PLUGIN, "-p", "no:randomly", "-p", "no:cacheprovider")
        return pytester.runpytest_subprocess(*always, *options)

    return run_tests

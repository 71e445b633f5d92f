"""Tests of the wheel: the command works outside of a checkout, next to the user's packages `fuzz` and `oracles`."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from zipfile import ZipFile

import pytest

from fuzz import workdir
from fuzz.cli import COMMANDS
from fuzz.servers import git
from tests.user_files import written_examples

pytestmark = pytest.mark.installs

_USERS_PACKAGE = 'OWNER = "the user"\n'
_USERS_TEST = """\
import subprocess

import fuzz
import oracles


def test_own_packages_are_imported_and_pgduel_runs() -> None:
    assert fuzz.OWNER == oracles.OWNER == "the user"
    done = subprocess.run(["pgduel", "list", "generators"], capture_output=True, text=True)
    assert "partitioned_joins" in done.stdout, done.stderr
"""
_DUELS_OF_THE_USER = """\
import fuzz
import pgduel


def test_arms_return_the_same_rows(duel, scene) -> None:
    scene("CREATE TABLE t AS SELECT g FROM generate_series(1, 9) AS g")
    duel.same("SELECT sum(g) FROM t")
    import oracles

    assert fuzz.OWNER == oracles.OWNER == "the user"


@pgduel.given_cases("outer_joins", max_examples=2)
def test_arms_agree_on_generated_cases(duel, case) -> None:
    duel.same(case)
"""
_PYTEST = ("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    command = ["wheel", "--quiet", "--no-build-isolation", "--no-deps", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", *command, "--wheel-dir", directory, workdir.PROJECT], check=True)
    (built,) = directory.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a virtual environment with the wheel, and with the dependencies of the test's own environment."""
    home = tmp_path_factory.mktemp("installed")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    (site_packages,) = home.glob("lib/python*/site-packages")
    (site_packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    install = ["--python", str(home), "install", "--quiet", "--no-deps", "--no-compile", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", *install, wheel], check=True)
    return home


@pytest.fixture
def users_tree(tmp_path: Path) -> Path:
    """Return a directory with packages that have the names of pgduel's."""
    for name in ("fuzz", "oracles"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(_USERS_PACKAGE)
    (tmp_path / "test_own.py").write_text(_USERS_TEST)
    return tmp_path


def run(installed: Path, cwd: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the installation in a directory."""
    own = {"PATH": f"{installed / 'bin'}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120"}
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST"))}
    return subprocess.run(command, cwd=cwd, env=environment | own | variables, capture_output=True, text=True)


def test_the_wheel_has_one_package_and_all_files_of_the_checkout(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"pgduel"}
    listed = git.run("ls-files", "fuzz", "oracles", "patches", "corpus/fixed", "corpus/upstream", cwd=workdir.PROJECT)
    elsewhere = ("fuzz/wheel/", "fuzz/pytest_plugin/plugin.py")
    expected = {name for name in listed.stdout.decode().split() if not name.startswith(elsewhere)}
    assert {f"pgduel/tree/{name}" for name in expected} <= names
    assert "pgduel/pytest_plugin.py" in names


def test_all_commands_are_installed(installed: Path, users_tree: Path) -> None:
    done = run(installed, users_tree, "pgduel", "--help")
    assert done.returncode == 0, done.stderr
    assert all(command in done.stdout for command in COMMANDS)


@pytest.mark.parametrize("command", [("pgduel",), ("python", "-m", "pgduel")])
def test_lists_are_read_from_the_installation(installed: Path, users_tree: Path, command: tuple[str, ...]) -> None:
    done = run(installed, users_tree, *command, "list", "oracles", PYTHONPATH=str(users_tree))
    assert done.returncode == 0, done.stderr
    assert "crash" in done.stdout


def test_pytest_imports_the_users_own_packages(installed: Path, users_tree: Path) -> None:
    done = run(installed, users_tree, *_PYTEST)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_run_of_pytest_without_the_fixtures_imports_nothing_of_pgduel(installed: Path, users_tree: Path) -> None:
    names = "{name.partition('.')[0] for name in sys.modules} & {'fuzz', 'oracles', 'pglast', 'psycopg', 'scipy'}"
    (users_tree / "test_own.py").write_text(
        "import sys\n\n\ndef test_modules(request) -> None:\n"
        "    assert request.config.pluginmanager.hasplugin('pgduel')\n"
        f"    assert not {names}\n    assert 'multiprocessing.connection' not in sys.modules\n"
    )
    done = run(installed, users_tree, *_PYTEST)
    assert done.returncode == 0, done.stdout + done.stderr


def test_files_of_the_user_import_the_packages_of_the_installation(installed: Path, users_tree: Path) -> None:
    generator, oracle = written_examples(users_tree)
    files = ("--generator", str(generator), "--oracle", str(oracle))
    done = run(installed, users_tree, "pgduel", "fuzz", *files, "--base", "nowhere", PYTHONPATH=str(users_tree))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("pgduel: no source found for 'nowhere'")  # the files are read before


def test_a_missing_base_is_one_line_of_pytest(installed: Path, users_tree: Path) -> None:
    (users_tree / "test_own.py").write_text("def test_arms(duel) -> None:\n    duel.same('SELECT 1')\n")
    done = run(installed, users_tree, *_PYTEST, "--pgduel-base", "nowhere")
    assert done.returncode == 1
    assert "\nno source found for 'nowhere'; give pg17, pg18, a directory" in done.stdout
    assert "Traceback" not in done.stdout


def test_missing_system_packages_are_one_line_of_pytest(installed: Path, users_tree: Path) -> None:
    (users_tree / "test_own.py").write_text("def test_arms(duel) -> None:\n    duel.same('SELECT 1')\n")
    (users_tree / "dpkg-query").write_text("#!/bin/sh\nexit 1\n")
    (users_tree / "dpkg-query").chmod(0o755)
    done = run(installed, users_tree, str(installed / "bin" / "python"), *_PYTEST[1:], PATH=str(users_tree))
    assert done.returncode == 1
    assert "\nsystem packages are missing; as root, run: apt-get update && apt-get install" in done.stdout
    assert "Traceback" not in done.stdout


@pytest.mark.servers
@pytest.mark.timeout(900)
def test_the_plugin_of_pytest_runs_in_the_users_tree(installed: Path, users_tree: Path) -> None:
    (users_tree / "test_own.py").write_text(_DUELS_OF_THE_USER)
    done = run(installed, users_tree, *_PYTEST, "--pgduel-arm", "master", "--pgduel-arm", "patched")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_missing_system_packages_are_one_line(installed: Path, users_tree: Path) -> None:
    (users_tree / "dpkg-query").write_text("#!/bin/sh\nexit 1\n")
    (users_tree / "dpkg-query").chmod(0o755)
    python, pgduel = (str(installed / "bin" / name) for name in ("python", "pgduel"))
    done = run(installed, users_tree, python, pgduel, "fuzz", PATH=str(users_tree))
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "as root, run: apt-get update && apt-get install -y --no-install-recommends git gcc" in done.stderr
    assert "sqlsmith" not in done.stderr  # only its source needs it


@pytest.mark.servers
@pytest.mark.timeout(900)
def test_a_campaign_runs_in_the_users_tree(installed: Path, users_tree: Path) -> None:
    before = sorted(installed.rglob("*.sql"))
    generator, oracle = written_examples(users_tree)
    files = ("--generator", str(generator), "--generator", "outer_joins", "--oracle", str(oracle))
    campaigns = str(users_tree / "campaigns")
    done = run(installed, users_tree, "pgduel", "fuzz", *files, "--cases", "20", PGDUEL_CAMPAIGNS=campaigns)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No finding" in done.stdout
    assert sorted(installed.rglob("*.sql")) == before


def test_commands_that_need_a_checkout_are_refused(installed: Path, users_tree: Path) -> None:
    done = run(installed, users_tree, "pgduel", "test")
    assert done.returncode == 2
    assert done.stderr == (
        "pgduel: the tests are not installed; clone pgduel's repository, and run ./pgduel test there\n"
    )

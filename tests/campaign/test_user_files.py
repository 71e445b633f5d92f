"""Tests of the user's own files: which are accepted, and that they change no case of pgduel's own."""

import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz import documents
from fuzz.campaign.plan import Plan
from fuzz.campaign.user_files import FileKind, UserFile, error_in_file, load, load_recorded, read_and_load, read_file
from fuzz.cli.fuzz import new_plan
from fuzz.engines.seeded import case_of
from fuzz.errors import CaseError
from fuzz.generators.generator import Scale, all_generators
from fuzz.servers.arm_options import ArmOptions
from fuzz.sources.source import UserInput
from fuzz.sources.workloads import all_workloads
from oracles.model.case import CaseId
from oracles.model.oracle import all_oracles
from tests.user_files import written_examples

_GENERATOR = """\
from fuzz.generators.generator import Generator
from oracles.model.case import Case, Step


class Own(Generator):
    name = "own"
    modes = ("plain",)
    scene_weight = query_weight = 1000

    def generate(self, rng, scale):
        return Case(self.name, (), (Step(f"SELECT {10 // (scale.rows - 300)}"),))
"""
_ORACLE = """\
from oracles.framework.canaries import canary_case, query
from oracles.model.oracle import Agree, Canary, Oracle


class Own(Oracle):
    name = "own"
    canaries = (Canary("drop_row", canary_case(query("SELECT n FROM canary"))),)

    def judge(self, case, arms, observations):
        return (Agree(1),)
"""
_SMALL = Scale(rows=60, queries=4)


@pytest.fixture(autouse=True)
def _no_file_stays_loaded() -> Iterator[None]:
    gc.freeze()  # the collection below visits only the objects that the test made
    yield
    for name in [name for name in sys.modules if name.startswith(("pgduel_generator_files", "pgduel_oracle_files"))]:
        del sys.modules[name]
    gc.collect()  # classes of which only their base class knows are no longer subclasses then
    gc.unfreeze()
    assert not {"own", "pairs", "as_nested_loops"} & {*all_workloads(), *(oracle.name for oracle in all_oracles())}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "own.py"


def _load(kind: FileKind, file: Path, text: str) -> UserFile:
    file.write_text(text)
    (loaded,) = read_and_load(kind, [str(file)])
    return loaded


def _plan(generators: tuple[str, ...], oracles: tuple[str, ...]) -> Plan:
    return new_plan(ArmOptions(), UserInput(), seed=1, generators=generators, oracles=oracles, cases=8)


def test_the_examples_of_the_documents_are_loaded(tmp_path: Path) -> None:
    generator, oracle = map(str, written_examples(tmp_path))
    plan = _plan((generator, "copy_batches"), (oracle,))
    assert dict(plan.generators) == {"pairs": 1, "copy_batches": 1}
    assert all_oracles()[-1].name == "as_nested_loops"
    assert plan.replay_options().endswith(f" --oracle {oracle}")
    assert documents.loads(documents.dumps(plan), Plan) == plan
    assert len(case_of(CaseId(1, "pairs", 0), _SMALL).steps) == _SMALL.queries


def test_a_file_changes_no_other_case(file: Path) -> None:
    def cases() -> list[str]:
        return [repr(case_of(CaseId(7, name, index), _SMALL)) for name in all_generators() for index in range(3)]

    before, generators = cases(), list(all_generators())
    _load(FileKind.GENERATOR, file, _GENERATOR)
    assert "own" in all_workloads()
    assert (cases(), list(all_generators())) == (before, generators)  # sources take scenes from all_generators


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (FileKind.GENERATOR, "class X(\n", r"own.py, line 1: '\(' was never closed; correct the file"),
        (FileKind.GENERATOR, "x = 1\ny = 1 / 0\n", "own.py, line 2: ZeroDivisionError: division by zero; correct"),
        (FileKind.GENERATOR, "import nowhere\n", "own.py, line 1: ModuleNotFoundError: No module named 'nowhere'"),
        (
            FileKind.GENERATOR,
            "",
            "own.py defines no generator; give it a subclass of fuzz.generators.generator.Gen",
        ),
        (FileKind.GENERATOR, _ORACLE, "own.py defines no generator"),
        (FileKind.ORACLE, _GENERATOR, "own.py defines no oracle; give it a subclass of oracles.model.oracle.Oracle"),
        (FileKind.GENERATOR, _GENERATOR.replace("def generate", "def other"), "class Own lacks generate; define it"),
        (FileKind.GENERATOR, _GENERATOR.replace('name = "own"', ""), "class Own lacks a name; give it name = "),
        (FileKind.GENERATOR, _GENERATOR.replace('"own"', '"a b"'), "class Own lacks a name; give it name = "),
        (FileKind.GENERATOR, _GENERATOR.replace('"own"', '"typed"'), "there is another generator typed; give yours"),
        (FileKind.GENERATOR, _GENERATOR.replace('"plain"', '"unknown"'), "class Own: no mode is called 'unknown'"),
        (FileKind.GENERATOR, _GENERATOR.replace('("plain",)', "()"), "class Own lacks modes; give it at least one"),
        (FileKind.GENERATOR, _GENERATOR.replace('("plain",)', "(5,)"), "class Own: modes must be a tuple of str"),
        (FileKind.GENERATOR, "import sys\nsys.exit(0)\n", "own.py, line 2: SystemExit: 0; correct the file"),
        (FileKind.GENERATOR, "x = 1\0", "own.py: source code string cannot contain null bytes"),
        (FileKind.GENERATOR, "raise ValueError('a\\nb')\n", r"own.py, line 1: ValueError: a\\x0ab; correct the file"),
        (FileKind.ORACLE, _ORACLE.replace('"own"', '"crash"'), "class Own: there is another oracle crash; give yours"),
        (
            FileKind.ORACLE,
            _ORACLE.replace("    canaries", "    others"),
            "class Own lacks canaries; give it at least one",
        ),
        (FileKind.ORACLE, f"{_ORACLE}    canaries = ('lose_row',)\n", "class Own: canaries must be a tuple of Canary"),
        (FileKind.ORACLE, f"{_ORACLE}    def __init__(self, x): ...\n", "no class of oracles may need arguments"),
    ],
)
def test_unusable_files_are_refused_in_one_line(kind: FileKind, text: str, message: str, file: Path) -> None:
    with pytest.raises(CaseError, match=f"^[^\n]*{message}[^\n]*$"):
        _load(kind, file, text)


def test_other_names_and_missing_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match=r"--oracle crash: give a file NAME\.py with your own oracle"):
        read_file(FileKind.ORACLE, "crash")
    with pytest.raises(CaseError, match=r"cannot read \S+none.py \(No such file or directory\); give --generator"):
        read_file(FileKind.GENERATOR, str(tmp_path / "none.py"))
    (tmp_path / "bytes.py").write_bytes(b"\xff")
    with pytest.raises(CaseError, match=r"bytes\.py \(it is no text in UTF-8\); give --"):
        read_file(FileKind.GENERATOR, str(tmp_path / "bytes.py"))


def test_two_files_cannot_have_one_name(tmp_path: Path) -> None:
    _load(FileKind.ORACLE, tmp_path / "a.py", _ORACLE)
    with pytest.raises(CaseError, match=r"b\.py: class Own: there is another oracle own; give yours another name"):
        _load(FileKind.ORACLE, tmp_path / "b.py", _ORACLE)


def test_a_file_named_twice_is_refused_once_for_a_generator(file: Path) -> None:
    file.write_text(_GENERATOR)
    with pytest.raises(CaseError, match="a generator is named twice"):
        _plan((str(file), str(file.parent / "." / file.name), str(file)), ())
    assert len(read_and_load(FileKind.ORACLE, 2 * [str(_written(file, _ORACLE))])) == 1


def _written(file: Path, text: str) -> Path:
    file.write_text(text)
    return file


def test_a_campaign_keeps_the_text_of_its_files(file: Path) -> None:
    recorded = UserFile(FileKind.ORACLE, str(_written(file, _ORACLE)), _ORACLE)
    assert list(load_recorded([recorded])) == []
    file.write_text("")
    (changed,) = load_recorded([recorded])
    assert changed == f"{file} has changed; this campaign keeps the file with which it began"
    file.unlink()
    (gone,) = load_recorded([recorded])
    assert gone.startswith(f"{file} cannot be read any more (No such file or directory); this campaign keeps")
    assert [oracle.name for oracle in all_oracles()].count("own") == 1


def test_an_error_is_attributed_to_the_line_of_the_file(file: Path) -> None:
    _load(FileKind.GENERATOR, file, _GENERATOR)
    with pytest.raises(ZeroDivisionError) as raised:
        case_of(CaseId(1, "own", 0), Scale())
    assert error_in_file(raised.value).startswith(f"{file}, line 11: ZeroDivisionError: ")
    assert error_in_file(ValueError("of pgduel")) == ""


def test_a_base_class_of_the_file_needs_no_name(file: Path) -> None:
    base = _GENERATOR.replace("class Own(Generator)", "class Base(Generator)").replace("    name", "    title")
    base = base.replace("def generate", "def made")
    own = "\n\nclass Own(Base):\n    name = 'own'\n\n    def generate(self, rng, scale):\n        return None\n"
    assert load(_load(FileKind.GENERATOR, file, base + own)) == ("own",)

"""Builds of native harnesses: C files of an arm's tree, or its whole server, linked with a libFuzzer harness."""

import hashlib
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from filelock import FileLock

from fuzz import workdir
from fuzz.engines.libfuzzer import in_process
from fuzz.engines.libfuzzer.in_process import compile_in_process
from fuzz.errors import BuildError, CaseError, SourceError
from fuzz.servers import git
from fuzz.servers.build import Build
from fuzz.servers.compile import compile_file, first_fault
from fuzz.servers.modules import server_headers

_HERE = Path(__file__).parent
CLANG = "clang-19"
_FLAGS = (
    *("-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-fno-omit-frame-pointer", "-fno-strict-aliasing", "-fwrapv"),
    "-fno-pie",  # hashes of pointers must be equal in each run
    *("-ffunction-sections", "-fdata-sections"),  # so that the linker can drop unused functions
    *("-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all"),
    "-fno-sanitize=function",  # tree walkers are called through pointers of another type
    *("-fprofile-instr-generate", "-fcoverage-mapping"),
    *("-Wall", "-Wno-ignored-attributes", "-Werror"),  # the headers were configured for gcc
    "-Wno-unused-function",  # an injected bug may remove the only call
    "-ffile-compilation-dir=.",  # so that file names are valid for each harness that links the object
)
_LINKING = ("-no-pie", "-lm", "-pthread")
# The server's files refer to many functions that are never called. Symbols that remain after unused functions are
# dropped may be undefined. A call of one ends the harness.
_UNUSED_LEFT_OUT = ("-Wl,--gc-sections", "-Wl,--unresolved-symbols=ignore-all")


@dataclass(frozen=True, slots=True, eq=False)
class Harness:
    """A native harness: a folder beside this file with its C files and a file harness.toml, which has these fields."""

    name: str  # of the folder
    checks: str  # one line
    tested: Sequence[str] = ()  # files of the tree, compiled unchanged; headers among them are those of the tree
    functions: Sequence[str] = ()  # functions of these files without which the harness has nothing to test
    included: Sequence[str] = ()  # files of the tree that the folder's C files include
    without: Sequence[str] = ()  # words that these files must not have
    stubs: Sequence[str] = ()  # C files beside this file
    variants: Mapping[str, str] = field(default_factory=dict)  # C file of the folder → function that it needs
    unused_left_out: bool = False
    flavor: str = ""  # of the whole server that runs the folder's C files; "" if they are linked with single files

    @property
    def files(self) -> tuple[str, ...]:
        """Return the files of the tree that the harness compiles."""
        return (*self.tested, *self.included)

    def lacks(self, tree: str) -> str:
        """Return the reason why the harness cannot test a tree; "" if it can."""
        texts = {path: git.show(tree, path) for path in self.files}
        if missing := next((path for path, text in texts.items() if text is None), ""):
            return f"the series has no {missing}"
        text = "\n".join(filter(None, texts.values()))
        if missing := next((name for name in self.functions if not _calls(text, name)), ""):
            return f"the series has no function {missing}"
        if word := next((word for word in self.without if re.search(rf"\b{word}\b", text)), ""):
            return f"the harness does not cover {word}"
        return "" if self._own(text) else f"the series has none of the functions {', '.join(self.variants.values())}"

    def own(self, tested: Mapping[str, str]) -> tuple[str, ...]:
        """Return its own C files for these texts of the tree, of the variants only the first that fits."""
        return (*self._own("\n".join(tested.values())), *self.stubs, "failure.c")

    def _own(self, text: str) -> tuple[str, ...]:
        files = {f"{self.name}/{path.name}" for path in (_HERE / self.name).glob("*.c")}
        variants = {f"{self.name}/{file}": function for file, function in self.variants.items()}
        fitting = next((file for file, function in variants.items() if _calls(text, function)), None)
        if variants and fitting is None:
            return ()
        return tuple(sorted(files - variants.keys() | ({fitting} if fitting else set())))


def _calls(text: str, function: str) -> bool:
    return re.search(rf"\b{function}\(", text) is not None


def all_harnesses() -> dict[str, Harness]:
    """Return the harnesses by name."""
    found = {path.parent.name: tomllib.loads(path.read_text()) for path in sorted(_HERE.glob(f"*/{_RECIPE}"))}
    return {name: Harness(name, **fields) for name, fields in found.items()}


def harness_named(name: str) -> Harness:
    """Return a harness. Raises CaseError."""
    harnesses = all_harnesses()
    if name not in harnesses:
        raise CaseError(f"no harness is called {name!r}; give one of {', '.join(harnesses)}")
    return harnesses[name]


_RECIPE = "harness.toml"
_HEADERS = "src/include/"
_OWN = "harness"  # directory for copies of own files, next to the compiled harness
_OBJECTS = "objects"


def build_harness(build: Build, name: str, tree: str = "") -> Path:
    """Return the harness `name` for the C files of a stored tree, by default the build's tree.

    It is compiled on first use. A harness with a flavor runs in the build itself, which must have that flavor and tree.
    For any other, all other headers are those of the build, which are configured. So `tree` may differ from the build's
    tree in these files only.

    A harness is compiled from copies next to it. It therefore outlives the checkout that it was made in, and its
    coverage refers to the text of these copies. Raises BuildError, SourceError.
    """
    recipe = harness_named(name)
    tested = {path: _source(tree or build.tree, path) for path in recipe.files}
    home = workdir.harnesses() / f"{name}-{_key(build, tested | _scripts(recipe))}"
    harness = home / name
    with FileLock(f"{home}.lock"):
        if not harness.exists():
            shutil.rmtree(home, ignore_errors=True)
            shutil.copytree(_HERE, home / _OWN, ignore=shutil.ignore_patterns("*.py", "*.toml", "__pycache__"))
            for path, text in tested.items():
                (home / path).parent.mkdir(parents=True, exist_ok=True)
                (home / path).write_text(text)
            if recipe.flavor:
                compile_in_process(build, harness, [f"{_OWN}/{file}" for file in recipe.own(tested)])
            else:
                _compile(build, harness, recipe, tested)
    return harness


def _scripts(recipe: Harness) -> dict[str, str]:
    """Return the further files of a harness with a flavor, by name."""
    files = (Path(in_process.__file__), *sorted((_HERE / recipe.name).glob("*.sql"))) if recipe.flavor else ()
    return {file.name: file.read_text() for file in files}


def _source(tree: str, path: str) -> str:
    text = git.show(tree, path)
    if text is None:
        raise SourceError(f"tree {tree[:12]} has no {path}, which its libFuzzer harness is for")
    return text


def _key(build: Build, tested: Mapping[str, str]) -> str:
    digest = hashlib.sha256("\0".join((build.key, _compiler_version(), *_FLAGS, *_LINKING)).encode())
    for file in sorted(_HERE.rglob("*.[ch]")):
        digest.update(f"\0{file.relative_to(_HERE)}\0".encode() + file.read_bytes())
    for path, text in tested.items():
        digest.update(f"\0{path}\0{text}".encode())
    return digest.hexdigest()[:12]


@cache
def _compiler_version() -> str:
    if not shutil.which(CLANG):
        raise BuildError(f"libFuzzer harnesses need {CLANG}: run {workdir.COMMAND} doctor to see what to install")
    return subprocess.run([CLANG, "--version"], capture_output=True, text=True, check=True).stdout


def _compile(build: Build, harness: Path, recipe: Harness, tested: Mapping[str, str]) -> None:
    """Compile each file separately, unless another harness did, and link the objects. Raises BuildError."""
    home = harness.parent
    headers = {path: text for path, text in tested.items() if path.endswith(".h")}
    sources = {f"{_OWN}/{file}": (home / _OWN / file).read_text() for file in recipe.own(tested)}
    sources |= {path: tested[path] for path in recipe.tested if path.endswith(".c")}
    objects = workdir.harnesses() / _OBJECTS
    objects.mkdir(exist_ok=True)

    def compiled(path: str) -> Path:
        included = {each: tested[each] for each in recipe.included if f'#include "{each}"' in sources[path]}
        product = objects / f"{_key(build, {**headers, **included, path: sources[path]})}.o"
        with FileLock(f"{product}.lock"):
            if not product.exists():
                includes = [f"-I{place}" for place in (_HEADERS, ".", *server_headers(build), _OWN)]
                _run(["env", f"--chdir={home}", CLANG, *_FLAGS, *includes, "-c", path], product)
        return product

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = list(pool.map(compiled, sources))
    left_out = _UNUSED_LEFT_OUT if recipe.unused_left_out else ()
    _run([CLANG, *_FLAGS, *map(str, parts), *left_out, *_LINKING], harness)


def _run(command: list[str], product: Path) -> None:
    """Run a compiler that creates `product`. Raises BuildError."""
    done = compile_file(command, product)
    if done.returncode:
        raise BuildError(f"the libFuzzer harness {product.name} does not compile: {first_fault(done.stderr)}")

"""Equality of two builds' programs and libraries, whatever their debug information."""

import filecmp
import tempfile
from pathlib import Path

from fuzz.errors import BuildError, first_line
from fuzz.servers.build import Build
from fuzz.servers.compile import compile_file

_STRIP = ("strip", "--strip-all", "--remove-section=.note.gnu.build-id")


def have_equal_programs(one: Build, other: Build) -> bool:
    """Return whether two builds have the same programs and libraries, and their machine code and data are equal.

    Then no input distinguishes them. The reverse need not hold. Raises BuildError.
    """
    programs = _programs(one)
    return programs == _programs(other) and all(
        _are_equal(one.prefix / program, other.prefix / program) for program in programs
    )


def _programs(build: Build) -> list[Path]:
    found = (*build.prefix.glob("bin/*"), *build.prefix.glob("lib/**/*.so*"))
    return sorted(path.relative_to(build.prefix) for path in found if path.is_file() and not path.is_symlink())


def _are_equal(one: Path, other: Path) -> bool:
    if filecmp.cmp(one, other, shallow=False):
        return True
    with tempfile.TemporaryDirectory(prefix="pgduel-stripped-") as directory:
        Path(directory).chmod(0o755)  # the account of servers enters it
        return _stripped(one, Path(directory, "one")) == _stripped(other, Path(directory, "other"))


def _stripped(program: Path, product: Path) -> bytes:
    """Return a program without debug information, which has columns of the source. Raises BuildError."""
    done = compile_file([*_STRIP, str(program)], product)
    if done.returncode:
        raise BuildError(f"cannot compare {program}: {first_line(done.stderr)}")
    return product.read_bytes()

"""Flavors: ways to compile a tree, with the environment of the programs."""

from dataclasses import dataclass, field

from fuzz.errors import BuildError

DEFAULT_FLAVOR = "assert"
COVERAGE = "coverage"
GUIDED = "guided"
GUIDED_SANITIZE = "guided_sanitize"
_CHECKED = ("-Dbuildtype=debugoptimized", "-Dcassert=true")
PROFILE_FILE = "LLVM_PROFILE_FILE"  # file in which a program counts its coverage
# In the planner and executor, patches fail first where a cache entry goes as soon as it may, memory is never zero by
# chance, and each parse and plan tree is copied, and written and read. Release 18 has settings for the latter.
_BUILDFARM = (
    "-DRELCACHE_FORCE_RELEASE -DCATCACHE_FORCE_RELEASE -DRANDOMIZE_ALLOCATED_MEMORY -DCOPY_PARSE_PLAN_TREES "
    "-DWRITE_READ_PARSE_PLAN_TREES -DRAW_EXPRESSION_COVERAGE_TEST"
)
_SANITIZERS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
_SANITIZED = {
    # PostgreSQL frees little before it exits, so leak reports are useless. A fake stack would break its own check of
    # stack depth. abort_on_error turns a report into a crash, which the postmaster logs.
    "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:print_stacktrace=1:detect_stack_use_after_return=0",
    "UBSAN_OPTIONS": "print_stacktrace=1:abort_on_error=1",
}
_SANITIZED_SPACE = 3 << 30


@dataclass(frozen=True, slots=True)
class Flavor:
    """One way to compile. Its options are added to those of build.py, which all flavors share."""

    name: str
    purpose: str
    options: tuple[str, ...]  # options of meson setup
    compiler_flags: str = ""  # for compiler and linker, of the server and of pgduel's modules
    compiler: str = "gcc"
    environment: dict[str, str] = field(default_factory=dict)  # for each program of the build
    space: int = 1 << 30  # bytes on disk during the compilation
    memory: int | None = 4 << 30  # bytes that a program of the compilation may reserve, or None
    counts_edges: bool = False  # in the files that edges/instrumented.txt lists


FLAVORS = {
    flavor.name: flavor
    for flavor in (
        Flavor(
            "release",
            "optimized as users run it, but without returning freed memory; for benchmarks",
            ("-Dbuildtype=release", "-Doptimization=2"),
            # glibc returns freed memory to the kernel or keeps it, depending on its position: a third of the time of
            # planning a large query may go into page faults in one session, and none in the next. Here it keeps it.
            environment={"MALLOC_TRIM_THRESHOLD_": str(8 << 30), "MALLOC_MMAP_THRESHOLD_": str(32 << 20)},
        ),
        Flavor(DEFAULT_FLAVOR, "optimized, with assertions and symbols; the default for fuzzing", _CHECKED),
        Flavor(
            "sanitize",
            "with assertions, AddressSanitizer and UndefinedBehaviorSanitizer",
            (*_CHECKED, "-Doptimization=1"),
            f"{_SANITIZERS} -fno-var-tracking",
            environment=_SANITIZED,
            space=_SANITIZED_SPACE,
            memory=None,  # AddressSanitizer reserves terabytes of addresses
        ),
        Flavor(
            "buildfarm",
            "with assertions, and the debugging options of some members of the buildfarm",
            _CHECKED,
            _BUILDFARM,
        ),
        Flavor(
            COVERAGE,
            "optimized, without assertions, counting the reached lines and branches (by clang)",
            ("-Dbuildtype=debugoptimized", "-Dcassert=false"),  # an assertion's branches are none of the program's
            # Relocatable counters can be shared by all processes, so a backend need not write them when it exits.
            "-fprofile-instr-generate -fcoverage-mapping -mllvm -runtime-counter-relocation",
            "clang-19",
            {PROFILE_FILE: "/dev/null"},  # a cluster sets a file for its servers; other programs do not count
        ),
        Flavor(
            GUIDED,
            "with assertions, counting edges for libFuzzer (by clang)",
            # A failed assertion is the most direct sign of a bug. An assertion adds an edge or two that libFuzzer
            # sees, but hardly any that only some inputs take.
            _CHECKED,
            compiler="clang-19",
            counts_edges=True,
        ),
        Flavor(
            GUIDED_SANITIZE,
            "with assertions and sanitizers, counting edges for libFuzzer (by clang)",
            # Libraries refer to the sanitizers' runtime, which clang links into programs only.
            (*_CHECKED, "-Doptimization=1", "-Db_lundef=false"),
            f"{_SANITIZERS} -fno-sanitize=function",  # tree walkers are called through pointers of another type
            compiler="clang-19",
            environment=_SANITIZED,
            space=_SANITIZED_SPACE,
            memory=None,
            counts_edges=True,
        ),
    )
}


def flavor_named(name: str) -> Flavor:
    """Return a flavor by its name. Raises BuildError with the existing names."""
    if name not in FLAVORS:
        raise BuildError(f"no flavor is called {name!r}; give one of {', '.join(FLAVORS)}")
    return FLAVORS[name]

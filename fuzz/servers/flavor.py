"""Flavors: how a tree is compiled, and what its programs need in their environment."""

from dataclasses import dataclass, field

from fuzz.errors import BuildError

DEFAULT_FLAVOR = "assert"
_CHECKED = ("-Dbuildtype=debugoptimized", "-Dcassert=true")
PROFILE_FILE = "LLVM_PROFILE_FILE"  # where a program that counts its coverage does so
_SANITIZERS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -fno-var-tracking"


@dataclass(frozen=True, slots=True)
class Flavor:
    """One way to compile. All flavors share the options of build.py; these come on top."""

    name: str
    purpose: str
    options: tuple[str, ...]  # of meson setup
    compiler_flags: str = ""  # for C and for the linker, of the server and of our modules
    compiler: str = "gcc"
    environment: dict[str, str] = field(default_factory=dict)  # of every program of the build
    space: int = 1 << 30  # bytes that a build needs on disk while it is made


FLAVORS = {
    flavor.name: flavor
    for flavor in (
        Flavor(
            "release",
            "optimized as users run it, but keeping freed memory; for benchmarks",
            ("-Dbuildtype=release", "-Doptimization=2"),
            # glibc gives freed memory back to the kernel or keeps it, as it happens to lie: a third of the time of
            # planning a large query may go into page faults in one session, and none in the next. Here it's kept.
            environment={"MALLOC_TRIM_THRESHOLD_": str(8 << 30), "MALLOC_MMAP_THRESHOLD_": str(32 << 20)},
        ),
        Flavor(DEFAULT_FLAVOR, "optimized, with assertions and symbols; the default for fuzzing", _CHECKED),
        Flavor(
            "sanitize",
            "with assertions, AddressSanitizer and UndefinedBehaviorSanitizer",
            (*_CHECKED, "-Doptimization=1"),
            _SANITIZERS,
            environment={
                # PostgreSQL frees little before it exits, so leaks say nothing. A fake stack would upset its own
                # check of stack depth. abort_on_error makes a report a crash, which the postmaster logs.
                "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:print_stacktrace=1:detect_stack_use_after_return=0",
                "UBSAN_OPTIONS": "print_stacktrace=1:abort_on_error=1",
            },
            space=3 << 30,
        ),
        Flavor(
            "coverage",
            "with assertions, counting which lines and branches are reached (by clang)",
            _CHECKED,
            # Counters may be moved, and so shared by all processes: a backend need not write them when it exits.
            "-fprofile-instr-generate -fcoverage-mapping -mllvm -runtime-counter-relocation",
            "clang-19",
            {PROFILE_FILE: "/dev/null"},  # a cluster has its servers count; what others do is of no interest
        ),
    )
}


def flavor_named(name: str) -> Flavor:
    """Return one flavor. Raises BuildError, naming those there are."""
    if name not in FLAVORS:
        raise BuildError(f"no flavor is called {name!r}; give one of {', '.join(FLAVORS)}")
    return FLAVORS[name]

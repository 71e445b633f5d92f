"""Series: ordered patches, and the trees after each of them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from unidiff.errors import UnidiffParseError
from unidiff.patch import PatchSet

from fuzz.errors import SourceError, text_of
from fuzz.servers import git
from fuzz.servers.known_good import made_for
from fuzz.servers.manifest import FILE as MANIFEST
from fuzz.servers.manifest import Manifest, read_manifest
from oracles.model.feature import Feature

SERIES = "series"  # the file that lists the patches of a directory
_FAILED = re.compile(r"error: patch failed: (?P<file>.+):(?P<line>\d+)$", re.MULTILINE)
_DIFF = re.compile(rb"^(?:---$|--- |diff |Index: )", re.MULTILINE)  # end of a patch's message
_LIKE_A_DIFF = re.compile(rb"^(?:---|\+\+\+|@@|diff|Index:)(?=\s|$)", re.MULTILINE)  # what git might apply
_PLAN_NEUTRAL = re.compile(rb"^plan-neutral:\s*yes\s*$", re.IGNORECASE | re.MULTILINE)
_CRLF = b"\r\n"
_HEADER_WITH_CR = re.compile(rb"^\+\+\+ .*\r$", re.MULTILINE)
_NO_DIFF = "No valid patches in input"  # git's words
_CONTEXT = 1  # lines of context that must fit before and after each change, if others have moved
_ERROR = re.compile(r"^(?:error|fatal): (?P<text>.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Patch:
    """One patch, in the form of `git format-patch` or `diff -u` (with one leading directory)."""

    name: str
    content: bytes
    keeps_plans: bool = False  # declared by its series' manifest

    @property
    def plan_neutral(self) -> bool:
        """Return whether equal statistics give equal plans and costs.

        The manifest declares it, or the trailer `Plan-neutral: yes` of the patch's message.
        """
        return self.keeps_plans or self._has_trailer()

    def _has_trailer(self) -> bool:
        message = _DIFF.split(self.content, maxsplit=1)[0]
        parse = ("interpret-trailers", "--parse", "--no-divider")
        trailers = git.output(*parse, stdin=message, failing=f"cannot read the message of {self.name}")
        return _PLAN_NEUTRAL.search(trailers) is not None


@dataclass(frozen=True, slots=True)
class Series:
    """Patches in the order of their application. It may be empty."""

    name: str
    patches: tuple[Patch, ...] = ()
    made_for: str = ""  # the recorded version to which they apply, if any
    features: tuple[Feature, ...] = ()  # from its manifests
    remarks: tuple[str, ...] = ()  # a line for each choice that was made for the user

    def __add__(self, other: "Series") -> "Series":
        features = tuple(dict.fromkeys(self.features + other.features))
        remarks = self.remarks + other.remarks
        return Series(other.name, self.patches + other.patches, self.made_for or other.made_for, features, remarks)

    def described(self, manifest: Manifest) -> "Series":
        """Return the series with the features and the plan-neutral patches of a manifest."""
        patches = (
            replace(patch, keeps_plans=True) if manifest.is_plan_neutral(patch.name) else patch
            for patch in self.patches
        )
        features = dict.fromkeys(self.features + manifest.features)
        return replace(self, patches=tuple(patches), features=tuple(features))

    @property
    def deciding(self) -> int:
        """Return the length of the shortest prefix whose other patches are all plan-neutral. It determines plans."""
        return max((number for number, patch in enumerate(self.patches, 1) if not patch.plan_neutral), default=0)


def series_from_directory(directory: Path) -> Series:
    """Read the patches in the directory's `series` file, one per line, with # for comments. Raises SourceError."""
    listed = text_of(directory / SERIES, SourceError, "correct the list of the patches").splitlines()
    lines = (line.partition("#")[0].strip() for line in listed)
    return series_from_files([directory / line for line in lines if line], name=str(directory))


def series_from_files(files: Sequence[Path], name: str = "files") -> Series:
    """Read patch files in the given order, with the manifests beside them. Raises SourceError."""
    for file in files:
        if not file.is_file():
            raise SourceError(f"there is no patch {file}; correct its path")
    manifests = {directory: _manifest_in(directory) for directory in dict.fromkeys(file.parent for file in files)}
    parts = (_described(Patch(file.name, _content(file)), manifests[file.parent]) for file in files)
    return replace(sum(parts, start=Series(name)), name=name, made_for=made_for(files))


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise SourceError(f"cannot read the patch {file} ({error.strerror}); make it readable") from error


def _described(patch: Patch, manifest: Manifest | None) -> Series:
    series = Series(patch.name, (patch,))
    return series if manifest is None else series.described(manifest)


def _manifest_in(directory: Path) -> Manifest | None:
    """Return the manifest beside patches, if there is one. It may name any file in the directory."""
    path = directory / MANIFEST
    if not path.is_file():
        return None
    manifest = read_manifest(path)
    manifest.require_patches(file.name for file in directory.iterdir() if file.name not in (MANIFEST, SERIES))
    return manifest


def series_from_range(checkout: Path, commits: str) -> Series:
    """Read a git range such as master..topic, one patch per commit, oldest first. Raises SourceError."""
    failing = f"cannot read {commits!r} in {checkout}"
    listed = ("rev-list", "--reverse", "--parents", "--end-of-options", commits, "--")  # --output would write a file
    log = git.output("-C", checkout, *listed, failing=failing)
    patches, remarks = [], []
    for commit, *parents in (line.split() for line in log.decode().splitlines()):
        if len(parents) > 1:
            raise SourceError(f"{commits} contains the merge {commit[:12]}; rebase it to a linear series first")
        patch = _patch_of(checkout, commit)
        if patch.content:
            patches.append(patch)
        else:
            remarks.append(f"left out commit {patch.name}: it changes no file")
    if not patches:
        raise SourceError(f"{commits} has no commit with changes; give A..B, where B has commits that A lacks")
    return Series(commits, tuple(patches), remarks=tuple(remarks))


def _patch_of(checkout: Path, commit: str) -> Patch:
    """Return the patch of a commit, without content if it changes no file.

    Plumbing makes it, which the configuration of the checkout does not affect.
    """
    failing = f"cannot read commit {commit[:12]} in {checkout}"
    form = ("--root", "--no-commit-id", "-p", "--binary", "--full-index", "--no-ext-diff", "--no-textconv")
    changes = git.output("-C", checkout, "diff-tree", *form, commit, failing=failing)
    reported = git.output("-C", checkout, "show", "--no-patch", "--format=%f%n%B", commit, failing=failing)
    name, _, message = reported.partition(b"\n")
    content = b"Subject: " + _LIKE_A_DIFF.sub(rb" \g<0>", message) + b"---\n" + changes if changes else b""
    return Patch(f"{commit[:12]}-{name.decode(errors='replace').strip()}", content)


@dataclass(frozen=True, slots=True)
class Applied:
    """A series applied to a tree: the tree after each prefix (first the base itself), and the patches that moved.

    A moved patch applies only with less context than it has.
    """

    trees: tuple[str, ...]
    moved: tuple[str, ...]


def apply_series(tree: str, series: Series) -> tuple[str, ...]:
    """Return the tree after each prefix of the series: first `tree` itself, last with all patches.

    Raises SourceError with the patch, the file and the hunk that does not apply.
    """
    return applied(tree, series).trees


def applied(tree: str, series: Series) -> Applied:
    """Apply a series. Raises SourceError with the patch, the file and the hunk that does not apply.

    If another version is recorded for the series, one line of context is enough.
    """
    trees, moved = [tree], []
    with git.temporary_index(tree) as index:
        for patch in series.patches:
            probable, *others = _forms(patch)
            error = _apply(index, probable)
            if error and others and not _apply(index, others[0]):
                error = ""
            if error and series.made_for and not _apply(index, probable, f"-C{_CONTEXT}"):
                moved.append(patch.name)
            elif error:
                raise SourceError(_why(patch, error, series.made_for))
            trees.append(git.write_tree(index))
    return Applied(tuple(trees), tuple(moved))


def _forms(patch: Patch) -> list[Patch]:
    """Return the patch as it is and, as `git am`, without carriage returns that mail programs add.

    These add them to all lines. Otherwise only the files have them, so that the patch as it is comes first.
    """
    if _CRLF not in patch.content:
        return [patch]
    forms = [patch, replace(patch, content=patch.content.replace(_CRLF, b"\n"))]
    return forms[::-1] if _HEADER_WITH_CR.search(patch.content) else forms


def _apply(index: Path, patch: Patch, *options: str) -> str:
    """Apply a patch as a whole, or leave the index unchanged; return git's error, or an empty string."""
    done = git.run(
        "--git-dir", git.repository(), "apply", "--cached", "--whitespace=nowarn", *options, "-",
        index=index, stdin=patch.content,
    )  # fmt: skip
    return (done.stderr.decode(errors="replace") or "error: git apply failed") if done.returncode else ""


def _why(patch: Patch, error: str, made_for: str) -> str:
    """Return the reason for a patch that does not apply. git names the line of a hunk; this adds the hunk's number."""
    advice = f"it was made for {made_for}, so rebase it" if made_for else "check that the series was made for this base"
    if _NO_DIFF in error:
        return f"{patch.name} is no patch; give files of git format-patch or diff -u"
    failed = _FAILED.search(error)
    if failed:
        hunk = _hunk_at(patch, failed["file"], int(failed["line"]))
        where = f"{failed['file']}, {hunk} at line {failed['line']}"
        return f"patch {patch.name} does not apply: {where}; {advice}"
    text = _ERROR.search(error)
    return f"patch {patch.name} does not apply: {text['text'] if text else error.strip()}" + (
        f"; {advice}" if made_for else ""
    )


def _hunk_at(patch: Patch, file: str, line: int) -> str:
    try:
        files = PatchSet(patch.content.decode(errors="replace"))
    except UnidiffParseError:
        return "hunk"
    for patched in files:
        if patched.path == file or patched.source_file.removeprefix("a/") == file:
            for number, hunk in enumerate(patched, start=1):
                if hunk.source_start == line:
                    return f"hunk {number} of {len(patched)}"
    return "hunk"

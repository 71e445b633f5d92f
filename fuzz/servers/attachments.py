"""Attachments of mails: patches, compressed patches and archives of patches. Names, contents and sizes are hostile.

A directory of patches without a list of them is read by the same rules. Nothing is written to disk. So no name leads
anywhere, and links in archives are not followed.
"""

import bz2
import gzip
import io
import lzma
import re
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, Final

from fuzz.errors import SourceError, first_line
from fuzz.output import visible_line
from fuzz.servers.series import SERIES, Patch, Series, series_from_files

_LARGEST: Final = 64 << 20  # bytes of all patches of a mail, and of an archive
_MOST: Final = 1000  # patches of a mail
_LONGEST: Final = 120  # characters of a name
_PATCH_TYPES: Final = ("text/x-patch", "text/x-diff")
_PATCH: Final = re.compile(r"[^.].*\.(?:patch|diff)", re.IGNORECASE)  # a leading dot: macOS puts its notes beside files
_COMPRESSED_PATCH: Final = re.compile(rf"(?P<name>{_PATCH.pattern})(?P<suffix>\.(?:gz|bz2|xz))", re.IGNORECASE)
_ARCHIVE: Final = re.compile(r".+(?:\.zip|\.tar|\.tgz|\.tar(?P<suffix>\.(?:gz|bz2|xz)))", re.IGNORECASE)
_VERSION: Final = re.compile(r"v(\d{1,6})[-_.]", re.IGNORECASE)
_LAST_VERSION: Final = re.compile(r"(?P<stem>.+)[-_.]v(?P<version>\d{1,6})\.\w+", re.IGNORECASE)
_COVER_LETTER: Final = re.compile(r"(?:v\d{1,6}-)?0000-.+", re.IGNORECASE)
DIFF: Final = re.compile(rb"^(?:diff --git |--- [^\s-])", re.MULTILINE)
_IGNORED: Final = "nocfbot"
_OPENERS: Final[dict[str, Callable[..., Any]]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
# RuntimeError: an encrypted archive, or an unknown compression.
_DAMAGE: Final = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(EOFError, OSError, RuntimeError, ValueError),
)


@dataclass(frozen=True, slots=True)
class Attachment:
    """A part of a mail, or a file of an archive. `name` is its last component, printable, or empty."""

    name: str
    kind: str  # MIME type
    content: bytes

    @classmethod
    def named(cls, name: str, kind: str, content: bytes) -> "Attachment":
        """Return the attachment without directories and control characters in its name."""
        base = visible_line(re.split(r"[/\\]", name)[-1]).strip()
        if len(base) > _LONGEST:
            stem, dot, suffix = base.rpartition(".")
            base = f"{stem[: _LONGEST - 10]}…{dot}{suffix[:8]}"
        return cls(base, kind, content)

    @property
    def is_patch(self) -> bool:
        """Return whether it is a patch, perhaps a compressed one."""
        by_name = _PATCH.fullmatch(self.name) or _COMPRESSED_PATCH.fullmatch(self.name)
        return by_name is not None or self.kind in _PATCH_TYPES

    @property
    def is_archive(self) -> bool:
        """Return whether it is an archive."""
        return _ARCHIVE.fullmatch(self.name) is not None


@dataclass(slots=True)
class _Reader:
    """A reader of compressed files that stops at a number of bytes in total."""

    left: int = _LARGEST

    def read(self, stream: IO[bytes], name: str) -> bytes:
        """Return a file's content. Raises SourceError if it is too large."""
        content = stream.read(self.left + 1)
        self.left -= len(content)
        if self.left < 0:
            raise SourceError(
                f"the attachment {name} has more than {_LARGEST >> 20} MB; save the patches that you need, "
                "and give them as files"
            )
        return content


def patches_of(attachments: Sequence[Attachment]) -> tuple[tuple[Patch, ...], tuple[str, ...]]:
    """Return the patches in the order of their names, and a line for each choice between attachments.

    The rules are those of cfbot (https://wiki.postgresql.org/wiki/Cfbot; `cfbot_commitfest_rpc.py` of macdice/cfbot):
    archives count only without patches beside them, names with `nocfbot` do not count. In addition, older versions
    (`v2-…` beside `v3-…`, `…-v2.patch` beside `…-v3.patch`) and cover letters do not count. Raises SourceError.
    """
    remarks: list[str] = []
    found = _counted([each for each in attachments if each.is_patch or each.is_archive], remarks)
    plain = [each for each in found if each.is_patch]
    if plain and len(plain) < len(found):
        names = ", ".join(each.name for each in found if not each.is_patch)
        remarks.append(f"left out the archive {names}: there are patches beside it")
    reader = _Reader()
    if not plain:
        files = [member for archive in found for member in _members(archive, reader)]
        plain = _counted(files, remarks)
    read = sorted((_read(each, reader) for each in plain), key=lambda patch: patch.name)
    return _distinct(_newest(_without_letters(read, remarks), remarks)), tuple(remarks)


def number_of(patches: int) -> str:
    """Return a number of patches in words."""
    return "1 patch" if patches == 1 else f"{patches} patches"


def series_from_saved(directory: Path) -> Series:
    """Return the patches in a directory without a file `series`, with its manifest. Raises SourceError."""
    try:
        files = sorted(file for file in directory.iterdir() if _PATCH.fullmatch(file.name) and file.is_file())
    except OSError as error:
        raise SourceError(f"cannot read the directory {directory} ({error.strerror}); make it readable") from error
    if not files:
        raise SourceError(f"{directory} has neither patches nor a file `{SERIES}`; give a directory that has")
    series = series_from_files(files, name=str(directory))
    chosen, remarks = patches_of([Attachment(each.name, "", each.content) for each in series.patches])
    names = [patch.name for patch in chosen]
    order = f"{number_of(len(names))} in the order of their names, because there is no file `{SERIES}`"
    return replace(
        series,
        patches=tuple(patch for patch in series.patches if patch.name in names),
        remarks=tuple(visible_line(f"{directory}: {line}") for line in (order, *remarks)),
    )


def _counted(attachments: Sequence[Attachment], remarks: list[str]) -> list[Attachment]:
    """Return the attachments that cfbot applies, too."""
    ignored = [each.name for each in attachments if _IGNORED in each.name.lower()]
    if ignored:
        remarks.append(f"left out {', '.join(ignored)}: cfbot ignores such names")
    return [each for each in attachments if each.name not in ignored]


def _without_letters(patches: list[Patch], remarks: list[str]) -> list[Patch]:
    """Return the patches without the cover letters of `git format-patch`. Some patches have the number 0, too."""
    letters = [each.name for each in patches if _COVER_LETTER.fullmatch(each.name) and not DIFF.search(each.content)]
    if letters:
        remarks.append(f"left out the cover letter {', '.join(letters)}")
    return [each for each in patches if each.name not in letters]


def _newest(patches: list[Patch], remarks: list[str]) -> list[Patch]:
    """Return the patches of the highest version, and those without one."""
    patches = _last_versions(patches, remarks)
    versions = {patch.name: int(found[1]) for patch in patches if (found := _VERSION.match(patch.name))}
    if len(set(versions.values())) < 2:
        return patches
    newest = max(versions.values())
    others = ", ".join(f"v{each}" for each in sorted(set(versions.values()) - {newest}))
    remarks.append(f"left out the patches of {others}: there are patches of v{newest}")
    return [patch for patch in patches if versions.get(patch.name, newest) == newest]


def _last_versions(patches: list[Patch], remarks: list[str]) -> list[Patch]:
    """Return the patches without those that a higher version at the end of an otherwise equal name replaces."""
    versions = {patch.name: found for patch in patches if (found := _LAST_VERSION.fullmatch(patch.name))}
    highest: dict[str, int] = {}
    for found in versions.values():
        highest[found["stem"]] = max(highest.get(found["stem"], 0), int(found["version"]))
    older = [name for name, found in versions.items() if int(found["version"]) < highest[found["stem"]]]
    if older:
        remarks.append(f"left out {', '.join(older)}: there are higher versions")
    return [patch for patch in patches if patch.name not in older]


def _distinct(patches: Sequence[Patch]) -> tuple[Patch, ...]:
    """Return the patches, each once. Raises SourceError if there are two of one name, or too many."""
    distinct = tuple(dict.fromkeys(patches))
    names = [patch.name for patch in distinct]
    if len(names) > _MOST:
        raise SourceError(f"{len(names)} patches are too many; give those that you need as files")
    if again := next((name for name in names if names.count(name) > 1), None):
        raise SourceError(f"a mail has two patches {again}; save them under different names, and give them as files")
    return distinct


def _read(attachment: Attachment, reader: _Reader) -> Patch:
    compressed = _COMPRESSED_PATCH.fullmatch(attachment.name)
    if compressed is None:
        return Patch(attachment.name, reader.read(io.BytesIO(attachment.content), attachment.name))
    return Patch(compressed["name"], _unpacked(attachment, compressed["suffix"], reader))


def _unpacked(attachment: Attachment, suffix: str, reader: _Reader) -> bytes:
    try:
        with _OPENERS[suffix.lower()](io.BytesIO(attachment.content), "rb") as stream:
            return reader.read(stream, attachment.name)
    except _DAMAGE as error:
        raise _damaged(attachment, error) from error


def _members(archive: Attachment, reader: _Reader) -> Iterator[Attachment]:
    """Yield the patches of an archive. Raises SourceError."""
    unpack = _of_zip if archive.name.lower().endswith(".zip") else _of_tar
    try:
        for name, stream in unpack(archive):
            member = Attachment.named(name, "", b"")
            if member.is_patch:
                yield Attachment(member.name, "", reader.read(stream, archive.name))
    except _DAMAGE as error:
        raise _damaged(archive, error) from error


def _of_zip(archive: Attachment) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(io.BytesIO(archive.content)) as files:
        for info in files.infolist():
            if not info.is_dir() and Attachment.named(info.filename, "", b"").is_patch:
                with files.open(info) as stream:
                    yield info.filename, stream


def _of_tar(archive: Attachment) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the regular files. The archive is unpacked as a whole, up to a limit, because reading on unpacks, too."""
    found = _ARCHIVE.fullmatch(archive.name)
    suffix = ".gz" if archive.name.lower().endswith(".tgz") else found["suffix"] if found else None
    content = archive.content if suffix is None else _unpacked(archive, suffix, _Reader())
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as files:
        for info in files:
            stream = files.extractfile(info) if info.isreg() else None
            if stream is not None:
                yield info.name, stream


def _damaged(attachment: Attachment, error: Exception) -> SourceError:
    reason = visible_line(first_line(str(error), type(error).__name__))
    return SourceError(f"cannot unpack the attachment {attachment.name} ({reason}); give its patches as files")

"""Mails as a series: the patches of the newest mail of a thread that has any, attached or inline.

A thread is a mailbox (mbox, maildir) or a single mail. Inline patches are mails of `git send-email`. All that mails
contain is hostile.
"""

import email.parser
import email.policy
import mailbox
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final

from fuzz.errors import SourceError
from fuzz.output import visible_line
from fuzz.servers.attachments import DIFF, Attachment, number_of, patches_of
from fuzz.servers.series import SERIES, Patch, Series

_LARGEST: Final = 512 << 20  # bytes of a mailbox
_HEAD: Final = 1 << 16  # bytes of a file that show whether it is a mail
_MAIL_SUFFIXES: Final = (".eml", ".mbox")
_PATCH_SUFFIXES: Final = (".patch", ".diff")
_MESSAGE_ID: Final = re.compile(rb"^message-id:", re.IGNORECASE | re.MULTILINE)
_BY_GIT: Final = re.compile(rb"From [0-9a-f]{40} Mon Sep 17 00:00:00 2001$", re.MULTILINE)  # begins each of its patches
_WITH_TIME: Final = re.compile(rb"From .*\b\d{1,2}:\d{2}\b")  # as the lines that begin the mails of an mbox
_WITH_HEADER: Final = re.compile(rb"From .*\n[!-9;-~]+:")
_INLINE: Final = re.compile(r"(?:\s*\[[^\]]*\])*?\s*\[(?P<tags>[^\]]*\bPATCH(?:v\d+)?\b[^\]]*)\]\s*(?P<title>.*)")
_NUMBER: Final = re.compile(r"\b(\d{1,4})/(\d{1,4})\b")
_VERSION: Final = re.compile(r"(?:\b|PATCH)v(\d{1,4})\b")
_REFERENCE: Final = re.compile(r"<[^<>\s]+>")
_BOUNDARY: Final = re.compile(rb"""boundary="?([^"\s;]+)""", re.IGNORECASE)
_LONGEST: Final = 2000  # characters of a header
_MOST_MULTIPARTS: Final = 100  # in a mail
_TITLE: Final = 52  # characters of a patch's name, as in `git format-patch`
_NEVER: Final = datetime.min.replace(tzinfo=UTC)
_PARSER: Final = email.parser.BytesParser(policy=email.policy.default)


@dataclass(frozen=True, slots=True)
class _Mail:
    """A mail whose body is not parsed yet. `thread` is the first mail that it refers to, or itself."""

    raw: bytes
    sent: datetime
    identifier: str
    subject: str
    thread: str

    def __str__(self) -> str:
        return f"the mail {self.identifier or self.subject or 'without subject'}" + (
            "" if self.sent == _NEVER else f" of {self.sent:%Y-%m-%d}"
        )


@dataclass(frozen=True, slots=True)
class _Place:
    """The place of an inline patch: its series, as a key, and its number there."""

    series: tuple[str, int, int]  # thread, version, number of patches
    number: int
    title: str

    @property
    def name(self) -> str:
        """Return the file name that `git format-patch` gives to the patch."""
        version = f"v{self.series[1]}-" if self.series[1] > 1 else ""
        title = re.sub(r"[^A-Za-z0-9._]+", "-", self.title)[:_TITLE].strip("-.")
        return f"{version}{self.number:04}-{title}.patch"


def is_mail(path: Path) -> bool:
    """Return whether a path is a mail or a mailbox.

    Files with other suffixes than .eml, .mbox, .patch and .diff are if their headers have a Message-ID.
    """
    if path.is_dir():
        return all((path / part).is_dir() for part in ("cur", "new")) and not (path / SERIES).exists()
    if not path.is_file() or path.suffix.lower() in _PATCH_SUFFIXES:
        return False
    if path.suffix.lower() in _MAIL_SUFFIXES:
        return True
    with _reading(path), open(path, "rb") as file:
        headers = file.read(_HEAD).replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    return _MESSAGE_ID.search(headers) is not None and not _BY_GIT.match(headers)


def series_from_mails(path: Path, name: str) -> Series:
    """Return the patches of the newest mail that has any. Raises SourceError."""
    mails = sorted((_mail(raw) for raw in _raw_mails(path)), key=lambda mail: mail.sent)
    choices: list[str] = []
    for mail in reversed(mails):
        if patches := _series_of(mail, mails, path, choices):
            lines = dict.fromkeys((f"{number_of(len(patches))} of {mail}", *choices))
            return Series(name, patches, remarks=tuple(visible_line(f"{path}: {line}") for line in lines))
    raise SourceError(
        f"no mail in {path} has a patch; give mails with attached .patch or .diff files or with inline patches of "
        "git send-email, or the patches themselves"
    )


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Wrap code that reads a path. Raises SourceError."""
    try:
        yield
    except OSError as error:
        raise SourceError(f"cannot read {path} ({error.strerror}); give a mailbox that pgduel may read") from error


def _raw_mails(path: Path) -> Iterator[bytes]:
    """Yield the mails of a mailbox, or the only one, with LF at the ends of lines. Raises SourceError."""
    with _reading(path):
        if path.is_dir():
            maildir = mailbox.Maildir(path, create=False)
            yield from (maildir.get_bytes(key) for key in sorted(maildir.keys()))
            return
        if path.stat().st_size > _LARGEST:
            raise SourceError(f"{path} has more than {_LARGEST >> 20} MB; give a mailbox of one thread")
        with open(path, "rb") as file:
            is_box = file.read(5) == b"From "
        if is_box:
            yield from _in_box(path)
        else:
            yield path.read_bytes().replace(b"\r\n", b"\n")


def _in_box(path: Path) -> Iterator[bytes]:
    """Yield the mails of an mbox.

    Many programs do not escape `From ` at the beginning of a line. Such a line continues the mail before it if it has
    no time; within an open multipart, also if it begins a patch of git; outside, not before a header.
    """
    parts: list[bytes] = []  # of a mail
    end = b""  # of its outermost multipart, while that is open
    with closing(mailbox.mbox(path, create=False)) as box:
        for key in box.iterkeys():
            raw = box.get_bytes(key, from_=True).replace(b"\r\n", b"\n")
            if parts and _continues(raw, in_multipart=bool(end)):
                parts.append(raw)
            else:
                yield b"".join(parts).partition(b"\n")[2]
                parts, end = [raw], _end_of_multipart(raw)
            end = b"" if end in raw else end
    yield b"".join(parts).partition(b"\n")[2]


def _continues(raw: bytes, *, in_multipart: bool) -> bool:
    """Return whether a text after a line that begins with `From ` is part of the mail before it."""
    if in_multipart:
        return _BY_GIT.match(raw) is not None or not _WITH_TIME.match(raw)
    return not (_WITH_TIME.match(raw) or _WITH_HEADER.match(raw))


def _end_of_multipart(raw: bytes) -> bytes:
    """Return the line that ends a mail's outermost multipart, or b""."""
    boundary = _BOUNDARY.search(raw.partition(b"\n\n")[0])
    return b"" if boundary is None else b"\n--" + boundary[1] + b"--"


def _mail(raw: bytes) -> _Mail:
    headers = _PARSER.parsebytes(raw.partition(b"\n\n")[0], headersonly=True)
    identifier = _header(headers, "Message-ID")
    references = _header(headers, "References") or _header(headers, "In-Reply-To") or identifier
    thread = _REFERENCE.search(references)
    subject = _header(headers, "Subject")
    return _Mail(raw, _sent(_header(headers, "Date")), identifier, subject, thread[0] if thread else "")


def _header(headers: EmailMessage, name: str) -> str:
    """Return a header as one line, or an empty text. The parser raises errors of any class for hostile headers."""
    try:
        return visible_line(str(headers.get(name, ""))).strip()[:_LONGEST]
    except Exception:
        return ""


def _sent(date: str) -> datetime:
    """Return the time of the header Date, or the earliest possible one."""
    try:
        sent = parsedate_to_datetime(date)
        return (sent if sent.tzinfo else sent.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, OverflowError, IndexError):
        return _NEVER


def _parts(raw: bytes) -> list[Attachment]:
    """Return the leaves of a mail's MIME tree. Raises ValueError for a mail with very many levels."""
    if len(_BOUNDARY.findall(raw)) > _MOST_MULTIPARTS:
        raise ValueError("the time to parse it would grow with the square of its levels")
    leaves = [part for part in _PARSER.parsebytes(raw).walk() if not part.is_multipart()]
    return [_part(number, leaf) for number, leaf in enumerate(leaves, 1)]


def _part(number: int, leaf: EmailMessage) -> Attachment:
    content = leaf.get_payload(decode=True)
    kind = leaf.get_content_type()
    made = Attachment.named(leaf.get_filename() or "", kind, content if isinstance(content, bytes) else b"")
    return replace(made, name=f"part-{number}.patch") if made.is_patch and not made.name else made


def _series_of(mail: _Mail, mails: Sequence[_Mail], path: Path, choices: list[str]) -> tuple[Patch, ...]:
    """Return the patches of a mail, or of the numbered mails to which it belongs, in the order of their numbers.

    The newest of the mails with one number counts. Raises SourceError if a number is missing.
    """
    own = _patches(mail, path, choices)
    place = _place(mail)
    if not own or place is None:
        return own
    patches: dict[int, tuple[Patch, ...]] = {}
    for other in mails:
        there = _place(other)
        if there and there.series == place.series and (found := _patches(other, path, choices)):
            patches[there.number] = found
    _, _, total = place.series
    if missing := [number for number in range(1, total + 1) if number not in patches]:
        raise SourceError(
            f"{path} has {mail.subject!r}, but no patch {missing[0]}/{total}; add its mail to the mailbox"
        )
    return tuple(patch for number in sorted(patches) for patch in patches[number])


def _patches(mail: _Mail, path: Path, choices: list[str]) -> tuple[Patch, ...]:
    """Return the patches attached to a mail, or else the one in its body. Raises SourceError."""
    try:
        parts = _parts(mail.raw)
    except Exception:  # the parser raises errors of any class for hostile mails
        choices.append(f"left out {mail}: its parts cannot be read")
        return ()
    try:
        attached, more = patches_of(parts)
    except SourceError as error:
        raise SourceError(f"{path}: {mail}: {error}") from error
    choices += more
    return attached or _inline(mail, parts)


def _place(mail: _Mail) -> _Place | None:
    """Return the place of an inline patch: `[PATCH v3 2/5]` in the subject. Cover letters and answers have none."""
    found = _INLINE.match(mail.subject)
    if found is None:
        return None
    number = _NUMBER.search(found["tags"])
    version = _VERSION.search(found["tags"])
    first, total = (int(number[1]), int(number[2])) if number else (1, 1)
    series = (mail.thread, int(version[1]) if version else 1, total)
    return _Place(series, first, found["title"]) if 1 <= first <= total else None


def _inline(mail: _Mail, parts: Sequence[Attachment]) -> tuple[Patch, ...]:
    """Return the patch in the body of a mail of `git send-email`, or ()."""
    place = _place(mail)
    body = next((part.content for part in parts if part.kind == "text/plain" and not part.name), b"")
    if place is None or not DIFF.search(body):
        return ()
    subject = f"Subject: {mail.subject}\n\n".encode(errors="replace")
    return (Patch(place.name, subject + body),)

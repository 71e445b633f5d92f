"""Tests of mails as a series: which mail and which of its patches count, and mails that try to do harm."""

import bz2
import gzip
import io
import mailbox
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable, Mapping
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from fuzz.errors import SourceError
from fuzz.servers import git
from fuzz.servers.arm import ArmSpec, parse_series, remarks
from fuzz.servers.arm_options import ArmOptions
from fuzz.servers.base import Base
from fuzz.servers.flavor import FLAVORS
from fuzz.servers.mails import is_mail, series_from_mails
from fuzz.servers.series import apply_series
from tests.servers import sources

BASE = Base("pg17", "17.11", "", "0" * 40)
DIFF = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
MEGABYTE = 1 << 20
_ENTRY = b"PK\x01\x02\x14\x03\x14\x00\x00"  # of a zip file's directory; the last byte has the flag of encryption


def _mail(day: int, **attachments: bytes) -> EmailMessage:
    """Return an answer in a thread. In names of attachments, `__` stands for a dot, and `_` for a minus."""
    return _with({name.replace("__", ".").replace("_", "-"): content for name, content in attachments.items()}, day)


def _with(attachments: Mapping[str, bytes], day: int = 1) -> EmailMessage:
    mail = EmailMessage()
    mail["From"] = "Dev <dev@example.org>"
    mail["Subject"] = "Re: Make it fast"
    mail["Date"] = f"Mon, {day:02} Jun 2026 10:00:00 +0200"
    mail["Message-ID"] = f"<mail-{day}@example.org>"
    mail["References"] = "<root@example.org>"
    mail.set_content("Hi,\n\nhere it is.\n")
    for name, content in attachments.items():
        mail.add_attachment(content, "application", "octet-stream", filename=name)
    return mail


def _box(path: Path, *mails: EmailMessage) -> Path:
    box = mailbox.mbox(path)
    for mail in mails:
        box.add(mail)
    box.close()
    return path


def _read(path: Path) -> tuple[list[str], tuple[str, ...]]:
    """Return the names of the patches, and the remarks without the path."""
    series = series_from_mails(path, "x")
    return [patch.name for patch in series.patches], tuple(each.removeprefix(f"{path}: ") for each in series.remarks)


def _one(tmp_path: Path, mail: EmailMessage) -> tuple[list[str], tuple[str, ...]]:
    path = tmp_path / "one.eml"
    path.write_bytes(mail.as_bytes())
    return _read(path)


def _tar(files: Mapping[str, bytes], mode: str = "w:gz") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]  # any mode
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def _zip(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _name_only(argument: str | bytes | Callable[[], bytes]) -> str:
    """Return the part of a test's name: archives contain the time, which differs between the processes of a run."""
    return argument if isinstance(argument, str) else ""


# Which mail, and which patches


def test_the_newest_mail_with_patches_counts_whatever_its_place_in_the_mailbox(tmp_path: Path) -> None:
    box = _box(
        tmp_path / "thread.mbox",
        _mail(9, v2_0002_b__patch=b"new 2", v2_0001_a__patch=b"new 1"),
        _mail(3, v1_0001_a__patch=b"old"),
        _mail(12, plan__txt=b"QUERY PLAN"),
    )
    names, said = _read(box)
    assert names == ["v2-0001-a.patch", "v2-0002-b.patch"]
    assert said == ("2 patches of the mail <mail-9@example.org> of 2026-06-09",)
    assert [patch.content for patch in series_from_mails(box, "x").patches] == [b"new 1", b"new 2"]


def test_the_newest_of_two_versions_in_one_mail_counts_and_a_remark_names_the_other(tmp_path: Path) -> None:
    mail = _mail(1, v9_0001_a__patch=b"9", v10_0001_a__patch=b"10", v10_0002_b__diff=b"10", test__diff=b"t")
    names, (_, said) = _one(tmp_path, mail)
    assert names == ["test.diff", "v10-0001-a.patch", "v10-0002-b.diff"]
    assert said == "left out the patches of v9: there are patches of v10"


def test_names_that_cfbot_ignores_do_not_count_and_a_remark_names_them(tmp_path: Path) -> None:
    mail = _with({"v3-0001-a.patch": b"a", "nocfbot-0002-b.patch": b"b", "v2.NOCFBOT.diff": b"c"})
    names, (_, said) = _one(tmp_path, mail)
    assert names == ["v3-0001-a.patch"]
    assert said == "left out nocfbot-0002-b.patch, v2.NOCFBOT.diff: cfbot ignores such names"


def test_a_mail_of_ignored_patches_only_leaves_the_one_before(tmp_path: Path) -> None:
    box = _box(tmp_path / "x.mbox", _mail(1, a__patch=b"a"), _mail(2, nocfbot_b__patch=b"b"))
    assert _read(box)[0] == ["a.patch"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.patch.gz", gzip.compress(b"a")),
        ("a.patch.bz2", bz2.compress(b"a")),
        ("patches.tgz", _tar({"v1/README": b"", "v1/a.patch": b"a", "v1/._a.patch": b"notes of macOS"})),
        ("patches.tar.bz2", _tar({"a.patch": b"a"}, "w:bz2")),
        ("patches.tar.xz", _tar({"a.patch": b"a"}, "w:xz")),
        ("patches.tar", _tar({"a.patch": b"a"}, "w")),
        ("patches.zip", _zip({"v1/": b"", "v1/a.patch": b"a", "v1/README": b""})),
    ],
    ids=_name_only,
)
def test_compressed_patches_and_archives(tmp_path: Path, name: str, content: bytes) -> None:
    path = _box(tmp_path / "x.mbox", _with({name: content}))
    (patch,) = series_from_mails(path, "x").patches
    assert (patch.name, patch.content) == ("a.patch", b"a")


def test_an_archive_beside_patches_is_left_out(tmp_path: Path) -> None:
    names, (_, said) = _one(tmp_path, _with({"results.tgz": _tar({"b.patch": b"b"}), "a.patch": b"a"}))
    assert names == ["a.patch"]
    assert said == "left out the archive results.tgz: there are patches beside it"


def test_an_archive_without_patches_leaves_the_mail_before(tmp_path: Path) -> None:
    box = _box(tmp_path / "x.mbox", _mail(1, a__patch=b"a"), _mail(2, results__tgz=_tar({"times.csv": b"1"})))
    assert _read(box)[0] == ["a.patch"]


def test_a_text_of_the_type_patch_needs_no_suffix(tmp_path: Path) -> None:
    mail = _mail(1)
    mail.add_attachment("1\n", subtype="x-patch", filename="make-it-fast.txt")
    mail.add_attachment("2\n", subtype="x-diff")
    mail.add_attachment("3\n", subtype="plain", filename="notes.txt")
    assert _one(tmp_path, mail)[0] == ["make-it-fast.txt", "part-3.patch"]


def test_a_patch_attached_twice_counts_once(tmp_path: Path) -> None:
    mail = _mail(1, a__patch=b"a")
    mail.add_attachment(b"a", "application", "octet-stream", filename="a.patch")
    assert _one(tmp_path, mail)[0] == ["a.patch"]


def test_two_patches_of_one_name_are_refused(tmp_path: Path) -> None:
    mail = _mail(1, a__patch=b"a")
    mail.add_attachment(b"b", "application", "octet-stream", filename="other/a.patch")
    with pytest.raises(SourceError, match=r"two patches a\.patch; save them under different names"):
        _one(tmp_path, mail)


def test_versions_at_the_end_of_equal_names(tmp_path: Path) -> None:
    mail = _mail(1, fast_v1__patch=b"a", fast_v2__patch=b"b", slow_v1__patch=b"c")
    assert _one(tmp_path, mail) == (
        ["fast-v2.patch", "slow-v1.patch"],
        (
            "2 patches of the mail <mail-1@example.org> of 2026-06-01",
            "left out fast-v1.patch: there are higher versions",
        ),
    )


def test_a_cover_letter_is_no_patch(tmp_path: Path) -> None:
    mail = _mail(1, v2_0000_cover_letter__patch=b"Hello\n", v2_0001_a__patch=DIFF)
    names, remarks = _one(tmp_path, mail)
    assert names == ["v2-0001-a.patch"]
    assert remarks[1:] == ("left out the cover letter v2-0000-cover-letter.patch",)
    assert _one(tmp_path, _mail(1, v2_0000_a__patch=DIFF))[0] == ["v2-0000-a.patch"]


def test_a_directory_of_patches_is_read_like_a_mail(tmp_path: Path) -> None:
    directory = tmp_path / "saved"
    directory.mkdir()
    with pytest.raises(SourceError, match=r"saved has neither patches nor a file `series`"):
        parse_series(str(directory), BASE)
    for name in ("v2-0002-b.patch", "v2-0001-a.patch", "v1-0001-a.patch", "v2-0000-cover.patch"):
        (directory / name).write_bytes(b"Hello\n" if "cover" in name else DIFF)
    (directory / "manifest.toml").write_text('plan_neutral = ["v2-0002-b.patch"]\n')
    (directory / "notes.txt").write_text("no patch")
    series = parse_series(str(directory), BASE)
    assert [(patch.name, patch.plan_neutral) for patch in series.patches] == [
        ("v2-0001-a.patch", False),
        ("v2-0002-b.patch", True),
    ]
    assert [each.removeprefix(f"{directory}: ") for each in series.remarks] == [
        "2 patches in the order of their names, because there is no file `series`",
        "left out the cover letter v2-0000-cover.patch",
        "left out the patches of v1: there are patches of v2",
    ]


def test_a_mail_of_a_single_file_with_crlf(tmp_path: Path) -> None:
    """Mail clients save mails so. Quoted-printable and 7bit content gets LF; base64 content is as it was sent."""
    text = (
        b"From: Tom <tom@example.org>\nMessage-ID: <1@example.org>\nMIME-Version: 1.0\n"
        b'Content-Type: multipart/mixed; boundary="----- =_aa0"\n\n------- =_aa0\nContent-Type: text/plain\n\nHi.\n\n'
        b'------- =_aa0\nContent-Type: text/x-diff; name="fix=file.patch"; charset="us-ascii"\n'
        b"Content-Disposition: attachment\nContent-Transfer-Encoding: quoted-printable\n\n"
        b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a =3D=\n 1\n+b\n\n------- =_aa0--\n"
    )
    (tmp_path / "one.eml").write_bytes(text.replace(b"\n", b"\r\n"))
    (patch,) = series_from_mails(tmp_path / "one.eml", "x").patches
    assert patch.content == DIFF.replace(b"-a\n", b"-a = 1\n")


def test_a_maildir_and_a_file_of_it(tmp_path: Path) -> None:
    directory = mailbox.Maildir(tmp_path / "thread")
    directory.add(_mail(1, v1_0001_a__patch=b"old"))
    directory.add(_mail(2, v2_0001_a__patch=b"new"))
    assert is_mail(tmp_path / "thread")
    assert _read(tmp_path / "thread")[0] == ["v2-0001-a.patch"]
    one = tmp_path / "thread" / "cur" / "1780000000.M1P2.host:2,S"
    one.write_bytes(_mail(3, v3_0001_a__patch=b"one").as_bytes())
    (tmp_path / "b.patch").write_bytes(b"b")
    series = parse_series(f"{one},{tmp_path}/b.patch", BASE)
    assert [patch.name for patch in series.patches] == ["v3-0001-a.patch", "b.patch"]


def test_paths_with_commas_are_valid_after_a_change_of_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "1.host:2,S").touch()
    monkeypatch.chdir(tmp_path)
    options: dict[str, Any] = {"base": None, "repo": None, "commits": None, "flavor": "assert"}
    assert ArmOptions.given(series=["1.host:2,S"], arms=(), **options).series == (f"{tmp_path}/1.host:2,S",)
    (arm,) = ArmOptions.given(series=(), arms=["x=master,1.host:2,S"], **options).arms
    assert arm == f"x=master,{tmp_path}/1.host:2,S"


@pytest.mark.parametrize(
    ("name", "content", "mail"),
    [
        ("thread.mbox", b"", True),
        ("one.eml", b"", True),
        ("1780000000.M1P2.host:2,S", b"Received: x\nMessage-Id: <1@x>\n\nHi\n", True),
        ("raw", b"From x@y Mon Jun  1 10:00:00 2026\nMessage-ID: <1@x>\r\n\r\nHi\r\n", True),
        ("a.patch", b"From x\nMessage-ID: <1@x>\n\n", False),
        ("0001-a", b"From " + b"0" * 40 + b" Mon Sep 17 00:00:00 2001\nMessage-ID: <1@x>\n\n", False),
        ("README", b"hello\n\nMessage-ID: <1@x>\n", False),
    ],
)
def test_a_file_is_a_mail_by_its_suffix_or_its_headers(tmp_path: Path, name: str, content: bytes, mail: bool) -> None:  # noqa: FBT001
    (tmp_path / name).write_bytes(content)
    assert is_mail(tmp_path / name) is mail


def test_a_mail_is_a_part_of_an_arm_and_its_remarks_are_those_of_the_arm(tmp_path: Path) -> None:
    box = _box(tmp_path / "x.mbox", _mail(1, v2_0001_a__patch=b"a"))
    (tmp_path / "b.patch").write_bytes(b"b")
    series = parse_series(f"{tmp_path}/b.patch,{box}", BASE)
    assert [patch.name for patch in series.patches] == ["b.patch", "v2-0001-a.patch"]
    spec = ArmSpec("x", BASE, series, FLAVORS["assert"])
    assert remarks([spec, spec]) == (f"{box}: 1 patch of the mail <mail-1@example.org> of 2026-06-01",)


def test_the_error_about_mails_without_patches_tells_what_counts(tmp_path: Path) -> None:
    box = _box(tmp_path / "x.mbox", _mail(1), _mail(2, plan__txt=b"x"))
    with pytest.raises(SourceError, match=r"^no mail in .*x\.mbox has a patch; give mails with attached \.patch"):
        _read(box)


def test_an_unescaped_from_line_in_a_text_does_not_end_the_mail(tmp_path: Path) -> None:
    earlier, later = (
        _mail(day, **{f"v{day}_0001__patch": DIFF}).as_bytes().replace(b"here it is.", text)
        for day, text in ((1, b"here it is."), (2, b"From what I see, it is fine."))
    )
    box = b"".join(b"From x@example.org Mon Jun  1 10:00:00 2026\n" + mail + b"\n" for mail in (later, earlier))
    (tmp_path / "x.mbox").write_bytes(box)
    assert _read(tmp_path / "x.mbox") == (
        ["v2-0001.patch"],
        ("1 patch of the mail <mail-2@example.org> of 2026-06-02",),
    )


# Mails of git


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with the commits of a series of two patches."""
    monkeypatch.setenv("PGDUEL_HOME", str(tmp_path / "home"))
    checkout = sources.plant(tmp_path / "checkout")
    sources.git(checkout, "init", "--quiet", "--initial-branch=topic")
    sources.commit(checkout, "base")
    sources.git(checkout, "tag", "base")
    (checkout / "src" / "long.c").write_text(sources.LINES.replace("line 3\n", "third\n"))
    sources.commit(checkout, "Change one place: the third\n\nBecause it is better.\n\nPlan-neutral: yes")
    (checkout / "src" / "long.c").write_text(sources.LINES.replace("line 3\n", "third\nÄ\n"))
    sources.commit(checkout, "Änder another place")
    return checkout


@pytest.mark.parametrize("options", [(), ("--thread",), ("--attach",), ("--inline",), ("--cover-letter", "--thread")])
def test_patches_of_git_give_the_trees_of_its_commits(checkout: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    box = tmp_path / "x.mbox"
    box.write_text(sources.git(checkout, "format-patch", "--stdout", "-v3", *options, "base..topic") + "\n")
    series = series_from_mails(box, "x")
    assert [patch.name for patch in series.patches] == [
        "v3-0001-Change-one-place-the-third.patch",
        "v3-0002-nder-another-place.patch",
    ]
    trees = apply_series(git.import_revision(checkout, "base"), series)
    assert trees[1:] == (git.import_revision(checkout, "topic~1"), git.import_revision(checkout, "topic"))


def test_the_message_of_an_inline_patch_is_kept(checkout: Path, tmp_path: Path) -> None:
    box = tmp_path / "x.mbox"
    box.write_text(sources.git(checkout, "format-patch", "--stdout", "base..topic") + "\n")
    assert [patch.plan_neutral for patch in series_from_mails(box, "x").patches] == [True, False]


def test_an_unescaped_from_line_in_an_attachment_does_not_end_the_mail(checkout: Path, tmp_path: Path) -> None:
    sources.git(checkout, "format-patch", "-v2", "--output-directory", str(tmp_path / "out"), "base..topic")
    parts = ""
    for file in sorted((tmp_path / "out").iterdir()):
        parts += f"--=-=\nContent-Type: text/x-patch; name={file.name}\n\n{file.read_text()}\n"
    headers = (
        'Subject: Patches\nMessage-ID: <1@x>\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="=-="\n\n'
    )
    mail = f"From x@example.org Mon Jun  1 10:00:00 2026\n{headers}{parts}--=-=--\n\n"
    (tmp_path / "x.mbox").write_text(
        mail + mail.replace("v2-", "v1-").replace("\nSubject", "\nDate: 1 Jan 2001\nSubject")
    )
    series = series_from_mails(tmp_path / "x.mbox", "x")
    assert [patch.name[:8] for patch in series.patches] == ["v1-0001-", "v1-0002-"]
    trees = apply_series(git.import_revision(checkout, "base"), series)
    assert trees[-1] == git.import_revision(checkout, "topic")


def _inline(day: int, subject: str, body: bytes = DIFF, answers: str = "") -> EmailMessage:
    mail = _mail(day)
    del mail["Subject"], mail["References"]
    mail["Subject"] = subject
    if answers:
        mail["In-Reply-To"] = answers
    mail.set_content(body.decode())
    return mail


def test_inline_patches_are_those_of_one_version_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    first = "<mail-1@example.org>"
    box = _box(
        tmp_path / "x.mbox",
        _inline(1, "[PATCH 1/2] One"),
        _inline(2, "[PATCH 2/2] Two", answers=first),
        _inline(3, "[PATCH v2 0/2] Better", b"Cover.\n", answers=first),
        _inline(5, "[PATCH v2 2/2] Two", answers=first),
        _inline(4, "[PATCH v2 1/2] One", answers=first),
        _inline(6, "[PATCH v2 1/2] One (sent again)", answers=first),
        _inline(7, "Re: [PATCH v2 1/2] One", answers=first),
        _inline(4, "[PATCH v2 2/2] Of another thread"),
    )
    names, (said,) = _read(box)
    assert names == ["v2-0001-One-sent-again.patch", "v2-0002-Two.patch"]
    assert said == "2 patches of the mail <mail-6@example.org> of 2026-06-06"


def test_an_incomplete_inline_series_is_refused(tmp_path: Path) -> None:
    box = _box(tmp_path / "x.mbox", _inline(1, "[PATCH v4 1/9999] One"))
    with pytest.raises(SourceError, match=r"x\.mbox has '\[PATCH v4 1/9999\] One', but no patch 2/9999; add its"):
        _read(box)


# Hostile mails


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/cron.d/a.patch", "a.patch"),
        ("/etc/passwd.patch", "passwd.patch"),
        ("..\\..\\a.patch", "a.patch"),
        ("\x1b]0;owned\x07a.patch", r"\x1b]0;owned\x07a.patch"),
        ("a\n\u202ehctap.b.patch", r"a\x0a\u202ehctap.b.patch"),
        ("x" * 5000 + ".patch", "x" * 110 + "….patch"),
    ],
)
def test_no_name_has_directories_or_control_characters(tmp_path: Path, name: str, shown: str) -> None:
    for attachments in ({"a.zip": _zip({name: b"a"})}, {"a.tgz": _tar({name: b"a"})}):
        assert _one(tmp_path, _with(attachments))[0] == [shown]
    mail = _mail(1)
    mail.add_attachment(b"a", "application", "octet-stream", filename=("utf-8", "", name))
    assert _one(tmp_path, mail)[0] == [shown]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.eml"]


def test_links_and_devices_in_archives_are_no_patches(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for number, kind in enumerate((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE)):
            info = tarfile.TarInfo(f"{number}.patch")
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
    with pytest.raises(SourceError, match="has a patch"):
        _one(tmp_path, _with({"a.tar": buffer.getvalue()}))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.patch.gz", lambda: gzip.compress(bytes(70 * MEGABYTE), 1)),
        ("a.tgz", lambda: gzip.compress(bytes(70 * MEGABYTE), 1)),
        ("a.zip", lambda: _zip({"a.patch": bytes(70 * MEGABYTE)})),
        ("b.zip", lambda: _zip({f"{number}.patch": bytes(14 * MEGABYTE) for number in range(5)})),
    ],
    ids=_name_only,
)
def test_attachments_that_unpack_to_very_much_are_refused(
    tmp_path: Path, name: str, content: Callable[[], bytes]
) -> None:
    (tmp_path / "one.eml").write_bytes(_with({name: content()}).as_bytes())
    tracemalloc.start()
    try:
        with pytest.raises(SourceError, match=rf"the attachment {name} has more than 64 MB; save the patches"):
            series_from_mails(tmp_path / "one.eml", "x")
        assert tracemalloc.get_traced_memory()[1] < 250 * MEGABYTE
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.patch.gz", b"no gzip"),
        ("a.patch.gz", gzip.compress(b"a" * 1000)[:-9]),
        ("a.patch.xz", b"no xz"),
        ("a.tar", b"no tar"),
        ("a.tgz", b""),
        ("a.zip", b"no zip"),
        ("a.zip", _zip({"a.patch": b"a" * 1000}).replace(b"a.patch", b"b.patch", 1)),
        (
            "a.zip",
            _zip({"a.patch": b"a"}).replace(b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01"),
        ),
    ],
    ids=_name_only,
)
def test_damaged_and_encrypted_attachments_are_refused(tmp_path: Path, name: str, content: bytes) -> None:
    with pytest.raises(SourceError, match=r"cannot unpack the attachment \S+ \([^\n]+\); give its patches as files$"):
        _one(tmp_path, _with({name: content}))


def test_a_mail_with_very_many_patches_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="1001 patches are too many"):
        _one(tmp_path, _with({"a.zip": _zip({f"{number}.patch": b"" for number in range(1001)})}))


def test_a_mail_that_cannot_be_parsed_leaves_the_one_before(tmp_path: Path) -> None:
    depth = 3000
    nested = "".join(f'Content-Type: multipart/mixed; boundary="{level}"\n\n--{level}\n' for level in range(depth))
    bad = f"From x@y Mon Jun  1 10:00:00 2026\nDate: Tue, 02 Jun 2026 10:00:00 +0000\n{nested}\n\n"
    box = _box(tmp_path / "x.mbox", _mail(1, a__patch=b"a"))
    box.write_bytes(box.read_bytes() + b"\n" + bad.encode())
    names, said = _read(box)
    assert names == ["a.patch"]
    assert said[1:] == ("left out the mail without subject of 2026-06-02: its parts cannot be read",)


@pytest.mark.parametrize(
    "header",
    [
        b"Date: Mon, 99 Foo 99999999999999 99:99:99 +9999",
        b"Date: ",
        b"Subject: =?utf-8?b?////?= \xff\xfe =?x?q?=1b?=",
        b"Message-ID: <",
        b"References: " + b"<" * 5000,
        b"Content-Type: ;;;=",
        b"Content-Disposition: attachment; filename*=x''%ff%00",
    ],
)
def test_damaged_headers_do_no_harm(tmp_path: Path, header: bytes) -> None:
    boundary = b"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n"
    part = b"--b\nContent-Disposition: attachment; filename=a.patch\n\na\n--b--\n"
    (tmp_path / "one.eml").write_bytes(header + b"\n" + boundary + part)
    if header.startswith(b"Content-Type"):
        with pytest.raises(SourceError, match="has a patch"):
            _read(tmp_path / "one.eml")
    else:
        assert _read(tmp_path / "one.eml")[0] == ["a.patch"]


def test_an_unreadable_mailbox_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"cannot read .*gone\.mbox \(No such file or directory\); give a mailbox"):
        series_from_mails(tmp_path / "gone.mbox", "x")

"""Tests of series: trees of all prefixes, and errors with patch, file and hunk."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from fuzz.errors import SourceError
from fuzz.servers import git
from fuzz.servers.series import (
    Patch,
    Series,
    apply_series,
    series_from_directory,
    series_from_files,
    series_from_range,
)
from tests.servers import sources


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDUEL_HOME", str(tmp_path / "home"))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a repository with three commits: base, first (adds a file), second (changes two places of long.c)."""
    checkout = sources.plant(tmp_path / "checkout")
    sources.git(checkout, "init", "--quiet", "--initial-branch=topic")
    sources.commit(checkout, "base")
    sources.git(checkout, "tag", "base")
    (checkout / "added.bin").write_bytes(bytes(range(256)))
    sources.commit(checkout, "Add a file that is not text")
    text = sources.LINES.replace("line 3\n", "third\n").replace("line 35\n", "thirty-fifth\n")
    (checkout / "src" / "long.c").write_text(text)
    sources.commit(checkout, "Change two places")
    return checkout


def test_range_yields_a_patch_a_commit_and_its_trees(checkout: Path) -> None:
    series = series_from_range(checkout, "base..topic")
    base = git.import_revision(checkout, "base")
    trees = apply_series(base, series)
    assert [patch.name.partition("-")[2] for patch in series.patches] == [
        "Add-a-file-that-is-not-text",
        "Change-two-places",
    ]
    assert trees == (base, git.import_revision(checkout, "topic~1"), git.import_revision(checkout, "topic"))


def test_range_does_not_depend_on_the_users_configuration(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = series_from_range(checkout, "base..topic")
    config = tmp_path / "config"
    config.write_text("[diff]\n\tnoprefix = true\n\tcontext = 0\n[format]\n\tnumbered = true\n\tattach = x\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    assert series_from_range(checkout, "base..topic") == expected


def test_range_does_not_depend_on_the_checkouts_configuration(checkout: Path) -> None:
    expected = series_from_range(checkout, "base..topic")
    for setting in (
        *("diff.noprefix=true", "diff.mnemonicPrefix=true", "diff.context=0", "diff.relative=true"),
        *("format.useAutoBase=true", "format.from=nobody", "color.ui=always"),
    ):
        sources.git(checkout, "config", *setting.split("="))
    assert series_from_range(checkout, "base..topic") == expected


@pytest.fixture
def program(checkout: Path) -> Path:
    """Return a program that creates the file `ran` beside it."""
    program = checkout.with_name("program")
    program.write_text(f"#!/bin/sh\ntouch {checkout.with_name('ran')}\nexit 1\n")
    program.chmod(0o755)
    return program


def test_a_range_runs_no_program_of_the_checkout(checkout: Path, program: Path) -> None:
    header, _, message = sources.git(checkout, "cat-file", "commit", "topic").partition("\n\n")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n abc\n -----END PGP SIGNATURE-----"
    checkout.with_name("signed").write_text(f"{header}\n{signature}\n\n{message}\n")
    signed = sources.git(checkout, "hash-object", "-t", "commit", "-w", str(checkout.with_name("signed")))
    sources.git(checkout, "reset", "--quiet", "--hard", signed)
    for name, value in (("log.showSignature", "true"), ("gpg.program", str(program)), ("diff.external", str(program))):
        sources.git(checkout, "config", name, value)
    assert len(series_from_range(checkout, "base..topic").patches) == 2
    assert not (program.parent / "ran").exists()


def test_root_fetches_nothing_for_the_partial_clone_of_another_user(
    checkout: Path, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blob = sources.git(checkout, "rev-parse", "topic:src/long.c")
    (checkout / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for name, value in (
        *(("core.repositoryFormatVersion", "1"), ("extensions.partialClone", "origin")),
        *(("remote.origin.url", str(checkout)), ("remote.origin.uploadpack", str(program))),
    ):
        sources.git(checkout, "config", name, value)
    if os.geteuid() == 0:
        os.chown(checkout, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(SourceError, match=r"missing blob object .*; the clone is partial, so let its owner run: git"):
        git.import_revision(checkout, "topic")
    assert not (program.parent / "ran").exists()


def test_a_diff_in_the_message_of_a_commit_is_not_applied(checkout: Path) -> None:
    diff = "diff --git a/src/long.c b/src/long.c\n--- a/src/long.c\n+++ b/src/long.c\n@@ -1 +1 @@\n-line 1\n+first\n"
    sources.git(checkout, "commit", "--quiet", "--amend", "-m", f"Not so:\n\n{diff}\n---\n\nPlan-neutral: yes")
    series = series_from_range(checkout, "base..topic")
    assert apply_series(git.import_revision(checkout, "base"), series)[-1] == git.import_revision(checkout, "topic")
    assert series.patches[-1].plan_neutral


def test_range_with_a_merge_is_refused(checkout: Path) -> None:
    sources.git(checkout, "checkout", "--quiet", "-b", "side", "base")
    (checkout / "side.c").write_text("side\n")
    sources.commit(checkout, "side")
    sources.git(checkout, "merge", "--quiet", "--no-edit", "topic")
    with pytest.raises(SourceError, match="contains the merge"):
        series_from_range(checkout, "base..side")


def test_a_range_without_changes_is_refused_and_an_empty_commit_left_out(checkout: Path) -> None:
    with pytest.raises(SourceError, match=r"topic\.\.base has no commit with changes; give A\.\.B"):
        series_from_range(checkout, "topic..base")
    sources.git(checkout, "commit", "--quiet", "--allow-empty", "-m", "Run CI")
    series = series_from_range(checkout, "base..topic")
    assert len(series.patches) == 2
    (remark,) = series.remarks
    assert remark.startswith("left out commit ")
    assert remark.endswith("-Run-CI: it changes no file")


def test_a_range_that_looks_like_an_option_is_none(checkout: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"cannot read '--output=.*: fatal: bad revision"):
        series_from_range(checkout, f"--output={tmp_path}/file..x")
    assert not (tmp_path / "file..x").exists()


def test_the_error_about_an_unknown_range_names_it(checkout: Path) -> None:
    with pytest.raises(SourceError, match=r"cannot read 'base\.\.nothing' in"):
        series_from_range(checkout, "base..nothing")


def test_directory_follows_its_series_file(tmp_path: Path) -> None:
    (tmp_path / "series").write_text("# order matters\n\n2.patch\n1.patch  # last\n")
    (tmp_path / "1.patch").write_bytes(b"one")
    (tmp_path / "2.patch").write_bytes(b"two")
    assert series_from_directory(tmp_path).patches == (Patch("2.patch", b"two"), Patch("1.patch", b"one"))


def test_directory_with_an_empty_series_is_legal(tmp_path: Path) -> None:
    (tmp_path / "series").write_text("# nothing yet\n")
    assert series_from_directory(tmp_path).patches == ()


def test_the_error_about_a_series_file_that_is_no_text_names_it(tmp_path: Path) -> None:
    (tmp_path / "series").write_bytes(b"\xff\xfe")
    with pytest.raises(SourceError, match=r"cannot read .*/series \(it is no text in UTF-8\); correct the list"):
        series_from_directory(tmp_path)


def test_the_error_about_a_missing_patch_names_it(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"there is no patch .*absent\.patch"):
        series_from_files([tmp_path / "absent.patch"])


def test_failure_names_patch_file_and_hunk(checkout: Path) -> None:
    good, changing = series_from_range(checkout, "base..topic").patches
    stale = Patch("0002-stale.patch", changing.content.replace(b" line 36\n", b" line thirty-six\n"))
    base = git.import_revision(checkout, "base")
    with pytest.raises(
        SourceError, match=r"patch 0002-stale\.patch does not apply: src/long\.c, hunk 2 of 2 at line 32"
    ):
        apply_series(base, Series("stale", (good, stale)))


def test_failure_for_a_file_that_is_not_there(checkout: Path) -> None:
    _, changing = series_from_range(checkout, "base..topic").patches
    lost = Patch("lost.patch", changing.content.replace(b"src/long.c", b"src/gone.c"))
    with pytest.raises(SourceError, match=r"patch lost\.patch does not apply: src/gone\.c: .*not exist"):
        apply_series(git.import_revision(checkout, "base"), Series("lost", (lost,)))


def test_a_file_that_is_no_patch_is_refused(checkout: Path) -> None:
    for content in (b"hello\n", b""):
        with pytest.raises(SourceError, match="README is no patch; give files of git format-patch or diff -u"):
            apply_series(git.import_revision(checkout, "base"), Series("x", (Patch("README", content),)))


def test_a_patch_to_which_a_mail_program_added_carriage_returns_applies(checkout: Path) -> None:
    _, changing = series_from_range(checkout, "base..topic").patches
    base = git.import_revision(checkout, "base")
    mailed = Patch("mailed.patch", changing.content.replace(b"\n", b"\r\n"))
    assert apply_series(base, Series("mailed", (mailed,))) == apply_series(base, Series("sent", (changing,)))


def test_a_file_that_such_a_patch_adds_has_none_and_one_of_git_may_have_them(checkout: Path) -> None:
    base = git.import_revision(checkout, "base")
    (checkout / "new.c").write_bytes(b"int x;\nint y;\n")
    sources.commit(checkout, "Add a file")
    (checkout / "crlf.c").write_bytes(b"one\r\nother\r\n")
    sources.commit(checkout, "Add a file with carriage returns")
    sent = series_from_range(checkout, "topic~2..topic")
    mailed = Patch("mailed.patch", sent.patches[0].content.replace(b"\n", b"\r\n"))
    trees = apply_series(base, sent)
    assert git.show(trees[1], "new.c") == "int x;\nint y;\n"
    assert git.show(trees[2], "crlf.c") == "one\r\nother\r\n"
    assert apply_series(base, replace(sent, patches=(mailed, sent.patches[1]))) == trees


NEUTRAL = b"From: dev <dev@example.org>\nSubject: [PATCH] Faster\n\nAs it was.\n\nPlan-neutral: yes\nDiscussion: none\n"
DIFF = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"


@pytest.mark.parametrize(
    ("content", "neutral"),
    [
        (NEUTRAL + b"---\n x | 2 +-\n\n" + DIFF, True),
        (b"What it does.\n\nPlan-neutral: yes\n" + DIFF, True),
        (NEUTRAL.replace(b"yes", b"no") + b"---\n" + DIFF, False),
        (b"Plan-neutral: yes is what it is not,\nin this text.\n\nDiscussion: none\n---\n" + DIFF, False),
        (b"Subject: x\n\nText.\n---\n" + DIFF + b"+\n+Plan-neutral: yes\n", False),
        (DIFF, False),
        (b"", False),
    ],
)
def test_a_trailer_marks_a_plan_neutral_patch(content: bytes, neutral: bool) -> None:  # noqa: FBT001
    assert Patch("x", content).plan_neutral is neutral


def test_plan_neutral_patches_at_the_end_of_a_series_do_not_decide_on_plans() -> None:
    neutral, other = Patch("a", NEUTRAL), Patch("b", DIFF)
    assert Series("none").deciding == 0
    assert Series("one", (neutral,)).deciding == 0
    assert Series("two", (neutral, other)).deciding == 2
    assert Series("three", (other, neutral, neutral)).deciding == 1


def test_a_trailer_marks_a_commit_of_a_range(checkout: Path) -> None:
    (checkout / "lf.txt").write_text("three\n")
    sources.commit(checkout, "Say it\n\nWhy.\n\nPlan-neutral: yes")
    assert [patch.plan_neutral for patch in series_from_range(checkout, "base..topic").patches] == [False, False, True]

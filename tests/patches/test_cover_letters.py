"""Tests of cover letters: the index links one for each mail, and one letter names each patch of the optimizations."""

import re
from pathlib import Path

import pytest

from fuzz import workdir

PATCHES = workdir.PROJECT / "patches"
INDEX = (PATCHES / "README.md").read_text()
LETTERS = {path: " ".join(path.read_text().split()) for path in sorted((PATCHES / "covers").glob("*.md"))}
_MAIL = re.compile(r"https://postgr\.es/m/[^)\s]+")


def test_the_index_links_a_letter_for_each_mail() -> None:
    assert {mail for letter in LETTERS.values() for mail in _MAIL.findall(letter)} == set(_MAIL.findall(INDEX))
    assert set(re.findall(r"\]\((covers/[^)]+)\)", INDEX)) == {str(path.relative_to(PATCHES)) for path in LETTERS}


@pytest.mark.parametrize("letter", LETTERS, ids=lambda path: path.stem)
def test_a_letter_answers_one_mail_and_links_its_notes(letter: Path) -> None:
    assert len(_MAIL.findall(LETTERS[letter])) == 1
    assert f"(../notes/{letter.name})" in LETTERS[letter]


@pytest.mark.parametrize(
    "patch", sorted(PATCHES.glob("pg*/optimizations/*.patch")), ids=lambda path: f"{path.parts[-3]}-{path.name[:4]}"
)
def test_one_letter_names_a_patch_and_answers_its_mail(patch: Path) -> None:
    message, _, _ = patch.read_text().partition("\n---\n")
    subject = re.search(r"^Subject: \[PATCH\] (.*(?:\n .*)*)", message, re.MULTILINE)
    mail = re.search(r"^Discussion: (\S+)$", message, re.MULTILINE)
    assert subject
    assert mail
    named = f"**{patch.name[:4]} {' '.join(subject[1].split())}.**"
    assert [mail[1] in letter for letter in LETTERS.values() if named in letter] == [True]

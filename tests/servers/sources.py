"""A small source tree for unit tests, and git repositories of it."""

import os
import subprocess
from pathlib import Path

MESON = "project('postgresql',\n  ['c'],\n  version: '17.99',\n)\n"
LINES = "".join(f"line {number}\n" for number in range(1, 41))


def plant(directory: Path) -> Path:
    """Write a source tree whose attributes and ignore rules try to change what git stores."""
    files = {
        "meson.build": MESON,
        ".gitignore": "*.so\nignored/\n",
        ".gitattributes": "*.txt text eol=crlf ident\nhidden.c export-ignore\nversion.c export-subst\n",
        "crlf.txt": "one\r\ntwo $Id$\r\n",
        "lf.txt": "one\ntwo $Id: kept $\n",
        "hidden.c": "hidden\n",
        "version.c": "$Format:%H$\n",
        "built.so": "built\n",
        "ignored/file.c": "ignored\n",
        "src/long.c": LINES,
    }
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    (directory / "src" / "run.sh").write_text("#!/bin/sh\n")
    (directory / "src" / "run.sh").chmod(0o755)
    return directory


def git(checkout: Path, *arguments: str) -> str:
    """Run git in a developer's checkout, and return its output."""
    who = {f"GIT_{role}_{what}": "dev@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = subprocess.run(
        ["git", *arguments], cwd=checkout, env=os.environ | who, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(checkout: Path, message: str) -> None:
    """Commit all files, including ignored ones."""
    git(checkout, "add", "--all", "--force", ".")
    git(checkout, "commit", "--quiet", "--message", message)

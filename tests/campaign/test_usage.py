"""Tests of a campaign's usage of the machine."""

import shutil
from pathlib import Path
from threading import Event, Thread

from fuzz.campaign.usage import size_of


def test_the_size_of_a_directory_is_that_of_its_files_and_directories(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "file").write_bytes(bytes(100_000))
    (tmp_path / "link").symlink_to(tmp_path / "below")
    assert 100_000 <= size_of(tmp_path) < 150_000
    assert size_of(tmp_path / "nowhere") == 0


def test_a_directory_may_vanish_while_its_size_is_read(tmp_path: Path) -> None:
    over = Event()

    def change() -> None:
        while not over.is_set():
            for number in range(20):
                (tmp_path / f"{number}" / "below").mkdir(parents=True)
            for number in range(20):
                shutil.rmtree(tmp_path / f"{number}")

    changing = Thread(target=change)
    changing.start()
    try:
        sizes = [size_of(tmp_path) for _ in range(1000)]
    finally:
        over.set()
        changing.join()
    assert min(sizes) >= 0

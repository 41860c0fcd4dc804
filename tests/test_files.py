"""Files are written whole or not at all."""

from __future__ import annotations

import errno
import os
import stat
import threading
from pathlib import Path

import numpy as np
import pytest

import unsample
from unsample._files import check_writable, write_atomically
from unsample.errors import FileError


def write(path: Path, content: bytes = b"new") -> None:
    write_atomically(path, lambda file: file.write(content))


def test_a_disk_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    write(tmp_path / "page.html", b"old")

    def fail(file):
        file.write(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(FileError, match=r"cannot write .*page\.html': No space left .*; make room"):
        write_atomically(tmp_path / "page.html", fail)
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert (tmp_path / "page.html").read_bytes() == b"old"


def test_a_link_is_replaced_and_what_it_points_to_untouched(tmp_path):
    real, link = tmp_path / "real.html", tmp_path / "link.html"
    real.write_bytes(b"old")
    link.symlink_to(real)
    write(link)
    assert not link.is_symlink()
    assert (real.read_bytes(), link.read_bytes()) == (b"old", b"new")


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    """``--html /dev/null`` as root once replaced the device by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    check_writable(pipe)
    write(pipe)
    reader.join()
    assert got == [b"new"]
    assert pipe.is_fifo()


def test_permissions_are_those_of_the_old_file_or_of_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write(tmp_path / "new")
        (tmp_path / "secret").write_bytes(b"old")
        (tmp_path / "secret").chmod(0o600)
        write(tmp_path / "secret")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (".", "Is a directory; give the name of a file"),
        ("none/page.html", "make its folder first"),
        ("x" * 300, "choose a shorter name"),
    ],
)
def test_bad_places_are_named_before_any_work(tmp_path, name, says):
    (tmp_path / "file").write_bytes(b"")
    for attempt in (check_writable, write):
        with pytest.raises(FileError, match=says):
            attempt(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def _saved_counts(path):
    unsample.RankCounts.from_ranks([1, 2, 9], items=100, sampled=9).save(path)


def _saved_prior(path):
    unsample.Prior.learn([np.arange(1, 90)] * 2, items=400).save(path)


def _checkpoint(path):
    unsample.evaluate(
        lambda users, items: -items.astype(float), (np.arange(60), np.arange(60)), items=60,
        design="fixed", budget=60 * 21, run=unsample.Run(checkpoint=path), metrics="NDCG@10",
    )  # fmt: skip


#: What writes archives into a path.
SAVERS = [_saved_counts, _saved_prior, _checkpoint]


@pytest.mark.parametrize("save", SAVERS)
def test_an_archive_is_written_over_by_its_own_kind_alone(tmp_path, save):
    """Ranks of users, counts, priors and checkpoints are all read from files in .npz."""
    path = tmp_path / "file.npz"
    save(path)
    save(path)
    np.savez(path, rank=np.arange(1, 9))
    ranks = path.read_bytes()
    with pytest.raises(FileError, match=r"must (be new, or|belong to this).*file\.npz.* path|name"):
        save(path)
    assert path.read_bytes() == ranks
    for other in SAVERS:
        if other is not save:
            path.unlink()
            other(path)
            with pytest.raises(FileError):
                save(path)
    with pytest.raises(FileError, match=r"must end in \.npz, got .*file\.csv"):
        save(tmp_path / "file.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["file.npz"]


def test_a_checkpoint_that_cannot_be_written_is_found_out_at_once(tmp_path):
    asked = []

    def scores(users, items):
        asked.append(items.size)
        return -items.astype(float)

    with pytest.raises(FileError, match="make its folder first"):
        unsample.evaluate(
            scores, (np.arange(60), np.arange(60)), items=60, design="fixed", budget=60 * 21,
            run=unsample.Run(checkpoint=tmp_path / "none" / "state.npz"),
        )  # fmt: skip
    assert sum(asked) < 200  # the probe alone

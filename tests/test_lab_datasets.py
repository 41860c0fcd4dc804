"""Data sets: original formats from made-up slices, downloads, pairs, splits."""

from __future__ import annotations

import hashlib
import io
import lzma
import re
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unsample._archives import open_plain
from unsample.errors import DownloadError, FileError
from unsample.lab import datasets
from unsample.lab.datasets import (
    Interactions,
    _load,
    _records,
    leave_random_out,
    standard_split,
)

SLICES = Path(__file__).parent / "data" / "datasets"


def pairs_of(user, item):
    return set(zip(user.tolist(), item.tolist(), strict=True))


@pytest.fixture(autouse=True)
def own_folders(monkeypatch, tmp_path):
    """Keep the tests away from the data and the downloads of whoever runs them."""
    monkeypatch.setenv("UNSAMPLE_DATA", str(tmp_path))


def believe(monkeypatch, folder: Path) -> None:
    """Let the files of a folder be the data sets, with their own checksums."""
    tables = _records._tables()
    for name, table in tables.items():
        for path in (folder / name).rglob("*.*"):
            file = table["files"].get(path.name.removesuffix(".xz").removesuffix(".gz"))
            if file is not None:
                with open_plain(path) as stream:
                    file["checksum"] = f"sha256:{hashlib.sha256(stream.read()).hexdigest()}"
    monkeypatch.setattr(_records, "_tables", lambda: tables)
    monkeypatch.setenv("UNSAMPLE_DATA", str(folder))


@pytest.fixture
def slices(monkeypatch):
    believe(monkeypatch, SLICES)


# -- the registry -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", datasets.names())
def test_every_record_is_whole(name):
    record = _records.record(name)
    assert record.sources[0].complete
    assert all(source.complete != bool(source.note) for source in record.sources)
    for file in record.files.values():
        assert re.fullmatch(r"sha256:[0-9a-f]{64}|git-blob:[0-9a-f]{40}", file.checksum)
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", file.name)
        assert not file.address or file.address.startswith("https://")
        assert file.format == "negatives" or file.format in _load.READERS
    assert all(record.files[wanted].address for wanted in record.wanted)
    used = {file for source in record.sources for file in source.files}
    assert used | {record.test, record.negatives} - {""} == set(record.files)


# -- slices in the original formats -----------------------------------------------------------


def test_every_format_is_read(slices):
    loaded = datasets.load("ml-1m")
    lines = (SLICES / "ml-1m/original/ratings.dat").read_text().splitlines()
    rows = [tuple(int(field) for field in line.split("::")) for line in lines]
    # Its movies are numbered by first appearance.
    movies = list(dict.fromkeys(row[1] for row in rows))
    expected = {(user - 1, movies.index(item)) for user, item, *_ in rows}
    assert pairs_of(loaded.user, loaded.item) == expected
    assert len(datasets.load("pinterest-20")) == 9
    articles = datasets.load("citeulike-a")
    assert articles.user.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 2]
    assert articles.item.tolist() == [0, 2, 5, 1, 4, 0, 1, 3, 5]
    assert len(datasets.load("yelp")) == 6  # ratings with decimals, one of a repeated pair


def test_arrays_are_a_part_that_says_so(monkeypatch, tmp_path):
    (tmp_path / "yelp").mkdir()
    np.savez(tmp_path / "yelp" / "partial_interactions.npz", user=[0, 1], item=[2, 3])
    believe(monkeypatch, tmp_path)
    loaded = datasets.load("yelp")
    assert (loaded.users, loaded.items, len(loaded)) == (25_677, 25_815, 2)
    assert not loaded.complete
    assert "about 42 %" in repr(loaded)
    assert not datasets.at_hand("yelp").complete
    assert datasets.at_hand("ml-1m") is None


def test_splits_are_the_published_ones_or_else_random(slices):
    split = standard_split("ml-1m")
    assert split.target_user.tolist() == [0, 1, 2, 3, 4]
    assert split.negatives.shape == (5, 3)
    assert len(split.train) + 5 == 25
    # A target that the training file repeats is not trained on.
    split = standard_split("pinterest-20")
    assert (0, 3) not in pairs_of(split.train.user, split.train.item)
    assert len(split.train) == 6
    assert split.negatives is None
    assert standard_split("citeulike-a").name == "citeulike-a leave-random-out"


def test_wrong_content_is_refused_with_both_checksums(tmp_path):
    path = tmp_path / "citeulike-a" / "users.dat.xz"
    path.parent.mkdir()
    path.write_bytes(lzma.compress(b"1 0\n" * 500))
    with pytest.raises(FileError, match=r"expected sha256:53211d82c14ff261.*got sha256:"):
        datasets.fetch("citeulike-a")
    assert path.exists(), "a file of the user is never replaced"
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(FileError, match=r"cannot read .*users\.dat"):
        datasets.load("citeulike-a")


def test_unsample_data_must_be_a_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("UNSAMPLE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileError, match="UNSAMPLE_DATA must name a folder"):
        datasets.load("ml-1m")


# -- downloads --------------------------------------------------------------------------------

CONTENT = b"".join(b"%d %d\n" % (1, item) for item in range(3_000))


@pytest.fixture
def serve(monkeypatch, tmp_path):
    """Let there be one data set of one file, whose download gives this body."""
    pooch = pytest.importorskip("pooch")

    def serve(body, **changes):
        def download(address, stream, _):
            if body is None:
                raise OSError("404 Not Found")
            stream.write(body)

        monkeypatch.setattr(pooch, "HTTPDownloader", lambda timeout: download)
        known = {
            "format": "lists",
            "address": "https://example.org/users",
            "checksum": f"sha256:{hashlib.sha256(CONTENT).hexdigest()}",
        }
        table = dict.fromkeys(("users", "items", "interactions"), 3_000)
        table["sources"] = [{"files": ["users.dat"]}]
        table["files"] = {"users.dat": known | changes}
        monkeypatch.setattr(_records, "_tables", lambda: {"toy": table})
        return tmp_path / "toy" / "users.dat"

    return serve


def test_a_download_is_verified_kept_and_loaded(serve):
    blob = hashlib.sha1(b"blob %d\0" % len(CONTENT) + CONTENT).hexdigest()
    path = serve(CONTENT, checksum=f"git-blob:{blob}")
    assert len(datasets.load("toy")) == 3_000
    assert path.read_bytes() == CONTENT
    serve(b"another one", checksum=f"git-blob:{blob}")
    assert datasets.fetch("toy") == {"users.dat": path}, "it is not fetched again"
    assert [each.name for each in path.parent.iterdir()] == ["users.dat"]


def test_a_folder_that_cannot_be_made_is_told(serve):
    serve(CONTENT).parent.write_text("a file where the folder should be")
    with pytest.raises(FileError, match="cannot write"):
        datasets.fetch("toy")


def archive(name="toy/users.dat") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as contents:
        contents.writestr(name, CONTENT)
        contents.writestr("../../outside.txt", "never written")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("body", "member", "error", "words"),
    [
        (CONTENT[:-1] + b"!", "", FileError, "expected sha256"),
        (None, "", DownloadError, r"404.*UNSAMPLE_DATA to the folder that holds toy/original/us"),
        (archive(name="other.dat"), "toy/users.dat", FileError, "that holds toy/users.dat"),
        (archive()[:2000], "toy/users.dat", FileError, "must be a zip archive"),
    ],
    ids=["wrong", "missing", "no member", "truncated"],
)
def test_bad_downloads_are_refused_and_not_kept(serve, body, member, error, words):
    path = serve(body, member=member)
    with pytest.raises(error, match=words):
        datasets.load("toy")
    assert not path.exists()


def test_one_member_is_taken_from_an_archive(serve, tmp_path):
    path = serve(archive(), member="toy/users.dat")
    assert datasets.fetch("toy") == {"users.dat": path}
    assert path.read_bytes() == CONTENT
    assert not list(tmp_path.parent.rglob("outside.txt"))


# -- pairs and splits -----------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=40),
    st.integers(0, 3),
)
def test_splits_are_partitions(rows, seed):
    user, item = zip(*rows, strict=True)
    whole = Interactions(np.array(user), np.array(item), users=7, items=7).distinct()
    assert list(zip(whole.user, whole.item, strict=True)) == sorted(set(rows))
    counts = np.bincount(whole.user, minlength=7)
    split = leave_random_out(whole, rng=seed)
    parts = [pairs_of(split.train.user, split.train.item), pairs_of(*split.targets)]
    assert sum(map(len, parts)) == len(whole)
    assert set.union(*parts) == pairs_of(whole.user, whole.item)
    expected = (counts > 1).astype(int)
    np.testing.assert_array_equal(np.bincount(split.target_user, minlength=7), expected)

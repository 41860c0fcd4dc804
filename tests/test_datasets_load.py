"""Loading the public formats, from slices made up for these tests."""

from __future__ import annotations

import gzip
import lzma
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from unsample.errors import ChecksumError, DatasetError, FileError
from unsample.lab import datasets
from unsample.lab.datasets import _formats, _registry

SLICES = Path(__file__).parent / "data" / "datasets"


@pytest.fixture(autouse=True)
def own_folders(monkeypatch, tmp_path):
    """Keep the tests away from the data and the downloads of whoever runs them."""
    monkeypatch.delenv("UNSAMPLE_DATA", raising=False)
    monkeypatch.setenv("UNSAMPLE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def slices(monkeypatch):
    monkeypatch.setenv("UNSAMPLE_DATA", str(SLICES))


# -- the registry -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", datasets.names())
def test_every_record_is_whole(name):
    record = _registry.record(name)
    assert record.licence
    assert record.citations
    assert record.sources[0].complete
    assert all(not source.complete or not source.note for source in record.sources)
    assert all(source.complete or source.note for source in record.sources)
    for file in record.files.values():
        assert file.sha256 or file.git_blob
        assert file.format == "negatives" or file.format in _formats._READERS
    for wanted in record.wanted:
        assert record.files[wanted].address.startswith("https://")
    used = {name for source in record.sources for name in source.files} | set(record.published)
    assert used == set(record.files)


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(DatasetError, match=r"name must be one of ml-1m.*did you mean ml-1m\?"):
        datasets.load("ML1M")
    with pytest.raises(DatasetError, match="did you mean citeulike-a"):
        datasets.info("citeulike")


def test_the_git_blob_id_is_the_one_of_git(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"user\titem\n" * 1000)
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    printed = subprocess.run(
        ["git", "hash-object", path], capture_output=True, text=True, check=True
    )
    assert _registry.git_blob_id(path.read_bytes()) == printed.stdout.strip()


# -- slices in the original formats -----------------------------------------------------------


def test_movielens_ids_are_numbered_by_first_appearance(slices):
    loaded = datasets.load("ml-1m", verify=False)
    lines = (SLICES / "ml-1m/original/ratings.dat").read_text().splitlines()
    rows = [tuple(int(field) for field in line.split("::")) for line in lines]
    movies = list(dict.fromkeys(row[1] for row in rows))
    assert loaded.item_ids is not None
    assert loaded.user_ids is not None
    assert loaded.rating is not None
    assert loaded.time is not None
    assert loaded.item_ids.tolist() == movies
    assert loaded.user_ids.tolist() == [1, 2, 3, 4, 5]
    expected = sorted((user - 1, movies.index(item), *rest) for user, item, *rest in rows)
    columns = (loaded.user, loaded.item, loaded.rating, loaded.time)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected


def test_both_sources_of_movielens_agree(slices, monkeypatch, tmp_path):
    first = datasets.load("ml-1m", verify=False)
    original = tmp_path / "ml-1m" / "original"
    original.mkdir(parents=True)
    for name in ("ml-1m.train.rating", "ml-1m.test.rating"):
        content = (SLICES / "ml-1m/original" / name).read_bytes()
        (original / f"{name}.xz").write_bytes(lzma.compress(content))
    monkeypatch.setenv("UNSAMPLE_DATA", str(tmp_path))
    second = datasets.load("ml-1m", verify=False)
    for column in ("user", "item", "rating", "time"):
        np.testing.assert_array_equal(getattr(first, column), getattr(second, column))


def test_pinterest_merges_repeated_lines_and_has_no_times(slices):
    loaded = datasets.load("pinterest-20", verify=False)
    assert loaded.time is None
    assert loaded.rating is None
    assert loaded.merged == 2
    assert len(loaded) == 9


def test_citeulike_lists_items_by_user(slices):
    loaded = datasets.load("citeulike-a", verify=False)
    assert loaded.user.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 2]
    assert loaded.item.tolist() == [0, 2, 5, 1, 4, 0, 1, 3, 5]


def test_yelp_keeps_the_latest_of_repeated_reviews(slices):
    loaded = datasets.load("yelp", verify=False)
    assert loaded.merged == 1
    assert loaded.rating is not None
    assert loaded.rating.tolist() == [3.0, 4.0, 5.0, 1.0, 2.0, 4.5]


def test_files_read_without_checksums_are_noted(slices):
    loaded = datasets.load("citeulike-a", verify=False)
    assert not loaded.complete
    assert loaded.note == "read without checksums"


def test_the_published_split_of_a_slice(slices):
    split = datasets.leave_published_out("ml-1m", verify=False, validation=True)
    assert split.target_user.tolist() == [0, 1, 2, 3, 4]
    assert split.negatives is not None
    assert split.negatives.shape == (5, 3)
    assert split.validation_user is not None
    assert len(split.train) + len(split.validation_user) + 5 == 25
    assert not split.complete
    assert split.note == "read without checksums"


def test_a_target_repeated_in_the_training_file_is_not_trained_on(slices):
    split = datasets.leave_published_out("pinterest-20", verify=False)
    trained = set(zip(split.train.user.tolist(), split.train.item.tolist(), strict=True))
    assert (0, 3) not in trained
    assert len(split.train) == 6
    assert split.negatives is None


def test_a_set_without_a_published_split_says_what_to_do(slices):
    with pytest.raises(DatasetError, match=r"citeulike-a.*has none; use leave_random_out"):
        datasets.leave_published_out("citeulike-a", verify=False)


# -- files that are not as they should be -----------------------------------------------------


def provide(folder: Path, file: str, content: bytes) -> Path:
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress])
def test_wrong_content_is_refused_with_both_checksums(monkeypatch, tmp_path, compress):
    suffix = {bytes: "", gzip.compress: ".gz", lzma.compress: ".xz"}[compress]
    path = provide(tmp_path, f"citeulike-a/original/users.dat{suffix}", compress(b"1 0\n"))
    monkeypatch.setenv("UNSAMPLE_DATA", str(tmp_path))
    with pytest.raises(ChecksumError) as caught:
        datasets.load("citeulike-a")
    text = str(caught.value)
    assert "expected sha256:53211d82c14ff261" in text
    assert "got sha256:" in text
    assert path.exists(), "a file of the user is never renamed"


def test_a_wrong_download_is_kept_aside(tmp_path):
    path = provide(tmp_path / "cache", "citeulike-a/users.dat", b"1 0\n")
    with pytest.raises(ChecksumError, match=r"kept in .*users\.dat\.corrupt"):
        datasets.load("citeulike-a")
    assert not path.exists()
    assert path.with_name("users.dat.corrupt").read_bytes() == b"1 0\n"


def test_a_file_that_never_ends_is_not_read_to_its_end(monkeypatch, tmp_path):
    bomb = gzip.compress(b"0" * 2_000_000)
    provide(tmp_path, "citeulike-a/original/users.dat.gz", bomb)
    monkeypatch.setenv("UNSAMPLE_DATA", str(tmp_path))
    with pytest.raises(ChecksumError, match="at most 1,094,785 bytes"):
        datasets.load("citeulike-a")


@pytest.mark.parametrize("name", ["users.dat.xz", "users.dat.gz"])
def test_a_truncated_file_is_refused(monkeypatch, tmp_path, name):
    lines = b"1 0\n" * 500
    whole = lzma.compress(lines) if name.endswith(".xz") else gzip.compress(lines)
    provide(tmp_path, f"citeulike-a/original/{name}", whole[: len(whole) // 2])
    monkeypatch.setenv("UNSAMPLE_DATA", str(tmp_path))
    with pytest.raises(FileError, match=f"cannot read .*{name}"):
        datasets.load("citeulike-a", verify=False)


def test_unsample_data_must_be_a_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("UNSAMPLE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileError, match="UNSAMPLE_DATA must name a folder"):
        datasets.load("ml-1m")


def test_a_missing_set_says_how_to_provide_it():
    with pytest.raises(DatasetError, match=r"fetch\('yelp'\).*UNSAMPLE_DATA.*yelp/original/yelp.r"):
        datasets.load("yelp", download=False)
    with pytest.raises(DatasetError, match=r"yelp/original/yelp.test.rating"):
        datasets.leave_published_out("yelp", download=False)


def test_negatives_of_other_targets_are_refused(monkeypatch, tmp_path):
    for file in (SLICES / "ml-1m/original").iterdir():
        content = file.read_bytes().replace(b"(0,4)", b"(0,5)")
        provide(tmp_path, f"ml-1m/original/{file.name}", content)
    monkeypatch.setenv("UNSAMPLE_DATA", str(tmp_path))
    with pytest.raises(FileError, match="the same users and held-out items"):
        datasets.leave_published_out("ml-1m", verify=False)


# -- malformed lines --------------------------------------------------------------------------

GOOD = b"1::2::3::4\n"


@pytest.mark.parametrize(
    ("form", "content", "line", "text"),
    [
        ("movielens", GOOD * 3 + b"1::2::3\n" + GOOD, 4, "1::2::3"),
        ("movielens", GOOD + b"1::2::3::4::5\n", 2, "1::2::3::4::5"),
        ("movielens", GOOD + b"1::x::3::4\n", 2, "1::x::3::4"),
        ("movielens", b"1::-2::3::4\n", 1, "1::-2::3::4"),
        ("movielens", GOOD + b"\n" + GOOD, 2, ""),
        ("movielens", GOOD + b"1::2::3::1234567890123456\n", 2, "1::2::3::1234567890123456"),
        ("movielens", GOOD + b"1::\xe9::3::4\r\n", 2, "1::\N{REPLACEMENT CHARACTER}::3::4"),
        ("ratings", b"0\t1\t4.5\t7\n0\t1\t4.5.\t7\n", 2, "0\\t1\\t4.5.\\t7"),
        ("ratings", b"0\t1\t4\t7\n0 1 4 7\n", 2, "0 1 4 7"),
        ("implicit", b"0\t1\t1\t0\n<html>\n", 2, "<html>"),
        ("lists", b"2 5 6\n3 1 2\n", 2, "3 1 2"),
        ("lists", b"2 5 6\n2 1  2\n", 2, "2 1  2"),
        ("lists", b"1 5\n2 " + b"9 " * 100 + b"\n", 2, "9 9 ..."),
    ],
)
def test_malformed_lines_are_named(form, content, line, text):
    with pytest.raises(FileError) as caught:
        _formats.read_columns(content, form, "some.dat")
    assert f"some.dat, line {line}: must be " in str(caught.value)
    assert text in str(caught.value)


def test_malformed_negatives_are_named():
    with pytest.raises(FileError, match=r"neg, line 2: must be .*, 2 of them as in line 1"):
        _formats.read_negatives(b"(0,1)\t2\t3\n(1,1)\t2\n", "neg")
    with pytest.raises(FileError, match="neg, line 1"):
        _formats.read_negatives(b"0,1\t2\t3\n", "neg")


def test_an_empty_file_is_refused():
    with pytest.raises(FileError, match="got an empty file"):
        _formats.read_columns(b"", "movielens", "ratings.dat")


def test_an_archive_without_the_arrays_is_refused(tmp_path):
    np.savez(tmp_path / "other.npz", user=np.arange(3))
    with pytest.raises(FileError, match="must hold the arrays user and item"):
        _formats.read_columns((tmp_path / "other.npz").read_bytes(), "arrays", "other.npz")
    with pytest.raises(FileError, match="must hold the arrays user and item"):
        _formats.read_columns(b"PK no archive", "arrays", "other.npz")


def test_line_ends_of_windows_and_a_missing_last_one_are_fine():
    rows = _formats.read_columns(b"1::2::3::4\r\n1::5::2::6", "movielens", "ratings.dat")
    assert rows.item_ids is not None
    assert rows.item_ids.tolist() == [2, 5]
    assert rows.user.tolist() == [0, 0]


# -- info -------------------------------------------------------------------------------------


def test_info_tells_what_is_missing():
    info = datasets.info("ml-1m")
    assert not info.at_hand
    assert not info.complete
    assert (info.users, info.items, info.interactions) == (6040, 3706, 1_000_209)
    assert info.published_split
    assert info.published_negatives
    assert all(file.path is None for file in info.files)


def test_info_tells_what_is_at_hand(slices):
    info = datasets.info("citeulike-a")
    assert info.at_hand
    assert info.complete
    assert not info.published_split
    assert info.files[0].path == SLICES / "citeulike-a/original/users.dat"


def test_info_tells_that_a_copy_is_partial(monkeypatch, tmp_path):
    provide(tmp_path, "yelp/partial_interactions.npz", b"")
    monkeypatch.setenv("UNSAMPLE_DATA", str(tmp_path))
    info = datasets.info("yelp")
    assert info.at_hand
    assert not info.complete
    assert "42 %" in info.note


def test_importing_the_room_needs_no_extra():
    code = (
        "import sys, unsample.lab.datasets;"
        "heavy = {'pooch', 'requests', 'pyarrow', 'polars', 'scipy.stats', 'torch'};"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0

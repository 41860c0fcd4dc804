"""Data sets: original formats from made-up slices, downloads, pairs, splits, the generator."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import re
import subprocess
import sys
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unsample._archives import open_plain
from unsample.designs import Scorer, exact_ranks
from unsample.errors import ChecksumError, DatasetError, DownloadError, FileError, InputError
from unsample.lab import datasets
from unsample.lab.datasets import (
    Interactions,
    Split,
    _formats,
    _registry,
    leave_published_out,
    leave_random_out,
    synthetic,
)
from unsample.lab.recommenders import EASE

SLICES = Path(__file__).parent / "data" / "datasets"


@pytest.fixture(autouse=True)
def own_folders(monkeypatch, tmp_path):
    """Keep the tests away from the data and the downloads of whoever runs them."""
    monkeypatch.delenv("UNSAMPLE_DATA", raising=False)
    monkeypatch.setenv("UNSAMPLE_CACHE", str(tmp_path / "cache"))


def believe(monkeypatch, folder: Path) -> None:
    """Let the files of a folder be the data sets, with their own checksums."""
    tables = _registry._tables()
    for name, table in tables.items():
        for path in (folder / name).rglob("*.*"):
            file = table["files"].get(path.name.removesuffix(".xz").removesuffix(".gz"))
            if file is not None:
                with open_plain(path) as stream:
                    file["sha256"] = hashlib.sha256(stream.read()).hexdigest()
    monkeypatch.setattr(_registry, "_tables", lambda: tables)
    monkeypatch.setenv("UNSAMPLE_DATA", str(folder))


@pytest.fixture
def slices(monkeypatch):
    believe(monkeypatch, SLICES)


# -- the registry -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", datasets.names())
def test_every_record_is_whole(name):
    record = _registry.record(name)
    assert record.licence
    assert record.citations
    assert record.sources[0].complete
    assert all(source.complete != bool(source.note) for source in record.sources)
    for file in record.files.values():
        assert re.fullmatch(r"sha256:[0-9a-f]{64}|git-blob:[0-9a-f]{40}", file.checksum)
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", file.name)
        assert not file.address or file.address.startswith("https://")
        assert file.format == "negatives" or file.format in _formats.READERS
    assert all(record.files[wanted].address for wanted in record.wanted)
    used = {file for source in record.sources for file in source.files}
    assert used | {record.test, record.negatives} - {""} == set(record.files)


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(DatasetError, match=r"name must be one of ml-1m.*did you mean ml-1m\?"):
        datasets.load("ML1M")


# -- slices in the original formats -----------------------------------------------------------


def test_movielens_ids_are_numbered_by_first_appearance(slices):
    loaded = datasets.load("ml-1m")
    lines = (SLICES / "ml-1m/original/ratings.dat").read_text().splitlines()
    rows = [tuple(int(field) for field in line.split("::")) for line in lines]
    movies = list(dict.fromkeys(row[1] for row in rows))
    expected = sorted((user - 1, movies.index(item), time) for user, item, _, time in rows)
    columns = (loaded.user, loaded.item, loaded.time)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected


def test_both_sources_of_movielens_agree(slices, monkeypatch, tmp_path):
    first = datasets.load("ml-1m")
    original = tmp_path / "ml-1m" / "original"
    original.mkdir(parents=True)
    for name in ("ml-1m.train.rating", "ml-1m.test.rating"):
        content = (SLICES / "ml-1m/original" / name).read_bytes()
        (original / f"{name}.xz").write_bytes(lzma.compress(content))
    monkeypatch.setenv("UNSAMPLE_DATA", str(tmp_path))
    second = datasets.load("ml-1m")
    for column in ("user", "item", "time"):
        np.testing.assert_array_equal(getattr(first, column), getattr(second, column))


def test_the_other_formats(slices):
    pins = datasets.load("pinterest-20")
    assert (pins.time, len(pins)) == (None, 9)
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
    assert "INCOMPLETE: about 42 %" in repr(loaded)
    assert not datasets.at_hand("yelp").complete
    assert datasets.at_hand("ml-1m") is None


def test_the_published_split_of_a_slice(slices):
    split = leave_published_out("ml-1m", validation=True)
    assert split.target_user.tolist() == [0, 1, 2, 3, 4]
    assert split.negatives.shape == (5, 3)
    assert len(split.train) + len(split.validation_user) + 5 == 25
    latest = np.zeros(6040, dtype=np.int64)
    np.maximum.at(latest, split.train.user, split.train.time)
    whole = datasets.load("ml-1m")
    time = dict(zip(whole.pair_keys().tolist(), whole.time.tolist(), strict=True))
    keys = split.validation_user * whole.items + split.validation_item
    assert (np.array([time[key] for key in keys]) >= latest[split.validation_user]).all()


def test_a_target_repeated_in_the_training_file_is_not_trained_on(slices):
    split = leave_published_out("pinterest-20")
    trained = set(zip(split.train.user.tolist(), split.train.item.tolist(), strict=True))
    assert (0, 3) not in trained
    assert len(split.train) == 6
    assert split.negatives is None


def test_what_was_not_published_says_what_to_do(slices):
    with pytest.raises(DatasetError, match=r"citeulike-a.*has none; use leave_random_out"):
        leave_published_out("citeulike-a")
    assert "leave-random-out" in datasets.standard_split("citeulike-a").name


def test_negatives_of_other_targets_are_refused(monkeypatch, tmp_path):
    folder = tmp_path / "ml-1m" / "original"
    folder.mkdir(parents=True)
    for file in (SLICES / "ml-1m/original").iterdir():
        (folder / file.name).write_bytes(file.read_bytes().replace(b"(0,4)", b"(0,5)"))
    believe(monkeypatch, tmp_path)
    with pytest.raises(FileError, match="the same users and items"):
        leave_published_out("ml-1m")


@pytest.mark.parametrize("compress", [bytes, gzip.compress, lzma.compress])
def test_wrong_content_is_refused_with_both_checksums(monkeypatch, tmp_path, compress):
    suffix = {bytes: "", gzip.compress: ".gz", lzma.compress: ".xz"}[compress]
    path = tmp_path / "citeulike-a" / f"users.dat{suffix}"
    path.parent.mkdir()
    path.write_bytes(compress(b"1 0\n" * 500))
    monkeypatch.setenv("UNSAMPLE_DATA", str(tmp_path))
    with pytest.raises(ChecksumError, match=r"expected sha256:53211d82c14ff261.*got sha256:"):
        datasets.load("citeulike-a")
    with pytest.raises(ChecksumError):
        datasets.fetch("citeulike-a")
    assert path.exists(), "a file of the user is never replaced"
    if suffix:
        path.write_bytes(path.read_bytes()[:-12])
        with pytest.raises(FileError, match=r"cannot read .*users\.dat"):
            datasets.load("citeulike-a")


def test_unsample_data_must_be_a_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("UNSAMPLE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileError, match="UNSAMPLE_DATA must name a folder"):
        datasets.load("ml-1m")


def test_importing_the_room_needs_no_extra():
    code = (
        "import sys, unsample.lab.datasets;"
        "heavy = {'pooch', 'requests', 'pyarrow', 'polars', 'scipy.stats', 'torch'};"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -- downloads --------------------------------------------------------------------------------

CONTENT = b"".join(b"%d %d\n" % (1, item) for item in range(3_000))


@pytest.fixture
def site(monkeypatch):
    """A server of our own: bodies by path, and what was asked for."""
    pytest.importorskip("pooch")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    bodies, requests = {}, []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
            body = bodies.get(self.path, b"not here")
            self.send_response(200 if self.path in bodies else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", bodies, requests
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def register(site, monkeypatch):
    """Register one data set of one file at the site."""

    def register(path="/users.dat", **changes):
        known = {
            "format": "lists",
            "address": site[0] + path,
            "size": len(CONTENT),
            "sha256": hashlib.sha256(CONTENT).hexdigest(),
        }
        table = dict.fromkeys(("title", "home", "licence"), "") | {
            "citations": [],
            "users": 3_000,
            "items": 3_000,
            "interactions": 3_000,
            "sources": [{"files": ["users.dat"]}],
            "files": {"users.dat": known | changes},
        }
        monkeypatch.setattr(_registry, "_tables", lambda: {"toy": table})

    return register


def test_a_download_is_verified_cached_and_loaded(site, register, tmp_path):
    _, bodies, requests = site
    register(sha256="", git_blob=_registry.git_blob_id(CONTENT))
    bodies["/users.dat"] = CONTENT
    assert len(datasets.load("toy")) == 3_000
    path = tmp_path / "cache" / "toy" / "users.dat"
    assert path.read_bytes() == CONTENT
    assert datasets.fetch("toy") == {"users.dat": path}
    assert len(requests) == 1
    assert [each.name for each in path.parent.iterdir()] == ["users.dat"]
    path.write_bytes(b"bad sectors")
    with pytest.raises(ChecksumError, match=r"python -m unsample\.lab fetch toy"):
        datasets.load("toy")
    assert datasets.fetch("toy")["users.dat"].read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("body", "error", "words"),
    [
        (CONTENT[:-1] + b"!", ChecksumError, "expected sha256"),
        (CONTENT * 2, ChecksumError, "expected sha256"),
        (
            None,
            DownloadError,
            r"404.*UNSAMPLE_DATA to the folder that holds toy/original/users.dat",
        ),
    ],
    ids=["wrong", "too long", "missing"],
)
def test_bad_downloads_are_refused_and_not_kept(site, register, tmp_path, body, error, words):
    register()
    if body is not None:
        site[1]["/users.dat"] = body
    with pytest.raises(error, match=words):
        datasets.load("toy")
    assert not list((tmp_path / "cache" / "toy").iterdir())


def archive(name="toy/users.dat", content=CONTENT) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as contents:
        contents.writestr(name, content)
        contents.writestr("../../outside.txt", "never written")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (archive(), None),
        (archive(name="other.dat"), "that holds toy/users.dat"),
        (archive(content=CONTENT + b"0"), "expected sha256"),
        (archive()[:2000], "must be a zip archive"),
    ],
    ids=["whole", "no member", "too large", "truncated"],
)
def test_one_member_is_taken_from_an_archive(site, register, tmp_path, body, message):
    register(path="/toy.zip", member="toy/users.dat")
    site[1]["/toy.zip"] = body
    if message is None:
        assert datasets.fetch("toy")["users.dat"].read_bytes() == CONTENT
    else:
        with pytest.raises(FileError, match=message):
            datasets.fetch("toy")
    assert not list(tmp_path.parent.rglob("outside.txt"))


def test_a_folder_that_cannot_be_written_is_named(register, tmp_path, monkeypatch):
    register()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("UNSAMPLE_CACHE", str(tmp_path / "file"))
    with pytest.raises(FileError, match="cannot write"):
        datasets.fetch("toy")


# -- pairs ----------------------------------------------------------------------------------


pairs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=40)


@given(pairs, st.data())
def test_the_latest_of_repeated_pairs_is_kept(rows, data):
    times = data.draw(st.lists(st.integers(0, 50), min_size=len(rows), max_size=len(rows)))
    user, item = zip(*rows, strict=True)
    merged = Interactions.from_pairs(user, item, time=times)
    assert list(zip(merged.user, merged.item, strict=True)) == sorted(set(rows))
    latest: dict[tuple[int, int], int] = {}
    for pair, time in zip(rows, times, strict=True):
        latest[pair] = max(latest.get(pair, -1), time)
    assert merged.time.tolist() == [latest[pair] for pair in sorted(latest)]


def test_matrix_and_counts_cover_users_and_items_without_pairs():
    rows = Interactions.from_pairs([0, 2, 2], [1, 0, 1], users=4, items=3)
    assert rows.matrix().dtype == np.float32
    assert rows.matrix().toarray().tolist() == [[0, 1, 0], [0, 0, 0], [1, 1, 0], [0, 0, 0]]
    assert rows.count_by_user().tolist() == [1, 0, 2, 0]
    assert rows.count_by_item().tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"user": [0, -1], "item": [0, 1]}, r"user must be in 0..users-1.*-1 at position 2 of 2"),
        ({"user": [0, 1], "item": [0, 5], "items": 3}, r"item must be in .*0\.\.2, got 5"),
        ({"user": [0, 1], "item": [0]}, "item must have a value for each of the 2 users, got 1"),
        ({"user": [0.5], "item": [0]}, "user must be whole numbers"),
        ({"user": [0], "item": [0], "time": [1, 2]}, "time must have a value for each"),
        ({"user": [], "item": []}, "must hold at least one pair"),
    ],
)
def test_bad_pairs_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        Interactions.from_pairs(**arguments)


# -- splits ---------------------------------------------------------------------------------


def pairs_of(user, item):
    return set(zip(user.tolist(), item.tolist(), strict=True))


@given(pairs, st.booleans(), st.integers(0, 3))
def test_splits_are_partitions(rows, validation, seed):
    user, item = zip(*rows, strict=True)
    whole = Interactions.from_pairs(user, item, users=7, items=7)
    counts = whole.count_by_user()
    if counts.max() < 2:
        with pytest.raises(DatasetError, match="more than one pair"):
            leave_random_out(whole, rng=seed, validation=validation)
        return
    split = leave_random_out(whole, rng=seed, validation=validation)
    parts = [pairs_of(split.train.user, split.train.item), pairs_of(*split.targets)]
    if validation:
        parts.append(pairs_of(split.validation_user, split.validation_item))
        held = np.bincount(split.validation_user, minlength=7)
        np.testing.assert_array_equal(held, (counts > 2).astype(int))
    assert sum(map(len, parts)) == len(whole)
    assert set.union(*parts) == pairs_of(whole.user, whole.item)
    expected = (counts > 1).astype(int)
    np.testing.assert_array_equal(np.bincount(split.target_user, minlength=7), expected)
    assert (np.diff(split.target_user) >= 0).all()
    np.testing.assert_array_equal(split.train.count_by_user() > 0, counts > 0)


def test_the_same_seed_gives_the_same_split():
    rows = synthetic(40, 60, pairs=500, rng=1)
    first, second, other = (leave_random_out(rows, rng=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.target_item, second.target_item)
    assert (first.target_item != other.target_item).any()
    again = synthetic(40, 60, pairs=500, rng=1)
    np.testing.assert_array_equal(rows.pair_keys(), again.pair_keys())
    np.testing.assert_array_equal(rows.time, again.time)


def test_a_history_has_validation_pairs_too():
    rows = synthetic(40, 60, pairs=500, rng=1)
    split = leave_random_out(rows, rng=0, validation=True)
    assert len(split.history()) == len(split.train) + len(split.validation())
    assert f"{len(split.validation())} validation pairs" in repr(split)
    plain = leave_random_out(rows, rng=0)
    assert plain.validation() is None
    assert plain.history() is plain.train


def test_a_split_of_a_part_says_so():
    rows = Interactions.from_pairs([0, 0], [0, 1], complete=False, note="a tenth of it")
    split = leave_random_out(rows, rng=0)
    assert isinstance(split, Split)
    assert (split.complete, split.note) == (False, "a tenth of it")
    assert "INCOMPLETE: a tenth of it" in repr(split)


# -- the generator --------------------------------------------------------------------------


@settings(deadline=None)
@given(st.integers(1, 30), st.integers(6, 60), st.integers(0, 10), st.data())
def test_the_size_is_as_asked(users, items, seed, data):
    pairs = data.draw(st.integers(3 * users, (items // 2) * users))
    made = synthetic(users, items, pairs=pairs, rng=seed)
    assert (made.users, made.items, len(made)) == (users, items, pairs)
    counts = made.count_by_user()
    assert counts.min() >= 3
    assert counts.max() <= items // 2
    assert sorted(made.time) == list(range(pairs))


def test_few_items_are_popular_and_few_users_busy():
    made = synthetic(3000, 1500, pairs=90_000, rng=0)
    popularity = np.sort(made.count_by_item())[::-1]
    activity = made.count_by_user()
    assert popularity[:150].sum() > 0.35 * len(made)
    # On a log-log scale popularity falls close to a line through its middle.
    places = np.arange(10, 700)
    slope, _ = np.polyfit(np.log(places + 1), np.log(popularity[places]), 1)
    assert -1.2 < slope < -0.3
    assert 1.3 < activity.mean() / np.median(activity) < 1.7
    assert np.log(activity[activity > 3]).std() == pytest.approx(0.85, abs=0.15)


def hit_rate(model, split):
    targets = (split.target_user, split.target_item)
    ranks = exact_ranks(model, targets, items=split.train.items, exclude=split.train.matrix())
    return (np.asarray(ranks.ranks) <= 10).mean()


def popularity(split):
    counts = split.train.count_by_item().astype(np.float32)
    return Scorer(score_all=lambda users: np.tile(counts, (len(users), 1)))


def test_tastes_can_be_learnt_and_without_them_popularity_is_best():
    split = leave_random_out(synthetic(1000, 400, pairs=30_000, rng=0), rng=0)
    assert hit_rate(EASE().fit(split.train), split) > 1.3 * hit_rate(popularity(split), split)
    split = leave_random_out(synthetic(1000, 400, pairs=30_000, taste=0.0, rng=0), rng=0)
    assert hit_rate(EASE().fit(split.train), split) <= 1.05 * hit_rate(popularity(split), split)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"users": 0, "items": 10}, "users must be an integer of at least 1"),
        ({"users": 10, "items": 1}, "items must be an integer of at least 2"),
        ({"users": 10, "items": 10, "pairs": 20}, r"pairs must be .*at least 30 and at most 50"),
        ({"users": 10, "items": 10, "pairs": 51}, r"a user has 3 \(fewest\) to 5 \(half"),
        ({"users": 10, "items": 10, "fewest": 6}, "fewest must be .* at most 5"),
        ({"users": 10, "items": 10, "taste": -1.0}, "taste must be a finite number of at least 0"),
        ({"users": 10, "items": 10, "factors": 0}, "factors must be"),
    ],
)
def test_bad_arguments_of_the_generator_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        synthetic(**options, rng=0)


def test_what_a_caller_does_to_bundled_ranks_stays_with_the_caller():
    first = datasets.load_ranks("ml-1m", "ease")
    first.ranks[:] = 1
    first.provenance["recommenders"]["ease"].clear()
    second = datasets.load_ranks("ml-1m", "ease")
    assert second.ranks.max() > 1
    assert second.provenance["recommenders"]["ease"]

"""Data sets: the public formats from made-up slices, pairs, splits, own files, the generator."""

from __future__ import annotations

import gzip
import lzma
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unsample.designs import Scorer, exact_ranks
from unsample.errors import ChecksumError, DatasetError, FileError, InputError
from unsample.lab import datasets
from unsample.lab.datasets import (
    Interactions,
    Split,
    _formats,
    _registry,
    leave_latest_out,
    leave_random_out,
    synthetic,
)
from unsample.lab.recommenders import EASE

SLICES = Path(__file__).parent / "data" / "datasets"
PAIR = Interactions.from_pairs([0, 0], [0, 1], name="mine")


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


# -- slices in the original formats -----------------------------------------------------------


def test_movielens_ids_are_numbered_by_first_appearance(slices):
    loaded = datasets.load("ml-1m", verify=False)
    lines = (SLICES / "ml-1m/original/ratings.dat").read_text().splitlines()
    rows = [tuple(int(field) for field in line.split("::")) for line in lines]
    movies = list(dict.fromkeys(row[1] for row in rows))
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


def test_the_other_formats(slices):
    pins = datasets.load("pinterest-20", verify=False)
    assert (pins.time, pins.rating, pins.merged, len(pins)) == (None, None, 2, 9)
    articles = datasets.load("citeulike-a", verify=False)
    assert articles.user.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 2]
    assert articles.item.tolist() == [0, 2, 5, 1, 4, 0, 1, 3, 5]
    assert (articles.complete, articles.note) == (False, "read without checksums")
    reviews = datasets.load("yelp", verify=False)
    assert reviews.merged == 1  # the latest of repeated reviews is kept
    assert reviews.rating.tolist() == [3.0, 4.0, 5.0, 1.0, 2.0, 4.5]


def test_the_published_split_of_a_slice(slices):
    split = datasets.leave_published_out("ml-1m", verify=False, validation=True)
    assert split.target_user.tolist() == [0, 1, 2, 3, 4]
    assert split.negatives.shape == (5, 3)
    assert len(split.train) + len(split.validation_user) + 5 == 25
    assert not split.complete
    assert split.note == "read without checksums"


def test_a_target_repeated_in_the_training_file_is_not_trained_on(slices):
    split = datasets.leave_published_out("pinterest-20", verify=False)
    trained = set(zip(split.train.user.tolist(), split.train.item.tolist(), strict=True))
    assert (0, 3) not in trained
    assert len(split.train) == 6
    assert split.negatives is None


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


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (
            lambda: datasets.load("yelp", download=False),
            r"fetch\('yelp'\).*UNSAMPLE_DATA.*yelp.rat",
        ),
        (
            lambda: datasets.leave_published_out("yelp", download=False),
            "yelp/original/yelp.test.rating",
        ),
        (
            lambda: datasets.leave_published_out("citeulike-a", verify=False),
            r"citeulike-a.*has none; use leave_random_out",
        ),
        (lambda: leave_latest_out(PAIR), r"mine must have times.*use leave_random_out"),
        (lambda: leave_random_out(PAIR, 0, rng=0), "per_user must be an integer of at least 1"),
        (lambda: leave_random_out(PAIR, rng=-1), "rng must be"),
        (lambda: PAIR.at_least(per_user=3), r"mine must keep some of its 2 pairs.*per_user=3"),
    ],
)
def test_what_cannot_be_loaded_or_split_says_what_to_do(use, message):
    with pytest.raises(InputError, match=message):
        use()


def test_unsample_data_must_be_a_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("UNSAMPLE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileError, match="UNSAMPLE_DATA must name a folder"):
        datasets.load("ml-1m")


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
        ("movielens", GOOD + b"1::x::3::4\n", 2, "1::x::3::4"),
        ("movielens", GOOD + b"\n" + GOOD, 2, ""),
        ("movielens", GOOD + b"1::2::3::1234567890123456\n", 2, "1::2::3::1234567890123456"),
        ("movielens", GOOD + b"1::\xe9::3::4\r\n", 2, "1::\N{REPLACEMENT CHARACTER}::3::4"),
        ("ratings", b"0\t1\t4.5\t7\n0\t1\t4.5.\t7\n", 2, "0\\t1\\t4.5.\\t7"),
        ("implicit", b"0\t1\t1\t0\n<html>\n", 2, "<html>"),
        ("lists", b"2 5 6\n3 1 2\n", 2, "3 1 2"),
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
    assert rows["item_ids"].tolist() == [2, 5]
    assert rows["user"].tolist() == [0, 0]


# -- info -------------------------------------------------------------------------------------


def test_info_tells_what_is_missing_at_hand_or_partial(monkeypatch, tmp_path):
    missing = datasets.info("ml-1m")
    assert (missing.users, missing.items, missing.interactions) == (6040, 3706, 1_000_209)
    assert (missing.at_hand, missing.complete) == (False, False)
    assert missing.published_split
    assert missing.published_negatives
    assert all(file.path is None for file in missing.files)
    monkeypatch.setenv("UNSAMPLE_DATA", str(SLICES))
    whole = datasets.info("citeulike-a")
    assert (whole.at_hand, whole.complete, whole.published_split) == (True, True, False)
    assert whole.files[0].path == SLICES / "citeulike-a/original/users.dat"
    provide(tmp_path, "yelp/partial_interactions.npz", b"")
    monkeypatch.setenv("UNSAMPLE_DATA", str(tmp_path))
    part = datasets.info("yelp")
    assert (part.at_hand, part.complete) == (True, False)
    assert "42 %" in part.note


def test_importing_the_room_needs_no_extra():
    code = (
        "import sys, unsample.lab.datasets;"
        "heavy = {'pooch', 'requests', 'pyarrow', 'polars', 'scipy.stats', 'torch'};"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -- pairs ----------------------------------------------------------------------------------


pairs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=40)


@given(pairs)
def test_repeated_pairs_are_merged_and_counted(rows):
    user, item = zip(*rows, strict=True)
    merged = Interactions.from_pairs(user, item)
    assert list(zip(merged.user, merged.item, strict=True)) == sorted(set(rows))
    assert len(merged) + merged.merged == len(rows)


@given(pairs, st.data())
def test_the_latest_of_repeated_pairs_is_kept(rows, data):
    times = data.draw(st.lists(st.integers(0, 50), min_size=len(rows), max_size=len(rows)))
    user, item = zip(*rows, strict=True)
    merged = Interactions.from_pairs(user, item, time=times, rating=np.arange(len(rows)))
    latest: dict[tuple[int, int], tuple[int, int]] = {}
    for row, (pair, time) in enumerate(zip(rows, times, strict=True)):
        latest[pair] = max(latest.get(pair, (-1, -1)), (time, row))
    assert merged.time.tolist() == [latest[pair][0] for pair in sorted(latest)]
    assert merged.rating.tolist() == [latest[pair][1] for pair in sorted(latest)]


@given(pairs, st.integers(1, 4), st.integers(1, 4))
def test_at_least_leaves_nobody_below(rows, per_user, per_item):
    user, item = zip(*rows, strict=True)
    before = Interactions.from_pairs(user, item)
    try:
        after = before.at_least(per_user=per_user, per_item=per_item)
    except DatasetError:
        return
    assert after.count_by_user().min() >= per_user
    assert after.count_by_item().min() >= per_item
    kept = set(zip(after.user_ids[after.user], after.item_ids[after.item], strict=True))
    assert kept <= set(rows)


def test_matrix_and_counts_cover_users_and_items_without_pairs():
    rows = Interactions.from_pairs([0, 2, 2], [1, 0, 1], users=4, items=3)
    assert rows.matrix().dtype == np.float32
    assert rows.matrix().toarray().tolist() == [[0, 1, 0], [0, 0, 0], [1, 1, 0], [0, 0, 0]]
    assert rows.count_by_user().tolist() == [1, 0, 2, 0]
    assert rows.count_by_item().tolist() == [1, 2, 0]
    kept = rows.at_least(per_user=2).at_least(per_item=1)
    assert (kept.user_ids.tolist(), kept.item_ids.tolist()) == ([2], [0, 1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"user": [0, -1], "item": [0, 1]},
            r"user must be in 0..users-1.*-1 at position 2 of 2",
        ),
        ({"user": [0, 1], "item": [0, 5], "items": 3}, r"item must be in .*0\.\.2, got 5"),
        ({"user": [0, 1], "item": [0]}, r"item must have shape \(2,\)"),
        ({"user": [0.5], "item": [0]}, "user must be whole numbers"),
        ({"user": [0], "item": [0], "rating": [1.0, 2.0]}, "rating must have shape"),
        ({"user": [0], "item": [0], "user_ids": np.array([1, 2])}, "user_ids must have shape"),
        ({"user": [], "item": []}, "must hold at least one pair"),
    ],
)
def test_bad_pairs_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        Interactions.from_pairs(**arguments)


def test_the_text_tells_what_is_missing():
    rows = Interactions.from_pairs([0, 0], [0, 0], name="part", complete=False, note="half of it")
    assert "1 repeated row merged" in repr(rows)
    assert "INCOMPLETE: half of it" in repr(rows)
    rows = Interactions.from_pairs([0, 0], [0, 1], complete=False, note="a tenth of it")
    split = leave_random_out(rows, rng=0)
    assert (split.complete, split.note) == (False, "a tenth of it")
    assert "INCOMPLETE: a tenth of it" in repr(split)


# -- splits ---------------------------------------------------------------------------------


@st.composite
def interactions(draw):
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, 5), st.integers(0, 8), st.integers(0, 4)),
            min_size=1,
            max_size=50,
        )
    )
    user, item, time = zip(*rows, strict=True)
    return Interactions.from_pairs(user, item, time=time, users=6, items=9)


def pairs_of(user, item):
    return set(zip(user.tolist(), item.tolist(), strict=True))


def check_partition(split: Split, whole: Interactions):
    """Targets, validation and training are disjoint and together everything."""
    parts = [
        pairs_of(split.train.user, split.train.item),
        pairs_of(split.target_user, split.target_item),
    ]
    if split.validation_user is not None:
        assert split.validation_item is not None
        parts.append(pairs_of(split.validation_user, split.validation_item))
    assert sum(map(len, parts)) == len(whole)
    assert set.union(*parts) == pairs_of(whole.user, whole.item)


@given(interactions(), st.integers(1, 3), st.booleans(), st.integers(0, 3))
@pytest.mark.parametrize("leave_out", [leave_random_out, leave_latest_out])
def test_splits_are_partitions(leave_out, rows, per_user, validation, seed):
    counts = rows.count_by_user()
    if counts.max() <= per_user:
        with pytest.raises(DatasetError, match=f"more than {per_user} pairs"):
            leave_out(rows, per_user, rng=seed, validation=validation)
        return
    split = leave_out(rows, per_user, rng=seed, validation=validation)
    check_partition(split, rows)
    expected = np.where(counts > per_user, per_user, 0)
    np.testing.assert_array_equal(np.bincount(split.target_user, minlength=6), expected)
    assert split.users_without_target == int((expected == 0).sum())
    assert (np.diff(split.target_user) >= 0).all()
    left = counts - expected
    if validation:
        assert split.validation_user is not None
        held = np.bincount(split.validation_user, minlength=6)
        np.testing.assert_array_equal(held, (left > 1).astype(int))
    np.testing.assert_array_equal(split.train.count_by_user() > 0, counts > 0)
    assert (split.train.users, split.train.items) == (6, 9)


@given(interactions(), st.integers(1, 2), st.integers(0, 3))
def test_the_latest_are_held_out(rows, per_user, seed):
    if rows.count_by_user().max() <= per_user:
        return
    split = leave_latest_out(rows, per_user, rng=seed, validation=True)
    time = dict(zip(zip(rows.user, rows.item, strict=True), rows.time, strict=True))
    targets = list(zip(split.target_user, split.target_item, strict=True))
    held_back = list(zip(split.validation_user, split.validation_item, strict=True))
    trained = list(zip(split.train.user, split.train.item, strict=True))
    for user in range(6):
        order = [
            [time[pair] for pair in part if pair[0] == user]
            for part in (trained, held_back, targets)
        ]
        for earlier, later in [(0, 1), (1, 2), (0, 2)]:
            if order[earlier] and order[later]:
                assert max(order[earlier]) <= min(order[later])


def test_the_same_seed_gives_the_same_split():
    rows = synthetic(40, 60, pairs=500, rng=1)
    first, second, other = (leave_random_out(rows, 2, rng=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.target_item, second.target_item)
    assert (first.target_item != other.target_item).any()
    again = synthetic(40, 60, pairs=500, rng=1)
    np.testing.assert_array_equal(rows.pair_keys(), again.pair_keys())
    np.testing.assert_array_equal(rows.time, again.time)


def test_equal_times_are_ordered_at_random():
    rows = Interactions.from_pairs(
        np.repeat(np.arange(3000), 4), np.tile(np.arange(4), 3000), time=np.zeros(12_000)
    )
    held_out = np.bincount(leave_latest_out(rows).target_item)
    # 3,000 draws of four items: 750 each, standard deviation 23.7.
    assert np.abs(held_out - 750).max() < 5 * 23.7


def test_unseen_targets_and_users_without_target_are_counted_and_printed():
    rows = Interactions.from_pairs([0, 0, 1], [0, 1, 1], time=[5, 9, 1], users=3)
    split = leave_latest_out(rows)
    assert (split.users_without_target, split.unseen_targets) == (2, 0)
    assert "2 users without a target" in repr(split)
    rows = Interactions.from_pairs([0, 0], [0, 1], time=[5, 9], name="mine")
    split = leave_latest_out(rows)
    assert split.unseen_targets == 1
    assert repr(split) == (
        "Split(mine leave-latest-out, 1 targets, 1 training pairs, 1 targets unseen in training)"
    )


def test_parts_of_a_split_must_fit():
    train = Interactions.from_pairs([0], [0])
    one, two = np.array([0]), np.array([0, 1])
    with pytest.raises(InputError, match="equally long, got 1 and 2"):
        Split(train=train, target_user=one, target_item=two)
    with pytest.raises(InputError, match="given together"):
        Split(train=train, target_user=one, target_item=one, validation_user=one)
    with pytest.raises(InputError, match="a row for each of the 1 targets, got 2"):
        Split(train=train, target_user=one, target_item=one, negatives=np.zeros((2, 9), int))


# -- names of the user ----------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["list", "pandas", "polars"])
def test_names_become_numbers_in_their_order(engine):
    columns = {"user": ["u2", "u1", "u2"], "item": ["tea", "rum", "tea"], "when": [30, 10, 40]}
    frame = columns if engine == "list" else pytest.importorskip(engine).DataFrame(columns)
    made = Interactions.from_pairs(frame["user"], frame["item"], time=frame["when"])
    assert made.user_ids.tolist() == ["u1", "u2"]
    assert made.item_ids.tolist() == ["rum", "tea"]
    assert (made.users, made.items, len(made), made.merged) == (2, 2, 2, 1)
    assert made.user.tolist() == [0, 1]
    assert made.item.tolist() == [0, 1]
    assert made.time.tolist() == [10, 40]
    with pytest.raises(InputError, match="user must be numbers or names throughout"):
        Interactions.from_pairs(["a", None], [0, 1])


# -- the generator --------------------------------------------------------------------------


@settings(deadline=None)
@given(st.integers(1, 30), st.integers(6, 60), st.integers(0, 10), st.data())
def test_the_size_is_as_asked(users, items, seed, data):
    pairs = data.draw(st.integers(3 * users, (items // 2) * users))
    made = synthetic(users, items, pairs=pairs, rng=seed)
    assert (made.users, made.items, len(made), made.merged) == (users, items, pairs, 0)
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

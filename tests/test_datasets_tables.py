"""`load_file`: the user's own CSV, TSV and Parquet."""

from __future__ import annotations

import gzip
import lzma

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unsample.errors import DatasetError, FileError, InputError
from unsample.lab.datasets import load_file


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        content = text.encode() if isinstance(text, str) else text
        if path.suffix == ".gz":
            content = gzip.compress(content)
        if path.suffix == ".xz":
            content = lzma.compress(content)
        path.write_bytes(content)
        return path

    return write


CSV = "user,item,stars,when\nu2,7,4,30\nu1,10,2.5,10\nu2,7,5,40\n"


def listed(values):
    assert values is not None
    return values.tolist()


def check_example(loaded):
    assert listed(loaded.user_ids) == ["u1", "u2"]
    assert listed(loaded.item_ids) == [7, 10]
    assert (loaded.users, loaded.items, len(loaded), loaded.merged) == (2, 2, 2, 1)
    assert loaded.user.tolist() == [0, 1]
    assert loaded.item.tolist() == [1, 0]
    assert listed(loaded.rating) == [2.5, 5.0]
    assert listed(loaded.time) == [10, 40]


@pytest.mark.parametrize("name", ["mine.csv", "mine.csv.gz", "mine.CSV.xz"])
def test_csv(write, name):
    check_example(load_file(write(name, CSV), rating="stars", time="when"))


def test_tsv_without_a_header(write):
    text = "\n".join(CSV.replace(",", "\t").splitlines()[1:])
    path = write("u.data", text)
    check_example(load_file(path, user=0, item=1, rating=2, time=3, separator="\t"))


def test_quotes_blank_lines_and_byte_order_marks(write):
    text = '\ufeffitem,user\n"tea, green",anna\n\n"say ""hi""",bob\n\n'
    loaded = load_file(write("mine.csv", text))
    assert listed(loaded.item_ids) == ['say "hi"', "tea, green"]


def test_parquet(tmp_path):
    polars = pytest.importorskip("polars")
    rows = {"user": ["u2", "u1", "u2"], "item": [7, 10, 7], "stars": [4.0, 2.5, 5.0]}
    table = polars.DataFrame(rows | {"when": [30, 10, 40]})
    table.write_parquet(tmp_path / "mine.parquet")
    check_example(load_file(tmp_path / "mine.parquet", rating="stars", time="when"))


def test_parquet_with_dates(tmp_path):
    polars = pytest.importorskip("polars")
    table = polars.DataFrame({"user": [1, 2], "item": [1, 1], "when": ["1970-01-02", "1970-01-01"]})
    table = table.with_columns(polars.col("when").str.to_datetime())
    table.write_parquet(tmp_path / "mine.parquet")
    assert listed(load_file(tmp_path / "mine.parquet", time="when").time) == [86400, 0]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:01:00", 60),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01 00:00:05Z", 5),
        ("1970-01-02", 86400),
        ("12.75", 12),
        ("-1", -1),
        ("1700000000123456789", 1700000000123456789),
    ],
)
def test_times_are_numbers_or_dates(write, text, seconds):
    loaded = load_file(write("mine.csv", f"user,item,time\n1,1,{text}\n"), time="time")
    assert listed(loaded.time) == [seconds]


def test_numbers_with_leading_zeros_stay_apart(write):
    loaded = load_file(write("mine.csv", "user,item\n7,1\n07,2\n"))
    assert listed(loaded.user_ids) == ["07", "7"]


def test_numbers_are_ordered_as_numbers(write):
    loaded = load_file(write("mine.csv", "user,item\n10,1\n9,2\n-3,3\n"))
    assert listed(loaded.user_ids) == [-3, 9, 10]


def test_numbers_beyond_64_bits_are_strings(write):
    loaded = load_file(write("mine.csv", f"user,item\n{2**70},1\n5,2\n"))
    assert listed(loaded.user_ids) == [str(2**70), "5"]


words = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1).map(str.strip)
rows = st.lists(st.tuples(words.filter(bool), st.integers(-5, 5)), min_size=1, max_size=30)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows)
def test_ids_come_back_through_the_maps(tmp_path, rows):
    polars = pytest.importorskip("polars")
    path = tmp_path / "mine.csv"
    users, items = zip(*rows, strict=True)
    polars.DataFrame({"user": users, "item": items}).write_csv(path, quote_style="always")
    loaded = load_file(path)
    assert loaded.user_ids is not None
    assert loaded.item_ids is not None
    back = zip(loaded.user_ids[loaded.user], loaded.item_ids[loaded.item], strict=True)
    assert {(str(user), int(item)) for user, item in back} == set(rows)


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        ("a.csv", "users,item\n1,2\n", {}, "must have a column 'user'.*did you mean users"),
        ("a.csv", "a,b\n1,2\n", {}, "got the columns a, b; say which column it is with user="),
        ("a.csv", "user,item\n1,2\n3\n", {}, "line 3: must have 2 columns.*got '3'"),
        ("a.csv", "user,item\n1,2\n3,4,5\n", {}, "line 3: must have 2 columns.*got '3,4,5'"),
        ("a.csv", "user,item\n1,2\n\n,4\n", {}, "line 4: the user must be an integer or a string"),
        ("a.csv", 'user,item\n1,"2\n', {}, "line 2: "),
        ("a.csv", "user,item,r\n1,2,3\n1,4,x\n", {"rating": "r"}, "line 3: the rating.*got 'x'"),
        ("a.csv", "user,item,r\n1,2,nan\n", {"rating": "r"}, "the rating must be a finite number"),
        ("a.csv", "user,item,t\n1,2,\n", {"time": "t"}, "line 2: the time must be .*got ''"),
        ("a.csv", f"user,item,t\n1,2,3\n1,3,{2**70}\n", {"time": "t"}, "line 3: the time must"),
        ("a.csv", "user,item,t\n1,2,soon\n", {"time": "t"}, "a number or a date"),
        ("a.csv", b"user,item\n\xff,1\n", {}, "cannot read .*utf-8"),
        ("a.txt", "user,item\n1,2\n", {}, "must end in .csv, .tsv or .parquet.*separator="),
        ("a.parquet", "user,item\n1,2\n", {}, "cannot read"),
        ("a.csv.gz", "", {"user": 5, "item": 1, "separator": "::"}, "separator must be one char"),
        ("a.csv", "1,2\n", {"user": 5, "item": 1}, "user must be an integer of at least 0 and at"),
        ("a.csv", "user,item\n1,2\n", {"user": "user", "item": 1}, "item must be a name"),
    ],
)
def test_bad_files_are_refused(write, name, text, options, message):
    with pytest.raises(InputError, match=message):
        load_file(write(name, text), **options)


@pytest.mark.parametrize("text", ["", "user,item\n", "user,item\n\n"])
def test_empty_files_are_refused(write, text):
    with pytest.raises(DatasetError, match="must hold at least one row"):
        load_file(write("a.csv", text))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileError, match=r"cannot read .*nowhere\.csv"):
        load_file(tmp_path / "nowhere.csv")
    pytest.importorskip("pyarrow")
    with pytest.raises(FileError, match=r"cannot read .*nowhere\.parquet"):
        load_file(tmp_path / "nowhere.parquet")


def test_missing_values_and_odd_types_in_parquet_are_refused(tmp_path):
    polars = pytest.importorskip("polars")
    path = tmp_path / "mine.parquet"
    polars.DataFrame({"user": [1, None], "item": [1, 2]}).write_parquet(path)
    with pytest.raises(FileError, match="row 1: the user must not be missing"):
        load_file(path)
    polars.DataFrame({"user": [1.5, 2.0], "item": [1, 2]}).write_parquet(path)
    with pytest.raises(FileError, match="user must be whole numbers"):
        load_file(path)
    polars.DataFrame({"user": [b"x"], "item": [1]}).write_parquet(path)
    with pytest.raises(FileError, match=r"row 0: the user must be an integer or a string"):
        load_file(path)
    with pytest.raises(InputError, match="user must be the name of a column"):
        load_file(path, user=0)


def test_names(write):
    path = write("mine.csv", "user,item\n1,2\n")
    assert load_file(path).name == "mine.csv"
    assert load_file(path, name="shop").name == "shop"


def test_a_hundred_thousand_rows_load_quickly(write):
    """Sanity only: a quadratic step would take minutes."""
    generator = np.random.default_rng(0)
    pairs = generator.integers(0, 5000, (100_000, 2))
    text = "user,item\n" + "".join(f"u{user},{item}\n" for user, item in pairs)
    loaded = load_file(write("mine.csv", text))
    assert len(loaded) + loaded.merged == 100_000

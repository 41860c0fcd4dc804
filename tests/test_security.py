"""What SECURITY.md promises: nothing foreign is run, obeyed, or unpacked without limit."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import re
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unsample
from tests.pages import ITEMS, SAMPLED, sampled_ranks
from tests.readers import read_counts, read_targets
from unsample import report
from unsample._archives import read_arrays
from unsample._rules import printable
from unsample.adapters import trec
from unsample.counts import RankCounts
from unsample.errors import FileError

SOURCE = Path(unsample.__file__).parent

# -- nothing foreign is run -----------------------------------------------------------------------


def test_no_source_can_run_what_a_file_holds():
    """The linter refuses eval, pickles and shells; this is what it does not know."""
    unknown = re.compile(r"allow_pickle=True|cloudpickle|joblib|yaml|runpy|torch\.load|__import__")
    found = {
        (path.relative_to(SOURCE).as_posix(), word)
        for path in SOURCE.rglob("*.py")
        for word in unknown.findall(path.read_text(encoding="utf-8"))
    }
    # It sends the caller's own function to the caller's own cluster; no file is read.
    assert found == {("adapters/spark.py", "cloudpickle")}


def test_templates_mark_nothing_safe_but_their_own_style_and_script():
    marked = [
        match
        for path in (SOURCE / "report" / "templates").iterdir()
        for match in re.findall(r"\{\{[^}]*\|\s*safe[^}]*\}\}", path.read_text(encoding="utf-8"))
    ]
    assert sorted(marked) == ["{{ script | safe }}", "{{ style | safe }}"]


class Bomb:
    """Notices when it is unpickled."""

    went_off = False

    def __reduce__(self):
        return setattr, (Bomb, "went_off", True)


def _read_ranks(path):
    return read_counts(str(path), items=100, sampled=9)[""]


@pytest.mark.parametrize("read", [_read_ranks, RankCounts.load])
def test_pickles_in_files_are_not_opened(tmp_path, read):
    path = tmp_path / "evil.npz"
    path.write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(FileError):
        read(path)
    np.savez(path, rank=np.array([Bomb()], dtype=object))
    with pytest.raises(FileError):
        read(path)
    assert not Bomb.went_off
    pickle.loads(pickle.dumps(Bomb()))
    assert Bomb.went_off  # it would have gone off
    Bomb.went_off = False


# -- bombs ----------------------------------------------------------------------------------------


def _zip(member: bytes, method: int = zipfile.ZIP_DEFLATED) -> io.BytesIO:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", method) as archive:
        archive.writestr("rank.npy", member)
    packed.seek(0)
    return packed


def _array(shape: str, content: bytes = b"", kind: str = "<i8") -> bytes:
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + content


@pytest.mark.parametrize(
    "member",
    [
        _array("(1000000000000,)"),
        _array("(99999999999999999999, 9)", b"x" * 64),
        _array("(2,)", bytes(16), kind="|O"),
        _array("(2,)", bytes(16), kind="<U9999999999"),
        _array("(1,)", b"\xff\xff\xff\x7f", kind="<U1"),
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}",
    ],
)
def test_arrays_that_claim_too_much_are_refused(member):
    with pytest.raises(FileError, match="as NPZ"):
        read_arrays(_zip(member), "the file")


def test_what_unpacks_to_far_more_is_refused(monkeypatch):
    zeros = _array("(1000000,)", bytes(8_000_000))
    assert len(read_arrays(_zip(zeros), "small enough")["rank"]) == 1_000_000
    monkeypatch.setattr("unsample._archives._HARMLESS", 1 << 20)
    with pytest.raises(FileError, match="must not unpack to more than 100 times its size"):
        read_arrays(_zip(zeros), "the file")
    plain = read_arrays(_zip(zeros, zipfile.ZIP_STORED), "as large as it says")
    assert not plain["rank"].any()


def test_compressed_text_bombs_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("unsample._archives._HARMLESS", 1 << 20)
    (tmp_path / "run.txt.gz").write_bytes(gzip.compress(b"q Q0 d 1 1 t\n" * 500_000))
    with pytest.raises(FileError, match="must not unpack to more than 100 times its size"):
        trec.targets(tmp_path / "run.txt.gz", {"q": {"d": 1}}, items=9)


def test_one_long_text_does_not_make_all_of_them_long(tmp_path):
    """An array of text is as wide as its longest: one cell could ask for gigabytes."""
    ranks = tmp_path / "ranks.csv"
    ranks.write_text("user,rank\n" + "a,1\n" * 20_000 + f"{'x' * 130_000},2\n")
    with pytest.raises(FileError, match="must be of similar length"):
        read_targets(ranks, items=100, sampled=9)


# -- downloads ------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["http://169.254.169.254/x.parquet", "file:///etc/passwd"])
def test_engines_are_not_sent_anywhere(address):
    with pytest.raises(FileError, match="source must be on this machine"):
        read_counts(address, items=100, sampled=9)


# -- pages and tables -----------------------------------------------------------------------------

EVIL = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "<!-- ",
    "]]><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt;",
    "\u2028\x1b[31m\ud800",
)


class Shape(HTMLParser):
    """Notes the tags of a page and the names of their attributes, in their order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, ...]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, *(name for name, _ in attrs)))

    def handle_comment(self, data):
        self.found.append(("comment",))


def _compared(names: list[str]) -> unsample.Comparison:
    shapes = (0.3, 0.5, 1.0)
    models = {name: sampled_ranks(shape)[:60] for name, shape in zip(names, shapes, strict=True)}
    options = {"items": ITEMS, "sampled": SAMPLED, "metrics": ["Recall@100"]}
    return unsample.compare(models, **options)


@pytest.mark.parametrize("start", range(0, len(EVIL), 3))
def test_names_change_no_page_but_their_own_words(start):
    names = list(EVIL[start : start + 3])
    evil, plain = _compared(names), _compared(["aaa", "bbb", "ccc"])
    for page in (report.as_html, lambda result: result._repr_html_()):
        assert Shape(page(evil)).found == Shape(page(plain)).found
    one = unsample.exact([1, 5, 9], items=20, metrics=["Recall@5"])
    groups = (report.as_html({"a": one, name: one}) for name in ("b", names[0]))
    assert len({tuple(Shape(page).found) for page in groups}) == 1
    text = report.as_html(evil)
    text.encode("utf-8")
    for script in re.findall(r'<script type="application/json">(.*?)</script>', text, re.DOTALL):
        assert "<" not in script
        json.loads(script)


def test_reports_hold_no_paths_names_or_secrets(tmp_path, run, monkeypatch):
    monkeypatch.setenv("UNSAMPLE_TEST_TOKEN", "hunter2-secret")
    folder = tmp_path / "private-folder"
    folder.mkdir()
    (folder / "ranks.csv").write_text("rank\n" + "1\n3\n9\n" * 50)
    page = folder / "page.html"
    options = ("--items", 100, "--sampled", 9, "--method", "mle")
    code, out, _ = run("estimate", folder / "ranks.csv", *options, "--html", page, "--json")
    assert code == 0
    for text in (page.read_text(encoding="utf-8"), out):
        for private in ("private-folder", "hunter2", str(Path.home()), os.uname().nodename):
            assert private not in text or private in {"/", "localhost"}


# -- terminals ------------------------------------------------------------------------------------

ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eabc"
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def test_names_have_no_power_over_the_terminal(tmp_path, run):
    path = tmp_path / "ranks.jsonl"
    rows = [{"rank": rank, "model": name} for rank in range(1, 10) for name in (ESCAPE, "b")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = ("--items", 100, "--sampled", 9, "-m", "Recall@20", "--by", "model")
    for verb in (("estimate", path, "--method", "mle"), ("compare", path)):
        code, out, err = run(*verb, *options)
        assert code == 0
        assert "\\x1b]0;owned\\x07" in out
        assert not UNSAFE.search(out + err)


def test_messages_about_foreign_columns_are_harmless_and_short(tmp_path, run):
    path = tmp_path / "ranks.csv"
    path.write_text(",".join(f"{ESCAPE}{number}" for number in range(5000)) + "\n1" + ",1" * 4999)
    code, _, err = run("estimate", path, "--items", 100, "--sampled", 9)
    assert code == 2
    assert len(err) < 5_000
    assert "letters left out" in err
    assert not UNSAFE.search(err)


@given(st.text())
def test_printable_text_is_printable_and_plain_text_is_unchanged(text):
    shown = printable(text)
    assert not UNSAFE.search(shown)
    shown.encode("utf-8")
    if text.isprintable():
        assert shown == text

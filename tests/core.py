"""What must work with numpy, scipy, DuckDB, threadpoolctl and click alone, without any extra.

``make core`` runs this file in an environment that has nothing else, and `test_core.py` in one that
hides the libraries of the extras. So it imports no more than these, and pytest.
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
import io
import json
import lzma
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pytest

import unsample
from unsample.errors import MissingExtraError

ROOT = Path(__file__).parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]
#: The libraries that extras bring, and others that the code asks for, as they are imported.
OPTIONAL = (
    "implicit", "ir_measures", "jinja2", "matplotlib", "pandas", "polars", "pooch", "pyarrow",
    "pyspark", "torch", "torchmetrics",
)  # fmt: skip
Columns = dict[str, np.ndarray]

# -- tables ----------------------------------------------------------------------------------------

USERS, SIZE = 60, 12
rng = np.random.default_rng(5)
#: Names of users, items and models that are text, as they mostly are.
RANKS: Columns = {
    "model": np.repeat(["ALS", "Ünïcode"], USERS),
    "user": np.tile([f"u{n}" for n in range(USERS)], 2),
    "rank": rng.integers(1, SIZE + 1, 2 * USERS),
}
SCORES: Columns = {
    "model": np.repeat(["ALS", "Ünïcode"], USERS * SIZE),
    "user": np.tile(np.repeat([f"u{n}" for n in range(USERS)], SIZE), 2),
    "item": np.tile([f"i{n}" for n in range(SIZE)], 2 * USERS),
    "score": rng.permutation(2 * USERS * SIZE) / 8,
    "target": np.tile(np.arange(SIZE) == 0, 2 * USERS),
}
OPTIONS: dict[str, Any] = {"items": 100, "metrics": ["Recall@10", "NDCG@10"]}


def _text(table: Columns, mark: str = ",") -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=mark)
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))
    return text.getvalue().encode()


def _rows(table: Columns) -> list[dict[str, Any]]:
    columns = [values.tolist() for values in table.values()]
    return [dict(zip(table, row, strict=True)) for row in zip(*columns, strict=True)]


def _json_lines(table: Columns) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in _rows(table)).encode()


def _npz(table: Columns) -> bytes:
    content = io.BytesIO()
    np.savez(content, **table)
    return content.getvalue()


def _in_file(name: str, content: Callable[[Columns], bytes]) -> Callable[..., Any]:
    def give(table: Columns, folder: Path, _: pytest.MonkeyPatch) -> str:
        folder.joinpath(name).write_bytes(content(table))
        return str(folder / name)

    return give


def _relation(table: Columns, *_: object) -> Any:
    columns = {name: values.astype(object) for name, values in table.items()}
    database = duckdb.connect()
    database.register("given", columns)
    # Only pandas holds enumerations.
    kept = "SELECT * REPLACE (CAST(user AS names) AS user) FROM given"
    database.execute("CREATE TYPE names AS ENUM (SELECT DISTINCT user FROM given)")
    database.execute(f"CREATE TABLE kept AS {kept}")
    return database.table("kept")


def _parquet(table: Columns, folder: Path, patch: pytest.MonkeyPatch) -> str:
    path = folder / "table.parquet"
    _relation(table, folder, patch).write_parquet(str(path))
    return str(path)


def _standard_input(table: Columns, _: Path, patch: pytest.MonkeyPatch) -> str:
    patch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(_text(table))))
    return "-"


def _folder(table: Columns, folder: Path, _: pytest.MonkeyPatch) -> Path:
    half = len(table["user"]) // 2
    folder.joinpath("parts").mkdir()
    for name, part in {"a": slice(half), "b": slice(half, None)}.items():
        rows = {key: values[part] for key, values in table.items()}
        folder.joinpath("parts", f"{name}.csv").write_bytes(_text(rows))
    return folder / "parts"


def _swapped(values: np.ndarray) -> np.ndarray:
    """Return values as machines of the other order of bytes write them."""
    return values.astype(values.dtype.newbyteorder())


READERS: dict[str, Callable[..., Any]] = {
    "csv": _in_file("table.csv", _text),
    "tsv": _in_file("table.tsv", lambda table: _text(table, "\t")),
    "csv.gz": _in_file("table.csv.gz", lambda table: gzip.compress(_text(table), 1)),
    "csv.xz": _in_file("table.csv.xz", lambda table: lzma.compress(_text(table), preset=0)),
    "jsonl": _in_file("table.jsonl", _json_lines),
    "npz": _in_file("table.npz", _npz),
    "parquet": _parquet,
    "folder": _folder,
    "standard input": _standard_input,
    "duckdb": _relation,
    "mapping": lambda table, *_: table,
    "mapping of lists": lambda table, *_: {key: each.tolist() for key, each in table.items()},
    "mapping of objects": lambda table, *_: {
        key: each.astype(object) for key, each in table.items()
    },
    "mapping of swapped bytes": lambda table, *_: {
        key: _swapped(each) for key, each in table.items()
    },
    "npz of swapped bytes": _in_file(
        "table.npz", lambda table: _npz({key: _swapped(each) for key, each in table.items()})
    ),
    "mapping of bytes": lambda table, *_: {
        key: np.char.encode(each, "utf-8") if each.dtype.kind == "U" else each
        for key, each in table.items()
    },
}


@pytest.fixture(params=READERS)
def given(request, tmp_path, monkeypatch):
    """Give a function from columns to a source that one reader takes."""
    return lambda table: READERS[request.param](table, tmp_path, monkeypatch)


def _ranks_of(model: str) -> Columns:
    """Return the ranks that scored rows without ties have, by nothing but numpy."""
    mine = SCORES["model"] == model
    scores = SCORES["score"][mine].reshape(USERS, SIZE)
    return {
        "ranks": 1 + (scores[:, 1:] > scores[:, :1]).sum(axis=1),
        "users": SCORES["user"][mine].reshape(USERS, SIZE)[:, 0],
    }


@pytest.mark.parametrize("rows", ["ranks", "scores"])
def test_every_reader_estimates_from_text_ids(given, rows):
    found = unsample.estimate(
        given(RANKS if rows == "ranks" else SCORES),
        by="model",
        **OPTIONS | ({"sampled": SIZE - 1} if rows == "ranks" else {}),
    )
    for model in ("ALS", "Ünïcode"):
        mine = RANKS["model"] == model
        same = {"ranks": RANKS["rank"][mine], "users": RANKS["user"][mine]}
        same = same if rows == "ranks" else _ranks_of(model)
        alone = unsample.estimate(same["ranks"], users=same["users"], sampled=SIZE - 1, **OPTIONS)
        assert found[model].rows() == alone.rows()


def test_every_reader_compares_scored_lists(given):
    found = unsample.compare(given(SCORES), by="model", **OPTIONS)
    ranks = {model: _ranks_of(model)["ranks"] for model in ("ALS", "Ünïcode")}
    expected = unsample.compare(ranks, sampled=SIZE - 1, **OPTIONS)
    assert (found.matched, found.models) == ("user", ("ALS", "Ünïcode"))
    for one, other in zip(found.rows(), expected.rows(), strict=True):
        assert one["value"] == pytest.approx(other["value"])


def test_every_reader_gives_full_ranks_and_drawn_items(given):
    full = {key: RANKS[key][:USERS] for key in ("user", "rank")}
    exact = unsample.exact(given(full), items=100, metrics="NDCG@10")
    straight = unsample.exact(full["rank"], users=full["user"], items=100, metrics="NDCG@10")
    assert exact["NDCG@10"].value == straight["NDCG@10"].value


def test_every_reader_gives_what_an_audit_needs(given):
    drawn = np.random.default_rng(2).integers(0, 50, USERS * 20).reshape(USERS, 20)
    names = np.repeat([f"u{n}" for n in range(USERS)], 20)
    audit = unsample.audit(given({"user": names, "item": drawn.ravel()}), items=50)
    assert audit.to_dict()["targets"] == USERS


def test_names_among_numbers_are_read_wherever_they_stand():
    """DuckDB looks at every few rows of objects, and saw nothing but numbers here."""
    users = np.array([f"u{n}" if n % 2 else n for n in range(4000)], dtype=object)
    ranks = np.arange(4000) % SIZE + 1
    design = {"sampled": SIZE - 1, **OPTIONS}
    found = unsample.estimate({"user": users, "rank": ranks}, **design)
    assert found.rows() == unsample.estimate(ranks, users=users.astype(str), **design).rows()


# -- what an extra brings --------------------------------------------------------------------------


def _estimate() -> Any:
    return unsample.estimate(RANKS["rank"], sampled=SIZE - 1, **OPTIONS)


def _frame(backend: str | None) -> Callable[[Path], Any]:
    return lambda _: _estimate().to_frame(backend)


def _adapter(module: str) -> Callable[[Path], Any]:
    return lambda _: importlib.import_module(f"unsample.adapters.{module}")


def _trec(folder: Path) -> Any:
    path = folder / "run.txt"
    path.write_text("q1 Q0 d1 1 0.9 tag\n", encoding="utf-8")
    return importlib.import_module("unsample.adapters.trec").targets(path, path, items=100)


NEEDS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "any frame": (_frame(None), "'unsample[frames]'"),
    "Polars": (_frame("polars"), "'unsample[frames]'"),
    "PyArrow": (_frame("pyarrow"), "'unsample[frames]'"),
    "pandas": (_frame("pandas"), "pandas"),
    "page": (lambda folder: _estimate().to_html(folder / "a.html"), "'unsample[report]'"),
    "plot": (lambda _: unsample.report.plot(_estimate()), "'unsample[report]'"),
    "TREC": (_trec, "ir-measures"),
    "TorchMetrics": (_adapter("torchmetrics"), "'unsample[torchmetrics]'"),
}


@pytest.mark.parametrize("name", NEEDS)
def test_what_needs_an_extra_says_so_in_one_line(name, tmp_path):
    call, install = NEEDS[name]
    with pytest.raises(MissingExtraError) as caught:
        call(tmp_path)
    message = str(caught.value)
    assert f"pip install {install}" in message
    assert "\n" not in message
    assert [
        extra for extra in re.findall(r"unsample\[(\w+)\]", message) if extra not in EXTRAS
    ] == []


def _command(*words: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    call = [sys.executable, "-m", "unsample", *words]
    return subprocess.run(call, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("option", ["--html=a.html", "--plot=a.png"])
def test_the_command_names_the_extra_before_it_works(option, tmp_path):
    done = _command("estimate", "no.csv", "--items=100", "--sampled=9", option, folder=tmp_path)
    assert done.returncode == 3
    assert "pip install 'unsample[report]'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


# -- the README ------------------------------------------------------------------------------------

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_readme_prints_what_its_commands_print():
    call = [sys.executable, "tools/refresh_docs.py", "--check", "README.md"]
    done = subprocess.run(call, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("line", re.findall(r"`(unsample [^`]+)`", README))
def test_commands_within_lines_of_readme_run(line):
    done = _command(*shlex.split(line)[1:])
    assert (done.returncode, bool(done.stdout)) == (0, True), done.stderr


# -- the environment -------------------------------------------------------------------------------


def test_no_library_of_an_extra_is_here():
    assert [name for name in OPTIONAL if importlib.util.find_spec(name)] == []

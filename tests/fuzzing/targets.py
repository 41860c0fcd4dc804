"""The doors through which foreign text and files come in, each with examples of its format."""

from __future__ import annotations

import contextlib
import functools
import gzip
import io
import json
import lzma
import sys
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import SimpleNamespace
from unittest import mock

import numpy as np

from tests.fuzzing.mutation import Mutator, repacked
from unsample import estimators, metrics
from unsample.adapters import trec
from unsample.answers import audit
from unsample.answers._printed import read_numbers
from unsample.cli.options import named
from unsample.designs import Tally
from unsample.designs._findings import Notes
from unsample.designs._run import Checkpoint, State
from unsample.errors import UnsampleWarning
from unsample.evidence import RankCounts
from unsample.lab import recommenders
from unsample.lab.datasets import Interactions, _files, _formats, _registry
from unsample.lab.paper import SCHEMA, Spec, load_results
from unsample.lab.paper._cells import CellResult, Ranks
from unsample.lab.paper._folder import RunFolder
from unsample.lab.paper._tables import write_json, write_rows
from unsample.tables import read_counts, read_targets

__all__ = ["Target", "all_targets"]

_SAMPLED = 9
_ITEMS = 100
_ROLES = b"rank better tied count sampled items weight user model score target".split()


@dataclass(frozen=True)
class Target:
    """A parser, examples of what it reads, and words that mean something to it."""

    name: str
    parse: Callable[[bytes], object]
    seeds: Sequence[bytes]
    tokens: Sequence[bytes] = ()
    #: How an example is changed so that the outer layer of its format stays whole.
    inside: Callable[[Mutator, bytes], bytes] | None = None
    #: Takes microseconds: nothing is written, nothing unpacked, and no engine asked.
    cheap: bool = False

    def inputs(self, seed: int) -> Iterable[bytes]:
        """Give inputs without end, the same for the same seed."""
        mutator = Mutator(Random(f"{self.name} {seed}"), self.seeds, self.tokens)
        while True:
            yield self.changed(mutator)

    def changed(self, mutator: Mutator, data: bytes | None = None) -> bytes:
        """Return a changed example; most often inside its layer, where there is one."""
        if self.inside is None or mutator.random.random() < 0.25:
            return mutator.new() if data is None else mutator.changed(data)
        try:
            return self.inside(mutator, mutator.random.choice(self.seeds) if data is None else data)
        except _NOT_WHOLE:
            return mutator.changed(data or b"")


_NOT_WHOLE = (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error, zipfile.BadZipFile,
              RuntimeError, NotImplementedError)  # fmt: skip


def all_targets(folder: Path) -> dict[str, Target]:
    """Return every target by name; those that read files write them into ``folder``."""
    groups = (_rank_files, _saved_files, _names, _data_sets, _run_folders, _trec_files)
    found = [target for group in groups for target in group(_Desk(folder))]
    # The longest come last, so that a run that is stopped has seen most of them.
    return {target.name: target for target in sorted(found, key=lambda one: one.name in _ENGINES)}


_ENGINES = ("rank-parquet", "rank-parquet-by-target")


@dataclass(frozen=True)
class _Desk:
    """A folder in which inputs become files."""

    folder: Path

    def reader(self, name: str, read: Callable[[str], object]) -> Callable[[bytes], object]:
        path = self.folder / name

        def parse(data: bytes) -> object:
            path.write_bytes(data)
            return read(str(path))

        return parse


# -- rank files ---------------------------------------------------------------------------------

_CSV = (
    b"rank\n1\n3\n10\n",
    b"1\n2\n10\n",
    b"user,rank,model\nann,1,a\nbob,4,b\nann,10,a\n",
    b"rank,count,sampled,items,weight\n1,5,9,100,1\n2,3,19,50,0.5\n",
    b"better,tied,model\n0,0,a\n3,2,b\n9,0,a\n",
    b'\xef\xbb\xbf"rank","model"\r\n1,"x, y"\r\n2,"a ""b"""\r\n',
)
_SCORED = (b"user,score,target\na,0.5,1\na,0.25,0\nb,1,1\nb,-3,0\n",)
_DRAWN = (
    b"user,item\na,0\na,5\nb,99\nb,5\n",
    b"user,item,target\na,0,1\na,5,0\nb,99,false\nb,7,true\nb,7,0\n",
)
_JSONL = (
    b'{"rank": 1}\n{"rank": 3, "model": "a"}\n',
    b'{"user": "u", "rank": 2, "weight": 0.5, "model": "b"}\n{"rank": 10.0, "weight": 1}\n',
    b"1\n2\n10\n",
    b'{"better": 0, "tied": 1, "items": 100, "sampled": 9, "count": 3}\n',
)


def _tables() -> list[dict[str, object]]:
    return [
        {"rank": [1, 3, 10]},
        {"rank": [1, 2], "user": ["ann", "bob"], "model": ["a", "b"], "weight": [1.0, 0.5]},
        {"better": [0, 3], "tied": [0, 2], "items": [100, 50], "sampled": [9, 9]},
        {"user": [1, 1, 2, 2], "score": [0.5, 0.1, 2.0, 1.0], "target": [True, False, True, False]},
    ]


def _npz(**arrays: object) -> bytes:
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]
    return content.getvalue()


def _parquet(table: dict[str, object]) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    content = io.BytesIO()
    # Plain and uncompressed, so that a changed byte is a changed value or length.
    parquet.write_table(pa.table(table), content, compression="none", use_dictionary=False)
    return content.getvalue()


def _options(data: bytes) -> dict[str, object]:
    """Return a design and a column to group by, given or left out as the input happens to be."""
    chance = zlib.crc32(data)
    given = {"items": _ITEMS, "sampled": _SAMPLED} if chance & 3 else {}
    return {"by": "model" if chance & 4 else None, "replacement": bool(chance & 8), **given}


def _audited(desk: _Desk) -> Callable[[bytes], object]:
    path = desk.folder / "negatives.csv"

    def parse(data: bytes) -> None:
        path.write_bytes(data)
        str(audit(path, items=_ITEMS, exclude=path if zlib.crc32(data) & 1 else None))

    return parse


def _rank_files(desk: _Desk) -> Iterable[Target]:
    npz = [_npz(**{k: np.array(v) for k, v in t.items()}) for t in _tables()]
    parquet = [_parquet(table) for table in _tables()]
    words = (*_ROLES, b",", b"\n", b'"', b"\t")

    def reads(name: str) -> Callable[[bytes], object]:
        path = desk.folder / name

        def parse(data: bytes) -> None:
            path.write_bytes(data)
            with _single_thread(), _pooling_ignored():
                read_counts(path, **_options(data))  # type: ignore[arg-type]

        return parse

    def pairs(name: str) -> Callable[[bytes], object]:
        path = desk.folder / name

        def parse(data: bytes) -> None:
            path.write_bytes(data)
            with _single_thread(), _pooling_ignored():
                found = read_targets(path, **_options(data))  # type: ignore[arg-type]
            for group in found.values():
                repr(group if isinstance(group, RankCounts) else group.counts)

        return parse

    csv = _CSV + _SCORED
    tsv = [text.replace(b",", b"\t") for text in csv]
    yield Target("rank-csv", reads("ranks.csv"), csv, words)
    yield Target("rank-tsv", reads("ranks.tsv"), tsv, words)
    yield Target("rank-jsonl", reads("ranks.jsonl"), _JSONL, (*words, b"{", b"}", b":"))
    yield Target("rank-npz", reads("ranks.npz"), npz, _ROLES, repacked)
    yield Target("rank-csv-by-target", pairs("targets.csv"), csv, words)
    yield Target("rank-jsonl-by-target", pairs("targets.jsonl"), _JSONL, words)
    yield Target("rank-parquet-by-target", pairs("targets.parquet"), parquet, _ROLES)
    yield Target("rank-parquet", reads("ranks.parquet"), parquet, _ROLES)
    negatives = (*words, b"item", b"target", b"-1", b"99", b"100", b"nan")
    yield Target("negatives-csv", _audited(desk), _DRAWN, negatives)
    # Parquet is left to the targets above: a database for each input would take too long.
    everything = [*csv, *tsv, *_JSONL, *npz]
    yield Target("rank-standard-input", _from_standard_input, everything, words, cheap=True)


@functools.cache
def _database() -> object:
    import duckdb

    return duckdb.connect(config={"threads": 1})


@contextlib.contextmanager
def _single_thread() -> Iterator[None]:
    """Give all inputs one database of one thread: opening it takes far longer than reading."""
    database = _database()
    with mock.patch("duckdb.connect", return_value=database):
        yield


@contextlib.contextmanager
def _pooling_ignored() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        yield


def _from_standard_input(data: bytes) -> None:
    before, sys.stdin = sys.stdin, SimpleNamespace(buffer=io.BytesIO(data))  # type: ignore[assignment]
    try:
        with _pooling_ignored():
            read_counts("-", **_options(data))  # type: ignore[arg-type]
    finally:
        sys.stdin = before


# -- files that unsample wrote ------------------------------------------------------------------


def _written(desk: _Desk, name: str, write: Callable[[Path], object]) -> bytes:
    path = desk.folder / f"example.{name}"
    write(path)
    return path.read_bytes()


def _saved_files(desk: _Desk) -> Iterable[Target]:
    counts = [
        RankCounts.from_ranks([1, 3, 10], items=_ITEMS, sampled=_SAMPLED),
        RankCounts.from_ranks([1, 2], items=[50, 60], sampled=[9, 19], weights=[1, 0.5]),
    ]
    for kind in ("json", "npz"):
        seeds = [_written(desk, f"counts.{kind}", one.save) for one in counts]
        inside = repacked if kind == "npz" else None
        load = desk.reader(f"counts.{kind}", RankCounts.load)
        yield Target(f"saved-counts-{kind}", load, seeds, _ROLES, inside)
    point = Checkpoint(desk.folder / "point.npz", "identity", np.array([0.5, 1.0]))
    point.save(State(Tally.empty(3), Notes.empty(3), np.array([1, 2, 3]), 7), now=True)
    load_point = desk.reader("point.npz", lambda _: point.load())
    yield Target("checkpoint", load_point, [point.path.read_bytes()], (), repacked)
    yield Target(
        "saved-recommender",
        desk.reader("model.npz", lambda path: recommenders.load(path).score_all([0])),
        [_written(desk, f"{name}.npz", model.save) for name, model in _fitted()],
        (b"popularity", b"ease", b"hyperparameters", b"users", b"items", b"null"),
        repacked,
    )


def _fitted() -> Iterable[tuple[str, recommenders.Recommender]]:
    pairs = Interactions.from_pairs([0, 0, 1, 1, 2], [0, 1, 1, 2, 0])
    for name in ("popularity", "ease", "itemknn"):
        yield name, recommenders.create(name).fit(pairs)


# -- names and arguments ------------------------------------------------------------------------


def _text(data: bytes) -> str:
    # As the command line has it: bytes that are no UTF-8 arrive as lone surrogates.
    return data.decode("utf-8", "surrogateescape")


def _names(desk: _Desk) -> Iterable[Target]:
    families = [name.encode() for name in metrics.REGISTRY]
    yield Target(
        "metric-name",
        lambda data: _round_trip(metrics.parse(_text(data)), metrics.parse),
        [b"NDCG@10", b"recall@1", b"AUC", b" hr @ 50 ", b"Precision@+7"],
        (*families, b"@", b" "),
        cheap=True,
    )
    yield Target(
        "method-name",
        lambda data: _round_trip(estimators.parse(_text(data)), estimators.parse),
        [b"mle", b"mle(iterations=converged)", b"bv(gamma=0.01)", b"mes(eta=1e-4, scaling=later)",
         b"wmle(weight=ndcg)", b"map(strength=2)", b"recall_map(kind=bound)", b"AUTO()"],
        [*(name.encode() for name in estimators.REGISTRY), b"(", b")", b"=", b",", b"iterations",
         b"base", b"gamma", b"eta", b"strength", b"weight", b"kind"],
        cheap=True,
    )  # fmt: skip
    yield Target("published-number", _published, _PUBLISHED, (*families, b"HR@", b"="), cheap=True)
    (desk.folder / "ranks.txt").write_bytes(_CSV[2])
    yield Target(
        "model-argument",
        _models_reader(desk.folder),
        [b"a=ranks.txt", b"a=ranks.txt\nb=ranks.txt"],
        (b"ranks.txt", b"=", b"\n", b"=-", b"*", b"["),
    )
    roles = [b"rank=position", b"item", b"rank=r\nitems=n", b"user = who"]
    parse = lambda data: named(_arguments(data), "column", "ROLE=NAME")  # noqa: E731 - as the others
    yield Target("column-argument", parse, roles, _ROLES, cheap=True)
    yield Target(
        "experiment-spec",
        _spec,
        [b"ml-1m\nall\nease als\nMLE|bv(gamma=0.01)", b"yelp citeulike-a\nunseen\n\nmes"],
        [b"ml-1m", b"unseen", b"ease", b"MLE", b"WMLE", b"|", b"\n", b"auto"],
    )


_PUBLISHED = (
    b"HR@1=0.18\nHR@10=0.690",
    b"NDCG@10=0.412\nMRR=0.33",
    b"HR@5=51.2",
    b"AUC=0.87",
)


def _models_reader(folder: Path) -> Callable[[bytes], object]:
    def parse(data: bytes) -> object:
        # Names lead nowhere but into the folder, however they are changed.
        arguments = _arguments(data.replace(b"/", b"").replace(b"..", b""))
        before, sys.stdin = sys.stdin, SimpleNamespace(buffer=io.BytesIO(_CSV[0]))  # type: ignore[assignment]
        try:
            with contextlib.chdir(folder):
                files = named(arguments, "each model", "NAME=FILE").values()
                return [read_targets(path, items=_ITEMS, sampled=_SAMPLED) for path in files]
        finally:
            sys.stdin = before

    return parse


def _arguments(data: bytes) -> list[str]:
    # No argument of a command holds a zero byte.
    return _text(data.replace(b"\0", b"")).split("\n")


def _round_trip(value: object, parse: Callable[[str], object]) -> None:
    if parse(str(value)) != value:
        raise AssertionError(f"{value} must parse to itself, got {parse(str(value))}")


def _published(data: bytes) -> None:
    for percent in (False, True):
        numbers = named(_arguments(data), "a number", "METRIC=VALUE")
        read = read_numbers(numbers, sampled=99, users=6040, decimals=None, percent=percent)
        str(read)


def _spec(data: bytes) -> None:
    texts = [*_text(data).split("\n"), "", "", "", ""]
    spec = Spec.choose(
        datasets=texts[0].split(),
        candidates=texts[1].split(),
        recommenders=texts[2].split(),
        estimators=[text for text in texts[3].split("|") if text],
        repeats=2,
    )
    json.dumps(spec.to_dict(), allow_nan=False)
    for cell in spec.tables():
        spec.labels_of(cell)


# -- data sets ----------------------------------------------------------------------------------

_LINES = {
    "movielens": b"1::1193::5::978300760\n1::661::3.5::978302109\n2::1193::4::978298413\n",
    "ratings": b"0\t32\t4\t978824330\n0\t34\t4.5\t978824330\n1\t32\t3\t1\n",
    "implicit": b"0\t14\t1\t0\n1\t2\t1\t0\n",
    "lists": b"2 1 5\n0\n3 7 8 9\n",
}
_NEGATIVES = b"(0,25)\t1064\t174\n(1,133)\t5\t6\n"


def _data_sets(desk: _Desk) -> Iterable[Target]:
    for form, seed in _LINES.items():
        tokens = (b"::", b"\t", b" ", b"\n")
        yield Target(f"data-{form}", _columns_reader(form), [seed], tokens, cheap=True)
    arrays = _npz(user=np.array([0, 1, 1]), item=np.array([5, 0, 2]))
    yield Target("data-arrays", _columns_reader("arrays"), [arrays], (), repacked)
    tokens = (b"(", b")", b",", b"\t", b"\n")
    read = lambda data: _formats.read_negatives(data, "the file")  # noqa: E731 - as the others
    yield Target("data-negatives", read, [_NEGATIVES], tokens, cheap=True)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("ml-1m/ratings.dat", _LINES["movielens"])
        archive.writestr("ml-1m/README", b"read me")
    wanted = _registry.DataFile(
        "ratings.dat", "movielens", "https://example.org/a.zip", "ml-1m/ratings.dat", 10_000, "00"
    )
    read_member = lambda data: _files.unzipped(data, wanted)  # noqa: E731 - as the others
    yield Target("archive", read_member, [packed.getvalue()], (b"PK\1\2", b"PK\5\6"), repacked)


def _columns_reader(form: str) -> Callable[[bytes], object]:
    def parse(data: bytes) -> None:
        Interactions.from_pairs(**_formats.read_columns(data, form, "the file"))  # type: ignore[arg-type]

    return parse


def _compressed(
    pack: Callable[[bytes], bytes], unpack: Callable[[bytes], bytes]
) -> Callable[[Mutator, bytes], bytes]:
    return lambda mutator, data: pack(mutator.changed(unpack(data)))


# -- folders of runs ----------------------------------------------------------------------------


def _run_folders(desk: _Desk) -> Iterable[Target]:
    spec = Spec(datasets=("ml-1m",), candidates=("all",), recommenders=("ease",), repeats=2)
    (desk.folder / "run").mkdir(exist_ok=True)
    (cell,) = spec.tables()
    shape = (2, len(spec.columns))
    values = {label: np.full(shape, 0.5) for label in spec.labels_of(cell)}
    with RunFolder.claim(desk.folder / "run", spec) as folder:
        folder.save(cell, CellResult(np.ones(shape[1]), values, {"exact": np.linspace(0, 1, 5)}))
        folder.save_ranks(cell, Ranks(np.array([1, 5]), np.array([9, 9])))
    cells = folder.path / "cells"
    parts = {"run-cell": cells / f"{cell.name}.npz", "run-ranks": cells / f"ranks.{cell.name}"}
    parts["run-ranks"] = next(cells.glob("ranks.*.npz"))
    reads = {"run-cell": lambda: folder.load(cell), "run-ranks": lambda: folder.load_ranks(cell)}
    for name, path in parts.items():
        yield Target(name, _replacing(path, reads[name]), [path.read_bytes()], (), repacked)
    written = folder.path / "spec.json"

    def claim() -> None:
        with RunFolder.claim(folder.path, spec, resume=True):
            pass

    parse = _replacing(written, claim)
    yield Target("run-spec", parse, [written.read_bytes()], (b"digest", b'"', b"{", b"}"))
    yield from _results(desk)


def _replacing(path: Path, read: Callable[[], object]) -> Callable[[bytes], object]:
    def parse(data: bytes) -> object:
        path.write_bytes(data)
        return read()

    return parse


def _results(desk: _Desk) -> Iterable[Target]:
    folder = desk.folder / "results"
    folder.mkdir(exist_ok=True)
    example: dict[str, object] = {"text": "MLE", "integer": 10, "real": -0.25, "truth": True}
    for table, columns in SCHEMA.items():
        write_rows(folder, table, [{name: example[kind] for name, kind in columns.items()}] * 2)
    write_json(folder / "settings.json", {"datasets": ["ml-1m"], "repeats": 2})
    write_json(folder / "timing.json", {"seconds": 1.5})
    for name in ("accuracy.csv", "claims.csv", "settings.json"):
        whole = (folder / name).read_bytes()

        def parse(data: bytes, path: Path = folder / name, whole: bytes = whole) -> None:
            path.write_bytes(data)
            try:
                load_results(folder)
            finally:
                path.write_bytes(whole)

        yield Target(f"results-{name}", parse, [whole], (b",", b"\n", b"true", b"{", b'"'))


# -- TREC ---------------------------------------------------------------------------------------

_RUN = b"q1 Q0 d1 1 0.9 me\nq1 Q0 d2 2 0.4 me\nq2 Q0 d2 1 0.3 me\nq2 Q0 d5 2 1e-1 me\n"
_QRELS = b"q1 0 d1 1\nq2 0 d5 2\nq2 0 d2 0\n"


def _trec_files(desk: _Desk) -> Iterable[Target]:
    run, qrels = desk.folder / "good.run", desk.folder / "good.qrels"
    run.write_bytes(_RUN)
    qrels.write_bytes(_QRELS)
    words = (b"q1", b"q2", b"d1", b"d5", b"Q0", b" ", b"\t", b"\n")
    parse = desk.reader("fuzz.run", lambda path: trec.targets(path, qrels, items=1000).counts)
    yield Target("trec-run", parse, [_RUN], words)
    parse = desk.reader("fuzz.qrels", lambda path: trec.targets(run, path, items=1000).counts)
    yield Target("trec-qrels", parse, [_QRELS], words)
    gzipped = lambda mutator, data: gzip.compress(mutator.changed(gzip.decompress(data)), 1)  # noqa: E731
    parse = desk.reader("fuzz.run.gz", lambda path: trec.targets(path, qrels, items=1000).counts)
    yield Target("trec-run-gz", parse, [gzip.compress(_RUN, 1, mtime=0)], words, gzipped)

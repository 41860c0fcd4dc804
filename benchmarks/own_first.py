"""Ranks of models that put a user's own items first: ``benchmarks/own_first.py DATA --out FILE``.

Autoencoders, neighbours and walks that keep an item's similarity to itself give the highest scores
to what a user has already. Where these items stay candidates, the first ranks are nearly empty of
targets. The other benchmarks' models hardly do this, so these four were added:

* ``selfknn``: cosine similarities of items, each item similar to itself;
* ``selfwalk``: a walk from item to user to item, which may come back;
* ``ridge``: ridge regression of a user's items on all of them, itself included, at a low rank;
* ``gfcf``: a filter on the graph of users and items, its first eigenvectors beside it.

DATA is a folder of ``NAME.npz`` with ``user``, ``item`` and, where they are known, ``order`` and
``split`` (1: test, 2: validation). A user's target is the last item, a published one, or one at
random. Targets that nobody has in training are kept: their scores are those of a cold item.
"""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
import zlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import svds

from unsample._archives import read_arrays
from unsample._files import ARCHIVE_ENDINGS, check_ending, check_writable
from unsample.lab.corpus import Corpus, RankSet
from unsample.posterior import tenths_of_users
from unsample.scoring import exact_ranks

#: Targets of a data set, and the fewest events of a user with a target.
TARGETS = 2_500
FEWEST_EVENTS = 3
#: Data sets with more items are left out: their rows of scores take too long.
MAX_ITEMS = 60_000
#: A data set is of kind ``"repeats"`` if more than this share of its targets are training items.
REPEATS = 0.05
#: Of the two models with a matrix of low rank.
RANK = 128
PENALTY = 20.0
#: How far the walk avoids popular items, and what the first eigenvectors count in the filter.
WALK_POWER = 0.4
FILTER_SHARE = 0.3


@dataclass(frozen=True, eq=False)
class Held:
    """What is trained on (users x items), and the targets that are held out."""

    train: sp.csr_array
    users: np.ndarray
    targets: np.ndarray


def held_out(arrays: Mapping[str, Any], seed: int) -> Held:
    """Hold out one event of each user, as it is published, the last one, or one at random."""
    user = arrays["user"].astype(np.int64)
    item = arrays["item"].astype(np.int64)
    rng = np.random.default_rng(seed)
    rank = rng.random(len(user))
    if "order" in arrays:
        rank = arrays["order"] + rank
    elif "split" in arrays:
        rank = (arrays["split"] == 1) + rank
    row = np.lexsort((rank, user))
    last = row[np.flatnonzero(np.append(np.diff(user[row]) > 0, True))]
    events = np.bincount(user)
    last = last[events[user[last]] >= FEWEST_EVENTS]
    if len(last) > TARGETS:
        last = np.sort(rng.choice(last, TARGETS, replace=False))
    kept = np.ones(len(user), dtype=bool)
    kept[last] = False
    shape = (int(user.max()) + 1, int(item.max()) + 1)
    ones = np.ones(int(kept.sum()), dtype=np.float32)
    train = sp.csr_array((ones, (user[kept], item[kept])), shape=shape)
    train.sum_duplicates()
    train.data[:] = 1.0
    return Held(train, user[last], item[last])


@dataclass(frozen=True, eq=False)
class Rows:
    """A scorer of whole rows: a function of the training rows of some users."""

    train: sp.csr_array
    score: Callable[[sp.csr_array], Any]

    def score_all(self, users: np.ndarray) -> np.ndarray:
        found = self.score(self.train[users])
        return np.asarray(found.todense() if sp.issparse(found) else found, dtype=np.float32)


def powers(sums: np.ndarray, power: float) -> sp.dia_array:
    """Return a diagonal matrix of powers of sums; what nobody has gets 0."""
    found = np.where(sums > 0.0, np.maximum(sums, 1.0) ** power, 0.0)
    return sp.diags_array(found.astype(np.float32))


def models(train: sp.csr_array) -> Iterator[tuple[str, Rows]]:
    """Yield the trained models."""
    of_items = train.sum(axis=0)
    of_users = train.sum(axis=1)
    by_item = powers(of_items, -0.5)
    cosine = sp.csr_array(train @ by_item)
    yield "selfknn", Rows(train, lambda rows: ((rows @ by_item) @ cosine.T) @ cosine)
    back = sp.csr_array(powers(of_users, -1.0) @ train @ powers(of_items, -WALK_POWER))
    there = sp.csr_array(train @ powers(of_items, -1.0))
    yield "selfwalk", Rows(train, lambda rows: (rows @ there.T) @ back)
    rank = min(RANK, min(train.shape) - 1)
    rng = np.random.default_rng(0)
    _, values, right = svds(train, k=rank, rng=rng, solver="arpack", which="LM")
    shrunk = (values**2 / (values**2 + PENALTY)).astype(np.float32)
    ridge = right.T.astype(np.float32)
    yield "ridge", Rows(train, lambda rows: ((rows @ ridge) * shrunk) @ ridge.T)
    even = sp.csr_array(powers(of_users, -0.5) @ cosine)
    _, _, first = svds(even, k=rank, rng=rng, solver="arpack", which="LM")
    first = first.T.astype(np.float32)
    spread = np.sqrt(of_items)

    def filtered(rows: sp.csr_array) -> np.ndarray:
        near = ((rows @ even.T) @ even).todense()
        low = (((rows @ by_item) @ first) @ first.T) * spread
        return np.asarray(near + FILTER_SHARE * low)

    yield "gfcf", Rows(train, filtered)


def rank_sets(path: Path, about: Mapping[str, Any]) -> list[RankSet]:
    """Train on a data set, and rank its targets among all items and among those not seen."""
    with path.open("rb") as file:
        arrays = read_arrays(file, path.name)
    if "user" not in arrays:  # a knowledge graph
        return []
    held = held_out(arrays, zlib.crc32(path.stem.encode()))
    items = held.train.shape[1]
    if items > MAX_ITEMS:
        return []
    seen = np.diff(held.train.indptr)[held.users]
    repeat = np.asarray(held.train[held.users, held.targets] > 0).reshape(-1)
    kind = "repeats" if repeat.mean() > REPEATS else "all"
    sets = []
    for name, scorer in models(held.train):
        for candidates, of_kind in (("all", kind), ("unseen", "unseen")):
            some = ~repeat if candidates == "unseen" else np.ones(len(repeat), dtype=bool)
            exclude = held.train if candidates == "unseen" else None
            targets = held.users[some], held.targets[some]
            ranks = exact_ranks(scorer, targets, items=items, exclude=exclude)
            sets.append(
                RankSet.of_ranks(
                    np.asarray(ranks.ranks, dtype=np.int64),
                    ranks.items,
                    dataset=path.stem,
                    model=name,
                    candidates=candidates,
                    kind=of_kind,
                    family=about.get("family", path.stem),
                    seen=tenths_of_users(seen[some]) if candidates == "all" else (),
                )
            )
    return sets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="a folder of interactions")
    parser.add_argument("--out", type=Path, required=True, help="the .npz file to write")
    parser.add_argument("--datasets", nargs="+", help="these alone, instead of all in the folder")
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    check_ending("--out", chosen.out, ARCHIVE_ENDINGS)
    check_writable(chosen.out)
    table = tomllib.loads((files("unsample.lab.corpus") / "about.toml").read_text(encoding="utf-8"))
    paths = {path.stem: path for path in sorted(chosen.data.glob("*.npz"))}
    names = chosen.datasets or list(paths)
    found: list[RankSet] = []
    with ProcessPoolExecutor(chosen.workers) as pool:
        jobs = {pool.submit(rank_sets, paths[name], table.get(name, {})): name for name in names}
        for job in as_completed(jobs):
            found += job.result()
            print(jobs[job], file=sys.stderr, flush=True)
            # Whoever stops it keeps what was ranked.
            found.sort(key=lambda one: (one.dataset, one.model, one.kind))
            Corpus(tuple(found)).save(chosen.out)


if __name__ == "__main__":
    main()

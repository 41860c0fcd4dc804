"""Ranks that had no part in choosing any constant: ``python benchmarks/other_ranks.py``.

Four more recommenders on the four data sets (which must be on disk): popularity, a truncated
singular value decomposition, a random walk of three steps, and EASE that knows a random half of
the training pairs. The pairs which EASE does not know are neither learnt nor excluded, as in real
life where nobody knows all that a user likes. Ranks among unseen and among all items go to
``benchmarks/other_ranks/``; users are shuffled, as in the bundled ranks.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from unsample import designs
from unsample._files import write_atomically
from unsample.designs import exact_ranks
from unsample.lab.datasets import Interactions, Split, standard_split
from unsample.lab.recommenders import create

DATASETS = ("ml-1m", "pinterest-20", "citeulike-a", "yelp")
NAMES = ("popularity", "svd", "walk", "half-ease")
FOLDER = Path(__file__).parent / "other_ranks"
SEED = 0
FACTORS = 64

Scorer = Callable[[np.ndarray], np.ndarray]


def popularity(known: Interactions) -> Scorer:
    counts = known.count_by_item().astype(np.float32)
    return lambda users: np.tile(counts, (len(users), 1))


def singular_values(known: Interactions) -> Scorer:
    matrix = known.matrix().astype(np.float32)
    _, _, items = sp.linalg.svds(matrix, k=FACTORS, rng=np.random.default_rng(SEED))
    return lambda users: np.asarray((matrix[users] @ items.T) @ items, dtype=np.float32)


def random_walk(known: Interactions) -> Scorer:
    """Score items by the chance to get there from a user's items, over the users who have both."""
    matrix = known.matrix().astype(np.float32)
    users = sp.diags_array(1.0 / np.maximum(known.count_by_user(), 1))
    items = sp.diags_array(1.0 / np.maximum(known.count_by_item(), 1))
    steps = (items @ matrix.T @ users @ matrix).tocsr().astype(np.float32)
    return lambda rows: (matrix[rows] @ steps).toarray()


def a_half(known: Interactions) -> Interactions:
    return known.select(np.flatnonzero(np.random.default_rng(SEED).random(len(known)) < 0.5))


def scorers(split: Split) -> Iterator[tuple[str, Scorer, Interactions]]:
    """Yield each recommender's name, its scores, and the pairs it knows."""
    known = split.train
    yield "popularity", popularity(known), known
    yield "svd", singular_values(known), known
    yield "walk", random_walk(known), known
    half = a_half(known)
    yield "half-ease", create("ease").fit(half).score_all, half


def ranks_of(dataset: str) -> dict[str, np.ndarray]:
    split = standard_split(dataset, rng=SEED)
    targets, items = (split.target_user, split.target_item), split.train.items
    order = np.random.default_rng(SEED + 1).permutation(len(split.target_user))
    arrays = {"items": np.array(items)}
    for name, score, known in scorers(split):
        scorer = designs.RowScores(score)
        unseen = exact_ranks(scorer, targets, items=items, exclude=known.matrix(), rng=SEED)
        every = exact_ranks(scorer, targets, items=items, rng=SEED)
        arrays[f"{name}.everyday"] = unseen.ranks[order].astype(np.uint16)
        arrays[f"{name}.everyday.items"] = unseen.items[order].astype(np.uint16)
        arrays[f"{name}.paper"] = every.ranks[order].astype(np.uint16)
        recall = [float((ranks.ranks <= 10).mean()) for ranks in (unseen, every)]
        print(f"{dataset:13} {name:10} Recall@10 {recall[0]:.4f}, all {recall[1]:.4f}", flush=True)
    return arrays


def load(dataset: str, name: str, candidates: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranks, and the catalogue size of each target."""
    with np.load(FOLDER / f"{dataset}.npz", allow_pickle=False) as arrays:
        stored = {"unseen": "everyday", "all": "paper"}[candidates]
        ranks = arrays[f"{name}.{stored}"].astype(np.int64)
        if candidates == "unseen":
            return ranks, arrays[f"{name}.everyday.items"].astype(np.int64)
        return ranks, np.full(len(ranks), int(arrays["items"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER)
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    for dataset in DATASETS:
        arrays = ranks_of(dataset)
        write_atomically(
            chosen.out / f"{dataset}.npz",
            lambda file, arrays=arrays: np.savez_compressed(file, **arrays),
        )


if __name__ == "__main__":
    main()

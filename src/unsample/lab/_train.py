"""Training a recommender on a data set, and writing its exact ranks."""

from __future__ import annotations

import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from unsample._files import check_writable
from unsample._progress import Progress
from unsample.counts import sampled_ranks
from unsample.lab.datasets import (
    CANDIDATES,
    Split,
    load_ranks,
    read_rank_file,
    standard_split,
    write_rank_file,
)
from unsample.lab.recommenders import Recommender, create
from unsample.scoring import exact_ranks

_SEED = 0


def train(
    dataset: str,
    recommender: str,
    folder: Path,
    *,
    device: str = "cpu",
    progress: Progress | None = None,
) -> Path:
    """Train a recommender on a data set's published split (or a random one), and rank its targets.

    The ranks are added to the file of the data set in the folder, whose path is returned. Networks
    learn on ``device``, one of PyTorch, for as many epochs as those whose ranks ship: validation
    pairs chose them once.
    """
    shipped = load_ranks(dataset, recommender).provenance["recommenders"][recommender]
    epochs = shipped.get("epochs")
    model = create(recommender, **({"epochs": epochs, "device": device} if epochs else {}))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{dataset}.npz"
    check_writable(path)
    _known_ranks(path)
    split = standard_split(dataset, rng=_SEED)
    start = time.perf_counter()
    model.fit(split.train, progress=progress)
    seconds = time.perf_counter() - start
    items = split.train.items
    scorer = model.scorer()
    unseen = exact_ranks(scorer, split.targets, items=items, exclude=split.train.matrix())
    every = exact_ranks(scorer, split.targets, items=items)
    about = {
        "hyperparameters": model.hyperparameters,
        "seconds": round(seconds, 1),
        "versions": _versions(),
        "epochs": epochs,
        "targets_with_ties": int(np.count_nonzero(unseen.ties)),
        **_against_published(model, split),
    }
    arrays, before = _known_ranks(path)  # others may have been added meanwhile
    known = {
        "complete": split.train.complete,
        "note": split.train.note,
        "split": split.name,
        "seed": _SEED,
        "items": items,
        "users": split.train.users,
        "training_pairs": len(split.train),
        "recommenders": {**before["recommenders"], recommender: about},
    }
    arrays |= {"items": np.array(items), "n_seen": items - unseen.items}
    for candidates, found in (("unseen", unseen), ("all", every)):
        arrays[f"{recommender}_{CANDIDATES[candidates]}"] = np.asarray(found.ranks, dtype=np.int64)
    write_rank_file(path, arrays, known)
    return path


def _known_ranks(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the ranks that a file holds already, and what they are about."""
    return read_rank_file(path) if path.is_file() else ({}, {"recommenders": {}})


def _against_published(model: Recommender, split: Split) -> dict[str, float]:
    """Return the hit rate against the published negatives, where there are some."""
    if split.negatives is None:
        return {}
    users, targets = split.targets
    # The published negatives of some users hold the target itself.
    itself = split.negatives == targets[:, None]
    others = np.where(itself, -np.inf, model.score(users, split.negatives))
    ranks = sampled_ranks(model.score(users, targets[:, None])[:, 0], others)
    return {"published_negatives_HR@10": round(float((ranks <= 10).mean()), 4)}


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("numpy", "scipy", "implicit", "torch"):
        try:
            found[package] = version(package).partition("+")[0]
        except PackageNotFoundError:
            continue
    return found

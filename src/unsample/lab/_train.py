"""Train a recommender on a data set, and write its exact ranks."""

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
    *,
    folder: Path,
    device: str = "cpu",
    progress: Progress | None = None,
) -> Path:
    """Train a recommender on a data set's published split (or a random one), and rank its targets.

    Parameters
    ----------
    dataset, recommender
        Their names.
    folder
        The ranks are added to the file of the data set in this folder.
    device
        The device of PyTorch on which networks learn. They learn for as many epochs as the network
        whose ranks ship; validation pairs chose that number.
    progress
        It is told how far the training is.

    Returns
    -------
    Path
        The file.
    """
    shipped = load_ranks(dataset, recommender).provenance["recommenders"][recommender]
    epochs = shipped.get("epochs")
    settings = {"epochs": epochs, "device": device} if epochs else {}
    model = create(recommender, **settings)
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
    among = {
        "unseen": exact_ranks(scorer, split.targets, items=items, exclude=split.train.matrix()),
        "all": exact_ranks(scorer, split.targets, items=items),
    }
    about = {
        "hyperparameters": model.hyperparameters,
        "seconds": round(seconds, 1),
        "versions": _versions(),
        "epochs": epochs,
        "targets_with_ties": int(np.count_nonzero(among["unseen"].ties)),
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
    arrays |= {"items": np.array(items), "n_seen": items - among["unseen"].items}
    for candidates, exact in among.items():
        arrays[f"{recommender}_{CANDIDATES[candidates]}"] = np.asarray(exact.ranks, dtype=np.int64)
    write_rank_file(path, arrays, about=known)
    return path


def _known_ranks(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the ranks that a file holds already, and what it says about them."""
    return read_rank_file(path) if path.is_file() else ({}, {"recommenders": {}})


def _against_published(model: Recommender, split: Split) -> dict[str, float]:
    """Return HR@10 against the published negatives, where there are some."""
    if split.negatives is None:
        return {}
    users, targets = split.targets
    # The published negatives of some users hold the target itself.
    itself = split.negatives == targets[:, None]
    others = np.where(itself, -np.inf, model.score(users, split.negatives))
    ranks = sampled_ranks(model.score(users, targets[:, None])[:, 0], others)
    return {"published_negatives_HR@10": round(float((ranks <= 10).mean()), 4)}


def _versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that models need, if installed."""
    versions = {"python": platform.python_version()}
    for package in ("numpy", "scipy", "implicit", "torch"):
        try:
            versions[package] = version(package).partition("+")[0]
        except PackageNotFoundError:
            continue
    return versions

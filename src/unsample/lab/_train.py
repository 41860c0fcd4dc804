"""Training a recommender on a data set, and the file that keeps its exact ranks.

``NAME.npz`` in a folder has the ranks of every recommender trained on the data set NAME, as
`unsample.lab.bank` reads them: ``items`` (N), ``n_seen`` (training items of each target's user),
``MODEL_1`` (training items left out of the candidates) and ``MODEL_0`` (kept). ``about`` says where
they come from.
"""

from __future__ import annotations

import json
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from unsample._archives import read_arrays
from unsample._files import write_atomically
from unsample._progress import Progress
from unsample.designs import exact_ranks
from unsample.evidence import sampled_ranks
from unsample.lab.datasets import ExactRanks, load_ranks, standard_split
from unsample.lab.recommenders import create

_SEED = 0
#: The end of an array's name, by the candidates of its ranks.
_ENDS = {"unseen": "1", "all": "0"}


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
    split = standard_split(dataset, rng=_SEED)
    start = time.perf_counter()
    model.fit(split.train, progress=progress)
    seconds = time.perf_counter() - start
    items, seen = split.train.items, split.train.matrix()
    unseen = exact_ranks(model, split.targets, items=items, exclude=seen)
    every = exact_ranks(model, split.targets, items=items)
    about = {
        "hyperparameters": model.hyperparameters,
        "seconds": round(seconds, 1),
        "versions": _versions(),
        "epochs": epochs,
        "targets_with_ties": int(np.count_nonzero(unseen.ties)),
    }
    if split.negatives is not None:
        users, targets = split.targets
        # The published negatives of some users hold the target itself.
        itself = split.negatives == targets[:, None]
        others = np.where(itself, -np.inf, model.score(users, split.negatives))
        against = sampled_ranks(model.score(users, targets[:, None])[:, 0], others)
        about["published_negatives_HR@10"] = round(float((against <= 10).mean()), 4)
    path = folder / f"{dataset}.npz"
    arrays, before = _read(path)
    known = {
        "complete": split.train.complete,
        "note": split.train.note,
        "split": split.name,
        "seed": _SEED,
        "items": items,
        "users": split.train.users,
        "training_pairs": len(split.train),
        "recommenders": {**before.get("recommenders", {}), recommender: about},
    }
    arrays |= {
        "about": np.frombuffer(json.dumps(known).encode(), dtype=np.uint8),
        "items": np.array(items),
        "n_seen": items - unseen.items,
        f"{recommender}_{_ENDS['unseen']}": np.asarray(unseen.ranks, dtype=np.int64),
        f"{recommender}_{_ENDS['all']}": np.asarray(every.ranks, dtype=np.int64),
    }
    write_atomically(path, lambda file: np.savez_compressed(file, **arrays))
    return path


def load_trained(
    folder: Path, dataset: str, recommender: str, *, candidates: str
) -> ExactRanks | None:
    """Return ranks that `train` put into a folder, or None where there are none."""
    arrays, about = _read(folder / f"{dataset}.npz")
    name = f"{recommender}_{_ENDS[candidates]}"
    if name not in arrays:
        return None
    ranks = arrays[name].astype(np.int64)
    sizes = arrays["items"] - arrays["n_seen"]
    if candidates == "all":
        sizes = np.full(len(ranks), arrays["items"])
    return ExactRanks(
        dataset=dataset,
        recommender=recommender,
        candidates=candidates,
        ranks=ranks,
        items=sizes.astype(np.int64),
        complete=about["complete"],
        note=about["note"],
        provenance={**about, "recommenders": {recommender: about["recommenders"][recommender]}},
    )


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arrays of a file of ranks, and what they are about; nothing without a file."""
    if not path.is_file():
        return {}, {}
    with path.open("rb") as file:
        arrays = read_arrays(file, f"the ranks {path.name}")
    return arrays, json.loads(arrays["about"].tobytes())


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("numpy", "scipy", "implicit", "torch"):
        try:
            found[package] = version(package).partition("+")[0]
        except PackageNotFoundError:
            continue
    return found

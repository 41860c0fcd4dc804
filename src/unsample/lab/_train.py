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
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from unsample._archives import read_arrays
from unsample._checks import IntArray
from unsample._files import write_atomically
from unsample._progress import Progress
from unsample.designs import exact_ranks
from unsample.evidence import sampled_ranks
from unsample.lab.datasets import ExactRanks, Split, standard_split
from unsample.lab.recommenders import create

#: The most epochs among which validation pairs choose; defaults were chosen on ml-1m.
_MOST_EPOCHS: dict[str, dict[str, Any]] = {
    "multivae": {"epochs": 40, "patience": 5},
    "neumf": {"epochs": 30, "patience": 3},
}
_SEED = 0
#: The end of an array's name, by the candidates of its ranks.
_ENDS = {"unseen": "1", "all": "0"}


@dataclass(frozen=True, eq=False)
class Trained:
    """Exact ranks of a recommender's targets, by candidates, and where they come from.

    ``catalogues`` has each target's number of unseen items, ``split`` what is known of the data,
    ``model`` how the recommender was trained.
    """

    dataset: str
    recommender: str
    ranks: dict[str, IntArray] = field(repr=False)
    catalogues: IntArray = field(repr=False)
    split: dict[str, Any]
    model: dict[str, Any]

    def save(self, folder: Path) -> Path:
        """Add the ranks to the file of the data set in a folder, and return its path."""
        path = folder / f"{self.dataset}.npz"
        arrays = _read(path)
        others = _about(arrays).get("recommenders", {})
        about = {**self.split, "recommenders": {**others, self.recommender: self.model}}
        arrays |= {
            "about": np.frombuffer(json.dumps(about).encode(), dtype=np.uint8),
            "items": np.array(self.split["items"]),
            "n_seen": self.split["items"] - self.catalogues,
        }
        for candidates, ranks in self.ranks.items():
            arrays[f"{self.recommender}_{_ENDS[candidates]}"] = ranks
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lambda file: np.savez_compressed(file, **arrays))
        return path


def train(
    dataset: str,
    recommender: str,
    *,
    validate: bool = False,
    device: str = "cpu",
    progress: Progress | None = None,
) -> Trained:
    """Train a recommender on a data set's published split (or a random one), and rank its targets.

    Parameters
    ----------
    dataset, recommender
        One of `datasets.names`, and one of `recommenders.REGISTRY`.
    validate
        Let validation pairs choose the number of epochs, as they did for the ranks that ship (those
        of ml-1m aside, on which the defaults were chosen).
    device
        Where networks learn: ``"cpu"``, ``"cuda"``, or another device of PyTorch.
    progress
        Called with what is done, the total and a note.
    """
    options = _MOST_EPOCHS.get(recommender, {}) if validate else {}
    if recommender in _MOST_EPOCHS:
        options = {**options, "device": device}
    model = create(recommender, **options)
    split = standard_split(dataset, rng=_SEED, validation=validate)
    start = time.perf_counter()
    model.fit_split(split, progress=progress)
    seconds = time.perf_counter() - start
    items, seen = split.train.items, split.history().matrix()
    unseen = exact_ranks(model, split.targets, items=items, exclude=seen)
    every = exact_ranks(model, split.targets, items=items)
    about = {
        "hyperparameters": model.hyperparameters,
        "seconds": round(seconds, 1),
        "versions": _versions(),
        "epochs": len(model.fitted.weights.get("curve_loss", ())) or None,
        "targets_with_ties": int(np.count_nonzero(unseen.ties)),
    }
    if split.negatives is not None:
        users, targets = split.targets
        # The published negatives of some users hold the target itself.
        itself = split.negatives == targets[:, None]
        others = np.where(itself, -np.inf, model.score(users, split.negatives))
        against = sampled_ranks(model.score(users, targets[:, None])[:, 0], others)
        about["published_negatives_HR@10"] = round(float((against <= 10).mean()), 4)
    ranks = {
        candidates: np.asarray(found.ranks, dtype=np.int64)
        for candidates, found in (("unseen", unseen), ("all", every))
    }
    return Trained(dataset, recommender, ranks, unseen.items, _facts(split), about)


def load_trained(
    folder: Path, dataset: str, recommender: str, *, candidates: str
) -> ExactRanks | None:
    """Return ranks that `Trained.save` put into a folder, or None where there are none."""
    arrays = _read(folder / f"{dataset}.npz")
    name = f"{recommender}_{_ENDS[candidates]}"
    if name not in arrays:
        return None
    about, ranks = _about(arrays), arrays[name].astype(np.int64)
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


def _read(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    with path.open("rb") as file:
        return read_arrays(file, f"the ranks {path.name}")


def _about(arrays: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(arrays["about"].tobytes()) if "about" in arrays else {}
    return found


def _facts(split: Split) -> dict[str, Any]:
    return {
        "complete": split.train.complete,
        "note": split.train.note,
        "split": split.name,
        "seed": _SEED,
        "items": split.train.items,
        "users": split.train.users,
        "training_pairs": len(split.history()),
    }


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("numpy", "scipy", "implicit", "torch"):
        try:
            found[package] = version(package).partition("+")[0]
        except PackageNotFoundError:
            continue
    return found

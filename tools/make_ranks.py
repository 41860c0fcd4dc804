"""Make the bundled ranks from the data sets: ``make ranks``.

Each recommender on each data set is one file in the work folder, written when it is done, so a run
that was stopped goes on where it was. ``--bundle`` then puts them together. With ``--device cuda``
the recommenders that can learn on a GPU do.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from unsample import sampled_ranks
from unsample._files import write_atomically
from unsample.designs import exact_ranks
from unsample.lab.datasets import Split, standard_split
from unsample.lab.recommenders import create

DATASETS = ("ml-1m", "pinterest-20", "citeulike-a", "yelp")
RECOMMENDERS = ("ease", "multivae", "neumf", "itemknn", "als")
#: The defaults were chosen on ml-1m, and are used there as they are. Elsewhere validation pairs
#: choose the number of epochs, up to these.
CHOSEN_BY_DEFAULT = "ml-1m"
MOST_EPOCHS = {"multivae": {"epochs": 40, "patience": 5}, "neumf": {"epochs": 30, "patience": 3}}
LEARNS_ON_DEVICE = ("ease", "multivae", "neumf")
SEED = 0
BUNDLED = Path(__file__).parent.parent / "src" / "unsample" / "lab" / "datasets" / "bundled"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dataset", action="append", choices=DATASETS)
    parser.add_argument("--recommender", action="append", choices=RECOMMENDERS)
    parser.add_argument("--work", type=Path, default=Path("out/ranks"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--bundle", action="store_true", help="only put the files together")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    if options.bundle:
        bundle(options.work)
        return
    for dataset in options.dataset or DATASETS:
        wanted = [
            name
            for name in options.recommender or RECOMMENDERS
            if not result_path(options.work, dataset, name).exists()
        ]
        if not wanted:
            continue
        split = standard_split(dataset, rng=SEED, validation=dataset != CHOSEN_BY_DEFAULT)
        print(f"{dataset}: {split}", flush=True)
        for name in wanted:
            make(split, dataset, name, options.device, options.work)


def make(split: Split, dataset: str, name: str, device: str, work: Path) -> None:
    """Fit one recommender, rank the targets among unseen and among all items, and write both."""
    chosen = {} if dataset == CHOSEN_BY_DEFAULT else dict(MOST_EPOCHS.get(name, {}))
    if device != "cpu" and name in LEARNS_ON_DEVICE:
        chosen["device"] = device
    model = create(name, chosen)
    start = time.perf_counter()
    model.fit_split(split, progress=say(name))
    seconds = time.perf_counter() - start
    targets, items = (split.target_user, split.target_item), split.train.items
    seen = split.history().matrix()
    unseen = exact_ranks(model, targets, items=items, exclude=seen, rng=SEED)
    every = exact_ranks(model, targets, items=items, rng=SEED)
    hyperparameters = (
        model.hyperparameters | {"device": "cpu"} if "device" in chosen else (model.hyperparameters)
    )
    meta = {
        "hyperparameters": hyperparameters,
        "trained_on": device if "device" in chosen else "cpu",
        "seconds": round(seconds, 1),
        "versions": versions(),
        "epochs": len(model.fitted.weights.get("curve_loss", ())) or None,
        "targets_with_ties": int(np.count_nonzero(unseen.ties)),
    }
    if split.negatives is not None:
        against = ranks_against_published(model, split)
        meta["published_negatives_HR@10"] = round(float((against <= 10).mean()), 4)
    save(result_path(work, dataset, name), unseen, every, split, meta)
    ndcg = np.where(unseen.ranks <= 10, 1 / np.log2(unseen.ranks + 1), 0).mean()
    extra = meta.get("published_negatives_HR@10", "")
    print(
        f"{dataset:13} {name:9} {seconds:7.1f} s  unseen NDCG@10 {ndcg:.4f} "
        f"Recall@10 {(unseen.ranks <= 10).mean():.4f}  all Recall@10 "
        f"{(every.ranks <= 10).mean():.4f}  {extra}",
        flush=True,
    )


def ranks_against_published(model, split: Split) -> np.ndarray:
    """Rank targets among the published negatives, which hold the target itself for some users."""
    user, item = split.target_user, split.target_item
    others = np.where(split.negatives == item[:, None], -np.inf, model.score(user, split.negatives))
    return sampled_ranks(model.score(user, item[:, None])[:, 0], others)


def save(path: Path, unseen, every, split: Split, meta: dict[str, object]) -> None:
    arrays = {
        "everyday": unseen.ranks.astype(np.uint16),
        "paper": every.ranks.astype(np.uint16),
        "items": unseen.items.astype(np.uint16),
    }
    about = {
        "complete": split.complete,
        "note": split.note,
        "split": split.name,
        "seed": SEED,
        "items": split.train.items,
        "users": split.train.users,
        "training_pairs": len(split.history()),
    }
    text = json.dumps({"about": about, "recommender": meta})
    write_atomically(
        path,
        lambda file: np.savez_compressed(
            file, meta=np.frombuffer(text.encode(), np.uint8), **arrays
        ),
    )


def bundle(work: Path) -> None:
    """Put the results together, users shuffled, and say where they come from."""
    provenance = {}
    for dataset in DATASETS:
        arrays, recommenders, about = {}, {}, {}
        for name in RECOMMENDERS:
            with np.load(result_path(work, dataset, name), allow_pickle=False) as file:
                meta = json.loads(file["meta"].tobytes())
                order = np.random.default_rng(SEED + 1).permutation(len(file["paper"]))
                arrays |= {f"{name}.{key}": file[key][order] for key in ("everyday", "paper")}
                arrays["items.everyday"] = file["items"][order]
            about, recommenders[name] = meta["about"], meta["recommender"]
        command = f"python tools/make_ranks.py --dataset {dataset}"
        provenance[dataset] = {**about, "command": command, "recommenders": recommenders}
        write_atomically(
            BUNDLED / f"{dataset}.npz", lambda file, a=arrays: np.savez_compressed(file, **a)
        )
    text = json.dumps(provenance, indent=1) + "\n"
    write_atomically(BUNDLED / "provenance.json", lambda file: file.write(text.encode()))
    total = sum(path.stat().st_size for path in BUNDLED.iterdir() if path.is_file())
    print(f"bundled {len(DATASETS)} data sets, {total / 1e6:.2f} MB")


def result_path(work: Path, dataset: str, name: str) -> Path:
    return work / f"{dataset}.{name}.npz"


def say(name: str):
    def progress(done: int, total: int, note: str = "") -> None:
        print(f"  {name} {done}/{total} {note}", file=sys.stderr, flush=True)

    return progress


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("numpy", "scipy", "implicit", "torch"):
        try:
            found[package] = version(package).partition("+")[0]
        except PackageNotFoundError:
            continue
    return found


if __name__ == "__main__":
    main()

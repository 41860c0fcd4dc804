"""The laboratory's own command: ``python -m unsample.lab fetch|train``."""

from __future__ import annotations

import argparse
from pathlib import Path

from unsample._progress import terminal_progress
from unsample.cli.console import run, write_out
from unsample.lab import datasets
from unsample.lab._train import train
from unsample.lab.recommenders import REGISTRY
from unsample.metrics import NDCG


def main() -> None:
    """Read the arguments, and fetch or train."""
    parser = argparse.ArgumentParser(prog="python -m unsample.lab", description=__doc__)
    verbs = parser.add_subparsers(required=True, metavar="fetch|train")

    fetch = verbs.add_parser("fetch", help="download a data set, or list those there are")
    fetch.add_argument("name", nargs="?", choices=datasets.names())
    fetch.set_defaults(do=_fetch)

    trained = verbs.add_parser("train", help="train a recommender and write its exact ranks")
    trained.add_argument("name", choices=datasets.names())
    trained.add_argument("model", choices=sorted(REGISTRY))
    trained.add_argument("--out", type=Path, default=Path("ranks"), help="folder, gets NAME.npz")
    trained.add_argument("--device", default="cpu", help="where networks learn")
    trained.set_defaults(do=_train)

    chosen = parser.parse_args()
    chosen.do(chosen)


def _fetch(chosen: argparse.Namespace) -> None:
    """Download a data set and print the paths of its files, or print all data sets."""
    if chosen.name is not None:
        for path in datasets.fetch(chosen.name).values():
            write_out(str(path))
        return
    for name in datasets.names():
        about = datasets.record(name)
        sizes = f"{about.users:>7,} users {about.items:>7,} items {about.interactions:>10,} pairs"
        write_out(f"{name:13} {sizes}  {_state(name)}")


def _state(name: str) -> str:
    """Return whether a data set is on this machine."""
    source = datasets.at_hand(name)
    if source is None:
        return "not here"
    return "here" if source.complete else "here in part"


def _train(chosen: argparse.Namespace) -> None:
    """Train a recommender, and print its metrics and the path of its ranks."""
    with terminal_progress(f"training {chosen.model}") as progress:
        path = train(
            chosen.name,
            chosen.model,
            folder=chosen.out,
            device=chosen.device,
            progress=progress,
        )
    exact = datasets.load_ranks(chosen.name, chosen.model, folder=chosen.out)
    about = exact.provenance["recommenders"][chosen.model]
    ndcg = (NDCG @ 10).weights(exact.ranks, exact.provenance["items"]).mean()
    write_out(f"NDCG@10 {ndcg:.4f}, unseen candidates, {about['seconds']:.0f} s")
    if "published_negatives_HR@10" in about:
        write_out(f"HR@10 against the published negatives {about['published_negatives_HR@10']:.4f}")
    write_out(str(path))


if __name__ == "__main__":
    run(main)

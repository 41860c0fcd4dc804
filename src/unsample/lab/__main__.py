"""The laboratory's own command: ``python -m unsample.lab data|train``."""

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
    """Read the arguments and do what they ask for."""
    parser = argparse.ArgumentParser(prog="python -m unsample.lab", description=__doc__)
    verbs = parser.add_subparsers(required=True, metavar="data|train")

    listed = verbs.add_parser("data", help="the data sets, and where to get what is missing")
    listed.set_defaults(do=_list_data)

    trained = verbs.add_parser("train", help="train a recommender and write its exact ranks")
    trained.add_argument("name", choices=datasets.names())
    trained.add_argument("model", choices=sorted(REGISTRY))
    trained.add_argument("--out", type=Path, default=Path("ranks"), help="folder, gets NAME.npz")
    trained.add_argument("--device", default="cpu", help="where networks learn")
    trained.set_defaults(do=_train)

    chosen = parser.parse_args()
    chosen.do(chosen)


def _list_data(_: argparse.Namespace) -> None:
    for name in datasets.names():
        about, source = datasets.record(name), datasets.at_hand(name)
        sizes = f"{about.users:>7,} users {about.items:>7,} items {about.interactions:>10,} pairs"
        state = "not here" if source is None else "here" if source.complete else "here in part"
        write_out(f"{name:13} {sizes}  {state}")
        if state != "here":
            files = dict.fromkeys([*about.sources[0].files, about.test, about.negatives])
            for file in filter(None, files):
                write_out(f"  {file}: {about.files[file].address}")


def _train(chosen: argparse.Namespace) -> None:
    with terminal_progress(f"training {chosen.model}") as progress:
        path = train(chosen.name, chosen.model, chosen.out, device=chosen.device, progress=progress)
    found = datasets.load_ranks(chosen.name, chosen.model, folder=chosen.out)
    made = found.provenance["recommenders"][chosen.model]
    ndcg = (NDCG @ 10).weights(found.ranks, found.provenance["items"]).mean()
    write_out(f"NDCG@10 {ndcg:.4f}, unseen candidates, {made['seconds']:.0f} s")
    if "published_negatives_HR@10" in made:
        write_out(f"HR@10 against the published negatives {made['published_negatives_HR@10']:.4f}")
    write_out(str(path))


if __name__ == "__main__":
    run(main)

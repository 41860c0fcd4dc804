"""The laboratory's own command: ``python -m unsample.lab fetch|train|bank|learn``."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from unsample._files import check_writable
from unsample._progress import terminal_progress
from unsample.answers import PRIOR_KINDS, prior_kind
from unsample.cli.console import run, say
from unsample.lab import datasets
from unsample.lab._train import load_trained, train
from unsample.lab.bank import load_bank
from unsample.lab.recommenders import REGISTRY
from unsample.metrics import NDCG
from unsample.prior import Prior
from unsample.tables import read_full_ranks


def main() -> None:
    """Read the arguments and do what they ask for."""
    chosen = _parser().parse_args()
    chosen.do(chosen)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m unsample.lab", description=__doc__)
    verbs = parser.add_subparsers(required=True, metavar="fetch|train|bank|learn")

    fetch = verbs.add_parser("fetch", help="download a data set, or list those there are")
    fetch.add_argument("name", nargs="?", choices=datasets.names())
    fetch.set_defaults(do=_fetch)

    trained = verbs.add_parser("train", help="train a recommender and write its exact ranks")
    trained.add_argument("name", choices=datasets.names())
    trained.add_argument("model", choices=sorted(REGISTRY))
    trained.add_argument("--out", type=Path, default=Path("ranks"), help="folder, gets NAME.npz")
    trained.add_argument("--device", default="cpu", help="where networks learn")
    trained.set_defaults(do=_train)

    bank = verbs.add_parser("bank", help="the rank sets that the prior is learned from")
    bank.set_defaults(do=_list_bank)

    learn = verbs.add_parser("learn", help="learn a prior from full ranks of your own models")
    learn.add_argument("files", nargs="+", help="one file a model, with a column rank")
    learn.add_argument("--items", type=int, required=True, help="items in the full catalogue")
    learn.add_argument("--out", type=Path, required=True, help="where to write the prior")
    learn.add_argument("--candidates", choices=datasets.CANDIDATES, default="unseen")
    learn.add_argument("--kind", choices=PRIOR_KINDS, default="recommendation")
    learn.set_defaults(do=_learn)
    return parser


def _fetch(chosen: argparse.Namespace) -> None:
    if chosen.name is not None:
        for path in datasets.fetch(chosen.name).values():
            say(str(path))
        return
    for name in datasets.names():
        about, source = datasets.record(name), datasets.at_hand(name)
        sizes = f"{about.users:>7,} users {about.items:>7,} items {about.interactions:>10,} pairs"
        state = "here" if source else "not here"
        say(f"{name:13} {sizes}  {state}{'' if source is None or source.complete else ' in part'}")


def _train(chosen: argparse.Namespace) -> None:
    with terminal_progress(f"training {chosen.model}") as progress:
        path = train(chosen.name, chosen.model, chosen.out, device=chosen.device, progress=progress)
    found = load_trained(chosen.out, chosen.name, chosen.model, candidates="unseen")
    assert found is not None
    made = found.provenance["recommenders"][chosen.model]
    ndcg = (NDCG @ 10).weights(found.ranks, found.provenance["items"]).mean()
    say(f"NDCG@10 {ndcg:.4f}, unseen candidates, {made['seconds']:.0f} s")
    if "published_negatives_HR@10" in made:
        say(f"HR@10 against the published negatives {made['published_negatives_HR@10']:.4f}")
    say(str(path))


def _list_bank(_: argparse.Namespace) -> None:
    found = Counter((each.dataset, each.group, each.family) for each in load_bank())
    for (dataset, group, family), number in found.items():
        say(f"{dataset:18} {group:10} {family:18} {number:3} rank sets")


def _learn(chosen: argparse.Namespace) -> None:
    check_writable(chosen.out)
    ranks = [read_full_ranks(path, items=chosen.items).ranks for path in chosen.files]
    kind = prior_kind(chosen.kind, chosen.candidates) or chosen.candidates
    Prior.learn(ranks, items=chosen.items, kind=kind).save(chosen.out)
    say(f"learned from {len(ranks)} models; use it with --prior {chosen.out}")


if __name__ == "__main__":
    run(main)

"""How good the shipped prior is on data that are not in the bank: ``bank_check.py DATA``.

The bank was made by other code, and the prior was chosen on it. Here the recommenders of the
laboratory are fitted to data sets that are not in it (and to two that are, to see whether the bank
is what it is because of its code), one target of each user is held out as the bank does, and the
shipped prior is asked about samples of the exact ranks.

``DATA`` holds ``NAME.npz`` with ``user``, ``item`` and perhaps ``order``. Ranks are kept in a
folder in the form that ``unsample bank add`` reads, so a second run only prints.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from unsample.designs import exact_ranks
from unsample.estimators.prior import KINDS, Prior, shipped
from unsample.lab.bank import RankSet, load_bank, read_folder
from unsample.lab.bank._trials import exact_values, observe
from unsample.lab.datasets import Interactions
from unsample.lab.recommenders import create
from unsample.metrics import parse_all

#: Nothing of their kind is in the bank, ...
NEW = ("msweb", "nbr-dc", "ciao-tang", "dunnhumby-journey", "sess-nowplaying", "epinions-tang")
#: ... another cut of the same source is, ...
RELATED = ("lastfm-lightgcn", "tafeng-dnntsp", "bookcrossing-caserec", "hgn-cds")
#: ... they are themselves, ranked by other code.
KNOWN = ("ml-100k", "steam-200k")
GROUPS = {"new": NEW, "related": RELATED, "in the bank": KNOWN}
MODELS = ("popularity", "itemknn", "als", "ease")
MOST_ITEMS_OF_EASE = 6_000
#: Targets, and scores made for one model: large catalogues get fewer targets.
MOST_TARGETS, MOST_SCORES = 20_000, 600_000_000
FEWEST_EVENTS = 3
SIZES = (20, 99, 499)
CUTOFFS = (1, 10, 50)
METRICS = parse_all([f"{name}@{k}" for name in ("NDCG", "Recall") for k in CUTOFFS])
NAMES = [str(metric) for metric in METRICS]


def held_out(user: np.ndarray, order: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the row of each user's last event, at random among equals, if there are enough."""
    rows = np.lexsort((rng.random(len(user)), order, user))
    last = rows[np.r_[np.diff(user[rows]) > 0, True]]
    return last[np.bincount(user)[user[last]] >= FEWEST_EVENTS]


def make_ranks(source: Path, place: Path) -> None:
    """Rank the held-out targets of a data set by each recommender, and write the ranks."""
    rng = np.random.default_rng(0)
    with np.load(source) as file:
        user, item = file["user"].astype(np.int64), file["item"].astype(np.int64)
        order = file["order"] if "order" in file.files else np.zeros(len(user))
    users, items = int(user.max()) + 1, int(item.max()) + 1
    chosen = held_out(user, order, rng)
    # Others stay in training.
    most = min(MOST_TARGETS, MOST_SCORES // items)
    chosen = np.sort(rng.permutation(chosen)[:most])
    kept = np.ones(len(user), dtype=bool)
    kept[chosen] = False
    train = Interactions.from_pairs(user[kept], item[kept], users=users, items=items)
    chosen = chosen[train.count_by_item()[item[chosen]] > 0]
    targets = user[chosen], item[chosen]
    arrays = {
        "items": np.array(items),
        "n_seen": train.count_by_user()[targets[0]],
        "repeat": np.isin(targets[0] * items + targets[1], train.pair_keys()),
    }
    seen = train.matrix()
    for name in MODELS:
        if name == "ease" and items > MOST_ITEMS_OF_EASE:
            continue
        start = time.perf_counter()
        model = create(name).fit(train)
        fitted = time.perf_counter() - start
        for protocol, exclude in (("1", seen), ("0", None)):
            found = exact_ranks(model, targets, items=items, exclude=exclude, rng=0)
            arrays[f"{name}_{protocol}"] = found.ranks.astype(np.int64)
        took = time.perf_counter() - start
        note = f"{len(chosen):,} targets, {items:,} items, {arrays['repeat'].mean():.0%} repeats"
        print(f"{place.stem} {name}: {note}, {fitted:.0f} + {took - fitted:.0f} s", file=sys.stderr)
    np.savez_compressed(place, **arrays)


@dataclass(frozen=True, eq=False)
class Found:
    """One sample of one rank set: log errors, half-widths over the value, in or out (metrics)."""

    ranks: RankSet
    sampled: int
    stated: bool
    error: np.ndarray
    half: np.ndarray
    inside: np.ndarray


def look(prior: Prior, ranks: RankSet, sampled: int, seed: int) -> Iterable[Found]:
    seen = observe(ranks, sampled, cutoffs=CUTOFFS, seed=seed)
    truth = exact_values(ranks, METRICS)
    for stated in (True, False):
        posterior = prior.posterior(seen, METRICS, kind=ranks.kind if stated else None)
        value = posterior.values[0]
        low, high = (end[0] for end in posterior.interval())
        with np.errstate(divide="ignore"):
            error = np.log(value) - np.log(truth)
        # No metric to speak of: nothing to be right or wrong about.
        known = truth > 0
        inside = np.where(known, (low <= truth) & (truth <= high), np.nan)
        half = (high - low) / (2.0 * value)
        yield Found(ranks, sampled, stated, np.where(known, error, np.nan), half, inside)


def figures(found: Sequence[Found], metrics: Sequence[str]) -> str:
    at = [NAMES.index(name) for name in metrics]
    error = np.nanmedian(np.abs([each.error[at] for each in found]))
    half = np.median([each.half[at] for each in found])
    return f"{error:5.2f} {half:5.2f} {np.nanmean([each.inside[at] for each in found]):6.1%}"


def print_tables(found: Sequence[Found]) -> None:
    group_of = {name: group for group, names in GROUPS.items() for name in names}
    print("median |log error|, half-width over the value, coverage of the 95 % interval;")
    print("NDCG and Recall at K = 1, 10, 50\n")
    print(f"{'':38}{'kind given':^24}{'not given':^24}")
    for kind in KINDS:
        mine = [each for each in found if each.ranks.kind == kind]
        for group in GROUPS:
            part = [each for each in mine if group_of.get(each.ranks.dataset, "new") == group]
            if not part:
                continue
            sets = len({each.ranks.dataset for each in part})
            for sampled in sorted({each.sampled for each in part}):
                some = [each for each in part if each.sampled == sampled]
                label = f"{kind:8} {group:12} {sets:2} sets n = {sampled:3}"
                print(f"{label:38}" + columns(some, NAMES))
            print(f"{kind + ' ' + group + ', all n':38}" + columns(part, NAMES))
    others = [each for each in found if group_of.get(each.ranks.dataset, "new") != "in the bank"]
    if others:
        print("\nby metric, by kind, by kind and model: all but those in the bank, all n")
    for name in NAMES if others else ():
        print(f"{name:38}" + columns(others, [name]))
    for kind in sorted({each.ranks.kind for each in others}):
        mine = [each for each in others if each.ranks.kind == kind]
        print(f"{kind:38}" + columns(mine, NAMES))
        for model in sorted({each.ranks.model for each in mine}):
            part = [each for each in mine if each.ranks.model == model]
            print(f"{kind + ' ' + model:38}" + columns(part, NAMES))
    print("\nby data set, all n")
    for dataset, kind in sorted({(each.ranks.dataset, each.ranks.kind) for each in found}):
        part = [each for each in found if (each.ranks.dataset, each.ranks.kind) == (dataset, kind)]
        print(f"{dataset + ' ' + kind:38}" + columns(part, NAMES))


def columns(found: Sequence[Found], metrics: Sequence[str]) -> str:
    halves = ([each for each in found if each.stated is stated] for stated in (True, False))
    return "".join(f"{figures(half, metrics):^24}" for half in halves)


def print_verdicts(prior: Prior, sets: Sequence[RankSet], sizes: Sequence[int], seed: int) -> None:
    """Print how many pairs of models get a verdict (a chance of 95 % or more), how many rightly."""
    print("\npairs with a verdict, and of these right: kind given, and not given; all but those in")
    print("the bank, NDCG and Recall at K = 1, 10, 50 where the two differ")
    sets = [each for each in sets if each.dataset not in KNOWN]
    for kind in KINDS:
        for sampled in sizes:
            texts = []
            for stated in (kind, None):
                called = [
                    each
                    for dataset in sorted({s.dataset for s in sets if s.kind == kind})
                    for each in verdicts(
                        prior,
                        [s for s in sets if (s.dataset, s.kind) == (dataset, kind)],
                        sampled,
                        stated,
                        seed,
                    )
                ]
                right = [each for each in called if each is not None]
                if called:
                    texts.append(f"{len(right) / len(called):6.1%} {np.mean(right):6.1%}")
            if texts:
                print(f"{kind:8} n = {sampled:3}    " + "    ".join(texts))


def verdicts(
    prior: Prior, models: Sequence[RankSet], sampled: int, kind: str | None, seed: int
) -> Iterable[bool | None]:
    """Yield whether the verdict on each pair and metric is right, None where there is none."""
    seen = [observe(each, sampled, cutoffs=CUTOFFS, seed=seed) for each in models]
    joint = prior.joint(seen, METRICS, kind=kind)
    exact = [exact_values(each, METRICS) for each in models]
    for first, second in combinations(range(len(models)), 2):
        chances = joint.chance(first, second)
        for chance, here, there in zip(chances, exact[first], exact[second], strict=True):
            if here != there:
                sure = max(chance, 1.0 - chance) >= 0.95
                yield bool((chance > 0.5) == (here > there)) if sure else None


def print_beside_the_bank(sets: Sequence[RankSet]) -> None:
    """Print how the same data and models look in the bank, which other code made."""
    same = {"popularity": "pop", "itemknn": "knn", "als": "als", "ease": "ease"}
    bank = load_bank()
    print("\nsteepness of the top, log P(R <= 10) - log P(R <= 100): here, and in the bank")
    for one in sets:
        model = same.get(one.model, one.model)
        for other in bank.select(dataset=one.dataset, model=model, kind=one.kind):
            here, there = (float(steepness(each)) for each in (one, other))
            print(f"  {one.dataset:12} {one.model:10} {one.kind:7} {here:6.2f} {there:6.2f}")


def steepness(ranks: RankSet) -> float:
    placed = ranks.ranks()
    return float(np.log((placed <= 10).mean()) - np.log((placed <= 100).mean()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help="folder of NAME.npz with user, item, order")
    parser.add_argument("--ranks", type=Path, default=Path("out/bank_check"))
    parser.add_argument("--datasets", nargs="+", default=[*NEW, *RELATED, *KNOWN])
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--prior", type=Path, help="another prior than the shipped one")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    chosen.ranks.mkdir(parents=True, exist_ok=True)
    for name in chosen.datasets:
        place = chosen.ranks / f"{name}.npz"
        if not place.exists():
            make_ranks(chosen.data / f"{name}.npz", place)
    prior = shipped() if chosen.prior is None else Prior.load(chosen.prior)
    sets = [each for each in read_folder(chosen.ranks) if each.dataset in chosen.datasets]
    found = [
        each
        for ranks in sets
        for sampled in chosen.sizes
        for each in look(prior, ranks, sampled, chosen.seed)
    ]
    print_tables(found)
    print_verdicts(prior, sets, chosen.sizes, chosen.seed)
    print_beside_the_bank(sets)


if __name__ == "__main__":
    main()

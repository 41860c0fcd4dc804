"""What each design costs and how far off it is, on the bundled ranks.

python benchmarks/designs.py certified          scored share against the law K/R, and at N = 10^6
python benchmarks/designs.py adaptive [repeats]  RMSE against fixed samples of the same cost
python benchmarks/designs.py winners [repeats]   the paper's winner tables, adaptive beside fixed
python benchmarks/designs.py plot FILE.svg       error against cost, for the page on designs
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import replace

import numpy as np

from unsample.answers import ADAPTIVE_METHOD, estimate_counts
from unsample.designs import Adaptive, Certified
from unsample.lab.datasets import load_ranks
from unsample.lab.paper import Cell, Spec
from unsample.lab.paper._cells import CellResult, Ranks, compute_cell, exact_values
from unsample.lab.paper._tables import winner_rows

#: The costs at which adaptive and fixed samples are compared.
COSTS = {"ml-1m": 99, "citeulike-a": 500}


def ranks_of(cell: Cell) -> Ranks:
    known = load_ranks(cell.dataset, cell.recommender, candidates=cell.candidates)
    return Ranks(known.ranks, known.items)


def adaptive_cell(spec: Spec, cell: Cell, ranks: Ranks) -> tuple[np.ndarray, float]:
    """Evaluate at the cost of ``cell.sampled`` items for each target, again and again.

    Returned are the metrics of every repeat, and the mean number of scores for each target.
    """
    streams = cell.seed_sequence(spec.rng).spawn(spec.repeats)
    # As in an evaluation with one seed, all models let the same targets go on.
    shared = replace(cell, recommender="").seed_sequence(spec.rng).spawn(spec.repeats)
    values, scored = [], 0
    for stream, common in zip(streams, shared, strict=True):
        found = Adaptive().simulate(
            ranks.ranks,
            items=ranks.items,
            rng=np.random.default_rng(stream),
            budget=(cell.sampled + 1) * len(ranks.ranks),
            metrics=spec.columns,
            shuffle=np.random.default_rng(common).permutation(len(ranks.ranks)),
        )
        result = estimate_counts(
            found.counts, metrics=spec.columns, method=ADAPTIVE_METHOD, resamples=0
        )
        values.append([entry.value for entry in result.entries])
        scored += found.scored
    return np.array(values), scored / spec.repeats / len(ranks.ranks)


def certified() -> None:
    for candidates in ("unseen", "all"):
        for recommender in Spec().recommenders:
            known = load_ranks("citeulike-a", recommender, candidates=candidates)
            report(f"citeulike-a {candidates} {recommender}", known.ranks, known.items)
    # A realistic P(R) on a catalogue of a million: a data set's ranks, drawn out to its size.
    items = 1_000_000
    for dataset in ("ml-1m", "citeulike-a", "pinterest-20", "yelp"):
        known = load_ranks(dataset, "ease")
        rng = np.random.default_rng(0)
        part = rng.choice(len(known.ranks), 2000, replace=False)
        share = (known.ranks[part] - rng.random(2000)) / known.items[part]
        report(f"N = 10^6, P(R) of {dataset}, ease", np.ceil(share * items).astype(int), items)


def report(name, ranks, items):
    found = Certified().simulate(ranks, items=items, metrics="NDCG@10")
    share = found.scored / np.broadcast_to(items, ranks.shape).sum()
    law = np.average(np.minimum(1, 10 / ranks), weights=np.broadcast_to(items, ranks.shape))
    print(
        f"{name}: scored share {share:.4f}, {share / law:.3f} of mean min(1, K/R)",
        flush=True,
    )


def adaptive(repeats: int) -> None:
    for dataset, cost in COSTS.items():
        ratios = defaultdict(list)
        spec = Spec(
            datasets=(dataset,),
            sampled=cost,
            repeats=repeats,
            ks=(10,),
            estimators=(("MLE", "mle"),),
        )
        for cell in spec.tables():
            ranks = ranks_of(cell)
            fixed = compute_cell(spec, cell, ranks)
            values, scored = adaptive_cell(spec, cell, ranks)
            errors = [
                np.sqrt(((found - fixed.exact) ** 2).mean(axis=0))
                for found in (values, fixed.values["MLE"])
            ]
            for metric, ratio in zip(spec.columns, errors[0] / errors[1], strict=True):
                ratios[metric.name].append(ratio)
            shown = ", ".join(
                f"{m.name} {a:.5f} / {f:.5f} (exact {e:.4f})"
                for m, a, f, e in zip(spec.columns, *errors, fixed.exact, strict=True)
            )
            print(f"{cell.name}: {scored:.1f} scores for each target; RMSE {shown}", flush=True)
        for metric, some in ratios.items():
            mean = np.exp(np.mean(np.log(some)))
            print(f"{dataset}, {cost} items: {metric} adaptive / fixed MLE {mean:.3f}", flush=True)


def winners(repeats: int) -> None:
    spec = Spec(repeats=repeats)
    redone = replace(spec, estimators=(("Adaptive", ADAPTIVE_METHOD),))
    fixed, moved = {}, {}
    for cell in spec.tables():
        ranks = ranks_of(cell)
        fixed[cell] = compute_cell(spec, cell, ranks)
        values, _ = adaptive_cell(spec, cell, ranks)
        moved[cell] = CellResult(exact_values(ranks, spec.columns), {"Adaptive": values}, {})
    key = lambda row: tuple(row[name] for name in ("dataset", "candidates", "k", "metric"))  # noqa: E731
    found = {key(row): row["correct"] for row in winner_rows(redone, moved)}
    others = defaultdict(dict)
    for row in winner_rows(spec, fixed):
        others[key(row)][row["estimator"]] = row["correct"]
    labels = [label for label, _ in spec.estimators]
    print("| data set | candidates | K | metric | adaptive |", *(f" {label} |" for label in labels))
    print("| --- | --- | --- | --- | --- |" + " --- |" * len(labels))
    for where, correct in found.items():
        shown = " | ".join(str(others[where][label]) for label in labels)
        print("|", " | ".join(map(str, where)), "|", correct, "|", shown, "|")
    for label in labels:
        worse = [where for where in found if found[where] < others[where][label]]
        print(
            f"cells where adaptive is right less often than {label}: {len(worse)} of {len(found)}"
        )


if __name__ == "__main__":
    verb, *rest = sys.argv[1:] or ["certified"]
    if verb == "certified":
        certified()
    elif verb == "adaptive":
        adaptive(int(rest[0]) if rest else 100)
    elif verb == "winners":
        winners(int(rest[0]) if rest else 100)
    else:
        from plot_designs import draw

        draw(rest[0])

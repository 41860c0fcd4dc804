"""What each design costs and how far off it is, on the bundled ranks.

python benchmarks/designs.py certified          scored share against the law K/R, and at N = 10^6
python benchmarks/designs.py adaptive [repeats]  RMSE against fixed samples of the same cost
python benchmarks/designs.py winners [repeats]   the paper's winner tables, adaptive beside fixed
python benchmarks/designs.py plot FILE.svg       error against cost, for the page on designs
"""

from __future__ import annotations

import sys
from collections import defaultdict

import numpy as np
from unsample.answers.evaluation import Certified, evaluate_known_ranks
from unsample.lab.experiment import Spec
from unsample.lab.experiment._adaptive import adaptive_winner_rows, compute_adaptive_cell
from unsample.lab.experiment._cells import Ranks, compute_cell
from unsample.lab.experiment._rows import winner_rows
from unsample.lab.experiment._spec import Cell

from unsample.lab.datasets import load_ranks

#: The costs at which adaptive and fixed samples are compared.
COSTS = {"ml-1m": 99, "citeulike-a": 500}


def ranks_of(cell: Cell) -> Ranks:
    known = load_ranks(cell.dataset, cell.recommender, protocol=cell.protocol)
    return Ranks(known.ranks, known.items)


def certified() -> None:
    for protocol in ("everyday", "paper"):
        for recommender in Spec().recommenders:
            known = load_ranks("citeulike-a", recommender, protocol=protocol)
            report(f"citeulike-a {protocol} {recommender}", known.ranks, known.items)
    # A realistic P(R) on a catalogue of a million: a data set's ranks, drawn out to its size.
    items = 1_000_000
    for dataset in ("ml-1m", "citeulike-a", "pinterest-20", "yelp"):
        known = load_ranks(dataset, "ease", protocol="everyday")
        rng = np.random.default_rng(0)
        part = rng.choice(len(known.ranks), 2000, replace=False)
        share = (known.ranks[part] - rng.random(2000)) / known.items[part]
        report(f"N = 10^6, P(R) of {dataset}, ease", np.ceil(share * items).astype(int), items)


def report(name, ranks, items):
    found = evaluate_known_ranks(
        ranks, items=items, design=Certified(), metrics="NDCG@10", resamples=0
    )
    law = np.average(np.minimum(1, 10 / ranks), weights=np.broadcast_to(items, ranks.shape))
    print(
        f"{name}: scored share {found.share:.4f}, {found.share / law:.3f} of mean min(1, K/R)",
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
            values, scored = compute_adaptive_cell(spec, cell, ranks)
            errors = [
                np.sqrt(((one - fixed.exact) ** 2).mean(axis=0))
                for one in (values, fixed.values["MLE"])
            ]
            for metric, ratio in zip(spec.columns, errors[0] / errors[1], strict=True):
                ratios[metric.name].append(ratio)
            shown = ", ".join(
                f"{m.name} {a:.5f} / {f:.5f} (exact {e:.4f})"
                for m, a, f, e in zip(spec.columns, *errors, fixed.exact, strict=True)
            )
            print(f"{cell.name}: {scored:.1f} items a target; RMSE {shown}", flush=True)
        for metric, some in ratios.items():
            mean = np.exp(np.mean(np.log(some)))
            print(f"{dataset}, {cost} items: {metric} adaptive / fixed MLE {mean:.3f}", flush=True)


def winners(repeats: int) -> None:
    spec = Spec(repeats=repeats)
    cells, fixed = {}, {}
    for cell in spec.tables():
        ranks = ranks_of(cell)
        fixed[cell] = compute_cell(spec, cell, ranks)
        cells[cell] = compute_adaptive_cell(spec, cell, ranks)
    key = lambda row: tuple(row[name] for name in ("dataset", "protocol", "k", "metric"))  # noqa: E731
    redone = adaptive_winner_rows(spec, cells, {cell: one.exact for cell, one in fixed.items()})
    found = {key(row): row["correct"] for row in redone}
    others = defaultdict(dict)
    for row in winner_rows(spec, fixed):
        others[key(row)][row["estimator"]] = row["correct"]
    labels = [label for label, _ in spec.estimators]
    print("| data set | protocol | K | metric | adaptive |", *(f" {label} |" for label in labels))
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

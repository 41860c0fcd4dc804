"""Error against cost of every design, as a picture; `benchmarks/designs.py plot FILE.svg`."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
from designs import adaptive_cell, ranks_of
from matplotlib import pyplot as plt

from unsample.lab.paper import Cell, Spec
from unsample.lab.paper._cells import compute_cell, exact_values
from unsample.metrics import parse

PANELS = [(d, p, "ease") for d in ("ml-1m", "citeulike-a") for p in ("unseen", "all")]
COSTS = (25, 50, 100, 200, 400, 800, 1600)
REPEATS = 20
METRIC = parse("NDCG@10")


def curves(dataset, candidates, recommender):
    """Return relative RMSE by cost for each design, and the mean cost of a certified evaluation."""
    found = {"fixed, MLE": [], "adaptive": [], "some users, ranked in full": []}
    for cost in COSTS:
        cell = Cell(dataset, candidates, recommender, cost)
        spec = Spec(
            sampled=cost, repeats=REPEATS, metrics=("NDCG",), ks=(10,), estimators=(("MLE", "mle"),)
        )
        ranks = ranks_of(cell)
        exact = exact_values(ranks, spec.columns)[0]
        fixed = compute_cell(spec, cell, ranks).values["MLE"][:, 0]
        adaptive, scored = adaptive_cell(spec, cell, ranks)
        weights = METRIC.weights(ranks.ranks, int(ranks.items.max()))
        part = cost / (ranks.items - 1).mean()
        chance = weights.std(ddof=1) * np.sqrt((1 - part) / (part * len(weights)))
        found["fixed, MLE"].append((cost, error(fixed, exact)))
        found["adaptive"].append((scored, error(adaptive[:, 0], exact)))
        found["some users, ranked in full"].append((cost, chance / exact))
    certified = (np.minimum(1, 10 / ranks.ranks) * ranks.items).mean()
    return found, certified


def error(values, exact):
    return np.sqrt(((values - exact) ** 2).mean()) / exact


def draw(path):
    mpl.rcParams["svg.hashsalt"] = "unsample"  # the same picture, the same bytes
    figure, axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained", sharex=True)
    for axis, panel in zip(axes.flat, PANELS, strict=True):
        found, certified = curves(*panel)
        for (name, points), style in zip(found.items(), ("o-", "s-", "^--"), strict=True):
            axis.loglog(*zip(*points, strict=True), style, label=name, markersize=4)
        axis.axvline(certified, color="black", linestyle=":", label="certified: exact from here")
        axis.set_title(f"{panel[0]}, candidates {panel[1]}, EASE")
        axis.grid(alpha=0.3)
        print(panel, {name: np.round(points, 4).tolist() for name, points in found.items()})
    for axis in axes[:, 0]:
        axis.set_ylabel("RMSE of NDCG@10 / its exact value")
    for axis in axes[1]:
        axis.set_xlabel("scores for each target, in the mean")
    axes[0, 0].legend(fontsize=8)
    figure.savefig(path, metadata={"Date": None})

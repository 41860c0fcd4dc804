"""Make the pictures of the documentation from the bundled ranks: ``python tools/pictures.py``.

``python tools/pictures.py [FOLDER]``
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

import unsample
from unsample.errors import UnsampleWarning
from unsample.lab.corpus import RankSet, load_corpus
from unsample.lab.datasets import load_ranks
from unsample.posterior import PROTOCOLS, PUSHED, Prior, shipped
from unsample.posterior._basis import shapes_on
from unsample.posterior._own_items import push_matrix, usual_own_items
from unsample.report import plot, save_figure
from unsample.sampling import RankGrid, draw_sampled_ranks

RECOMMENDERS = {
    "ease": "EASE",
    "multivae": "MultiVAE",
    "als": "ALS",
    "neumf": "NeuMF",
    "itemknn": "itemKNN",
}
TEAL, ORANGE, GREY, INK = "#12938b", "#d9822b", "#ccd6d5", "#22403e"

FOLDER = Path(*sys.argv[1:2] or [Path(__file__).parent.parent / "docs" / "pictures"])


def save(figure: Figure, name: str, title: str, *, text: str, dpi: float = 100) -> None:
    """Write a picture with its title and its description, at the size it was made."""
    save_figure(figure, FOLDER / name, described=(title, text), bbox_inches=None, dpi=dpi)


def estimate_drawn(dataset: str, sampled: int, candidates: str, stated: str | None) -> tuple:
    """Return an estimate from sampled ranks of EASE, and the full ranks behind it."""
    truth = load_ranks(dataset, "ease", candidates=candidates)
    rng = np.random.default_rng(0)
    drawn = draw_sampled_ranks(truth.ranks, items=truth.items, sampled=sampled, rng=rng)
    return quiet_estimate(drawn, truth.items, sampled, stated), truth.ranks


def draw_one_target(ax: Axes, *, items: int = 3706, rank: int = 81, sampled: int = 99) -> None:
    """Draw the catalogue as dots, best first, with those that are sampled."""
    drawn = np.random.default_rng(3).choice(np.delete(np.arange(items), rank - 1), size=sampled)
    # Columns of dots from the best item at the top left to the worst at the bottom right.
    rows = 38
    place = np.stack([np.arange(items) // rows, -(np.arange(items) % rows)])
    better = np.arange(items) < rank - 1
    ax.scatter(*place[:, ~better], s=9, color=GREY, linewidths=0, rasterized=True)
    ax.scatter(*place[:, better], s=9, color=ORANGE, linewidths=0, rasterized=True)
    worse, beating = drawn[drawn >= rank], drawn[drawn < rank - 1]
    ax.scatter(*place[:, worse], s=20, color=INK, linewidths=0, label="sampled")
    ax.scatter(*place[:, beating], s=60, color=ORANGE, linewidths=0, label="sampled, beats it")
    ax.scatter(*place[:, rank - 1], s=220, marker="*", color=TEAL, zorder=3, label="the target")
    ax.set_title(
        f"One user: {rank - 1} of {items - 1:,} items beat the target, "
        f"{len(beating)} of {sampled} sampled ones do.\n"
        f"Rank {rank:,} of {items:,} becomes rank {len(beating) + 1} of {sampled + 1}.",
        fontsize=11,
        loc="left",
    )
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncol=3, frameon=False, fontsize=9)
    ax.set_aspect(1.5)
    ax.set_axis_off()


def draw_hit_rates(ax: Axes, sampled: int = 99) -> None:
    """Draw sampled, true and estimated hit rates of five recommenders."""
    for position, name in enumerate(RECOMMENDERS):
        truth = load_ranks("ml-1m", name)
        drawn = draw_sampled_ranks(truth.ranks, items=truth.items, sampled=sampled, rng=0)
        result = quiet_estimate(drawn, truth.items, sampled, "unseen")["Recall@10"]
        low, high = result.interval()
        exact = float(np.mean(truth.ranks <= 10))
        naive = float(np.mean(drawn <= 10))
        first = position == 0
        ax.barh(position - 0.2, naive, 0.36, color=GREY, label="against 99 sampled" * first)
        ax.barh(position + 0.2, exact, 0.36, color=ORANGE, label="true, all items" * first)
        ax.errorbar(
            result.value,
            position + 0.2,
            xerr=[[result.value - low], [high - result.value]],
            fmt="o",
            color=TEAL,
            capsize=3,
            markersize=4,
            label="unsample, from the sample" * first,
        )
        ax.text(naive + 0.01, position - 0.2, f"{naive:.2f}", va="center", fontsize=9)
        both = f"{exact:.2f} true, {result.value:.2f} estimated"
        ax.text(max(high, exact) + 0.01, position + 0.2, both, va="center", fontsize=9)
    ax.set_yticks(range(len(RECOMMENDERS)), RECOMMENDERS.values())
    ax.invert_yaxis()
    ax.set_xlim(0, 0.8)
    ax.set_xlabel("hit rate at 10, ml-1m")
    ax.set_title("Five recommenders: the same name, another number.", fontsize=11, loc="left")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(loc="upper center", bbox_to_anchor=(0.45, -0.16), ncol=3, frameon=False, fontsize=9)


def problem() -> None:
    """Draw what sampling does to one target, and to the hit rates of five recommenders."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.2), layout="constrained")
    draw_one_target(left)
    draw_hit_rates(right)
    text = (
        "Left: a catalogue as dots with one target, some items sampled. Right: hit rates at 10 of "
        "five recommenders on ml-1m, against 99 sampled items, against all items, and as estimated "
        "from the sample."
    )
    save(figure, "problem.svg", "What sampling does to a metric", text=text, dpi=200)


def five_models() -> None:
    """Draw sampled, true and estimated hit rates of five recommenders, for a narrow screen."""
    figure, ax = plt.subplots(figsize=(5.2, 3.6), layout="constrained")
    prior = Prior.shipped(without="ml-1m")
    for position, name in enumerate(RECOMMENDERS):
        full = load_ranks("ml-1m", name)
        drawn = draw_sampled_ranks(full.ranks, items=full.items, sampled=99, rng=0)
        design = {"sampled": 99, "candidates": "unseen", "prior": prior}
        result = quiet_estimate(drawn, full.items, **design)["Recall@10"]
        low, high = result.interval()
        truth = float(np.mean(full.ranks <= 10))
        naive = float(np.mean(drawn <= 10))
        first = position == 0
        ax.barh(position - 0.2, naive, 0.36, color=GREY, label="among 100 items" * first)
        ax.barh(position + 0.2, truth, 0.36, color=ORANGE, label="among all (the truth)" * first)
        ax.errorbar(
            result.value,
            position + 0.2,
            xerr=[[result.value - low], [high - result.value]],
            fmt="o",
            color=TEAL,
            capsize=4,
            markersize=6,
            linewidth=2,
            label="unsample, 95 % interval" * first,
        )
        ax.text(naive + 0.01, position - 0.2, f"{naive:.2f}", va="center", fontsize=12)
        ax.text(high + 0.015, position + 0.2, f"{truth:.2f}", va="center", fontsize=12)
    ax.set_yticks(range(len(RECOMMENDERS)), RECOMMENDERS.values(), fontsize=13)
    ax.invert_yaxis()
    ax.set_xlim(0, 0.82)
    ax.set_xticks([])
    ax.set_title("Hit rate at 10, ml-1m", fontsize=14, loc="left")
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    figure.legend(loc="outside lower left", ncol=1, frameon=False, fontsize=12)
    text = (
        "Hit rates at 10 of five recommenders on ml-1m: long bars among 100 items, bars more than "
        "six times shorter among all items, and near the ends of these the intervals of unsample."
    )
    save(figure, "five-models.svg", title="The same name, another number", text=text)


def quiet_estimate(
    drawn: np.ndarray, items: np.ndarray, sampled: int, candidates: str | None, **more: object
) -> unsample.Estimates:
    """Return an estimate whose warnings are kept in it alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        return unsample.estimate(drawn, items=items, sampled=sampled, protocol=candidates, **more)


def what_can_be_known(largest: int = 200) -> None:
    """Draw intervals and bounds of Recall@K relative to the exact value, for 99 and 499 items."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 3.9), sharey=True, layout="constrained")
    for ax, sampled in zip(axes, (99, 499), strict=True):
        result, full_ranks = estimate_drawn("ml-1m", sampled, "unseen", "unseen")
        ks = np.unique(np.geomspace(1, largest, 24).round().astype(int))
        exact = np.array([np.mean(full_ranks <= k) for k in ks])
        estimates = [result.metric(f"Recall@{k}") for k in ks]
        values = np.array([entry.value for entry in estimates]) / exact
        intervals = np.array([entry.interval() for entry in estimates]) / exact[:, None]
        bounds = np.array([entry.bounds() for entry in estimates]) / exact[:, None]
        # A logarithmic axis has no 0, where bounds begin.
        lowest = np.maximum(bounds[:, 0], 1e-3)
        ax.fill_between(ks, lowest, bounds[:, 1], color=GREY, lw=0, label="bounds")
        ax.fill_between(ks, *intervals.T, color=TEAL, alpha=0.55, lw=0, label="95 % interval")
        ax.plot(ks, values, color=INK, lw=1.6, label="estimate")
        ax.axhline(1, color=ORANGE, lw=1.4, ls="--", label="exact")
        edge = result.counts.blind_rank
        ax.axvline(edge, color=INK, lw=0.8, ls=":")
        ax.text(edge * 1.06, 3.5, f"N/n = {edge:.0f}", fontsize=9, color=INK, va="top")
        ax.set(xscale="log", yscale="log", xlim=(1, largest), ylim=(0.25, 4), xlabel="K")
        ax.yaxis.set_major_locator(FixedLocator([0.25, 0.5, 1, 2, 4]))
        ax.yaxis.set_major_formatter(FixedFormatter(["a quarter", "half", "exact", "twice", "4 x"]))
        ax.yaxis.set_minor_locator(NullLocator())
        ax.set_title(f"{sampled} negatives", fontsize=11, loc="left")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("Recall@K, relative to the exact one")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    text = (
        "Recall@K of EASE on ml-1m, estimated from 99 and from 499 sampled items, relative to the "
        "exact value: the estimate, its interval, narrow beyond K = N/n, and its bounds, which are "
        "wide."
    )
    save(figure, "what-can-be-known.svg", "What sampled ranks can tell", text=text)


def cloud(shown: int = 40) -> None:
    """Draw some curves of a cloud, and Recall@K of each, beside the exact ones."""
    result, full_ranks = estimate_drawn("ml-1m", 99, "unseen", "unseen")
    curves, edge = result.curves, result.counts.blind_rank
    grid, masses = curves.on_one_grid()
    some = masses[:: len(masses) // shown][:shown]
    rank = (grid.low + grid.high) / 2
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    left.plot(rank, (some / grid.width).T, color=TEAL, alpha=0.35, lw=0.7)
    edges = np.unique(np.geomspace(1, grid.items + 1, 22).round())
    exact = np.histogram(full_ranks, bins=edges)[0] / len(full_ranks) / np.diff(edges)
    left.plot(np.sqrt(edges[:-1] * (edges[1:] - 1)), exact, color=ORANGE, lw=1.6)
    left.set(xscale="log", yscale="log", xlim=(1, grid.items), ylim=(1e-6, 0.2))
    left.set(xlabel="rank R", ylabel="P(R)")
    left.set_title(f"{shown} draws", fontsize=11, loc="left")
    ks = np.unique(np.geomspace(1, 200, 40).round().astype(int))
    recalls = [curves.metric(f"Recall@{k}") for k in ks]
    low, high = np.array([each.interval() for each in recalls]).T
    inside = np.cumsum(some, axis=1)[:, grid.locate(ks)]
    right.fill_between(ks, low, high, color=TEAL, alpha=0.2, lw=0, label="95 % interval")
    right.plot(ks, inside.T, color=TEAL, alpha=0.35, lw=0.7)
    right.plot(ks, [each.value for each in recalls], color=INK, lw=1.6, label="median")
    truth = [np.mean(full_ranks <= k) for k in ks]
    right.plot(ks, truth, color=ORANGE, lw=1.6, label="exact")
    right.set(xscale="log", xlim=(1, 200), ylim=(0, None), xlabel="K", ylabel="Recall@K")
    right.set_title("Recall@K of the same draws", fontsize=11, loc="left")
    right.legend(loc="upper left", frameon=False, fontsize=9)
    for ax in (left, right):
        ax.axvline(edge, color=INK, lw=0.8, ls=":")
        ax.spines[["top", "right"]].set_visible(False)
    text = (
        "Left: draws of P(R) for EASE on ml-1m, with the exact curve. Right: Recall@K of the same "
        "draws, with their median, their 95 % interval and the exact curve."
    )
    save(figure, "cloud.svg", "A cloud of curves", text=text)


def from_printed_numbers() -> None:
    """Draw what four printed numbers tell about the whole curve."""
    printed = {"HR@1": "0.226", "HR@5": "0.562", "HR@10": "0.710", "NDCG@10": "0.448"}
    result = unsample.published(printed, items=3541, sampled=99, users=6040, protocol="unseen")
    full_ranks = np.minimum(load_ranks("ml-1m", "ease").ranks, 3541)
    ax = result.plot_curve(largest=1000, full_ranks=full_ranks)
    text = (
        "Recall@K against K from four printed numbers: the estimate, its interval, its bounds and "
        "the exact curve."
    )
    save(ax.figure, "published.svg", "What four printed numbers tell", text=text)


def prior_curves(protocol: str, grid: RankGrid, draws: int) -> np.ndarray:
    """Return P(R) at each rank for curves of the prior (draws x bins).

    Among all items, users' own items push curves among unseen ones down, in several ways.
    """
    known = shipped().learned[PUSHED if protocol == "all" else protocol]
    normal = np.random.default_rng(0).normal(size=(draws, len(known.mean)))
    log_density = (known.mean + normal @ known.root.T) @ shapes_on(grid).T
    masses = np.exp(log_density) * grid.width
    masses /= masses.sum(axis=1, keepdims=True)
    if protocol == "all":
        pushes = usual_own_items(())
        ends = np.cumsum([probability for _, probability in pushes])
        parts = np.split(masses, np.rint(ends[:-1] * draws).astype(int))
        masses = np.concatenate(
            [part @ push_matrix(grid, own).T for part, (own, _) in zip(parts, pushes, strict=True)]
        )
    return masses / grid.width


def what_was_learned(items: int = 10_000, draws: int = 4000) -> None:
    """Draw P(R) as the shipped prior has it, before any sample, and real rank sets behind it."""
    grid = RankGrid.coarse(items)
    rank = (grid.low + grid.high) / 2
    figure, axes = plt.subplots(
        1, len(PROTOCOLS), figsize=(11, 3.6), sharex=True, sharey=True, layout="constrained"
    )
    for ax, kind in zip(axes, PROTOCOLS, strict=True):
        shares = np.quantile(prior_curves(kind, grid, draws), [0.05, 0.25, 0.5, 0.75, 0.95], axis=0)
        lowest, low, middle, high, highest = shares
        corpus = load_corpus().select(kind=kind, partial=False)
        near = [held for held in corpus if items / 3 <= held.items <= 3 * items]
        for held in near:
            thin = {"color": INK, "alpha": min(0.5, 20 / len(near)), "lw": 0.6}
            ax.plot(*density(held, items), rasterized=True, **thin)
        ax.plot([], [], color=INK, alpha=0.5, lw=0.6, label="models of the corpus")
        ax.fill_between(rank, lowest, highest, color=TEAL, alpha=0.22, lw=0, label="90 % of curves")
        ax.fill_between(rank, low, high, color=TEAL, alpha=0.4, lw=0, label="50 %")
        ax.plot(rank, middle, color=ORANGE, lw=1.6, label="median")
        ax.set(xscale="log", yscale="log", xlim=(1, items), ylim=(1e-6, 1), xlabel="rank R")
        ax.set_title(kind, fontsize=11)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel(f"P(R), {items:,} items")
    axes[0].legend(loc="lower left", frameon=False, fontsize=8)
    text = (
        "P(R) under the prior before any sample, for four protocols: the median, half and 90 % of "
        "its curves, and real models as thin lines."
    )
    save(figure, "learned.svg", "What the prior has learned", text=text, dpi=120)


def density(held: RankSet, items: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ranks and P(R) of a rank set, as if its catalogue had so many items.

    Ranks are moved in proportion, in bins so wide that a line does not jump from rank to rank.
    """
    edges = np.unique(np.geomspace(1, held.items + 1, 22).round())
    counts = np.histogram(held.ranks(), bins=edges)[0] / held.targets
    scale = items / held.items
    middle = scale * np.sqrt(edges[:-1] * (edges[1:] - 1))
    found = counts > 0
    return middle[found], (counts / np.diff(edges) / scale)[found]


def over_data_sets() -> None:
    """Draw the means of three models over five data sets, as docs/compare.md has them."""
    wanted = ("allrecipes", "amazon-cds", "hin-yelp", "s3-beauty", "steam-200k")
    sets: dict[str, dict[str, unsample.RankCounts]] = {name: {} for name in wanted}
    rng = np.random.default_rng(0)
    for each in load_corpus():
        known = each.model in ("ease", "knn", "pop") and each.dataset in wanted
        if known and each.kind == "unseen":
            ranks = rng.permutation(each.ranks())[:3000]
            drawn = draw_sampled_ranks(ranks, items=each.items, sampled=99, rng=rng)
            counts = unsample.RankCounts.from_ranks(drawn, items=each.items, sampled=99)
            sets[each.dataset][each.model] = counts
    with warnings.catch_warnings():
        # The ranks of each model are shuffled, so no users match.
        warnings.simplefilter("ignore", UnsampleWarning)
        found = unsample.compare(sets, across="dataset", metrics="NDCG@10", protocol="unseen")
    figure, ax = plt.subplots(figsize=(7.5, 2.8), layout="constrained")
    plot(found, ax=ax)
    text = "The mean NDCG@10 of three models over five data sets, whose values are small marks."
    save(figure, "across.svg", "Means over data sets", text=text)


def main() -> None:
    """Make every picture."""
    plt.rcParams["svg.hashsalt"] = "unsample"
    FOLDER.mkdir(parents=True, exist_ok=True)
    problem()
    five_models()
    what_can_be_known()
    cloud()
    from_printed_numbers()
    what_was_learned()
    over_data_sets()


if __name__ == "__main__":
    main()

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

import unsample
from unsample.errors import UnsampleWarning
from unsample.lab.bank import RankSet, load_bank
from unsample.lab.datasets import load_ranks
from unsample.law import RankGrid, draw_sampled_ranks
from unsample.prior import KINDS, shipped
from unsample.prior._shapes import shapes_on
from unsample.show import plot, plot_curve

RECOMMENDERS = {
    "ease": "EASE",
    "multivae": "MultiVAE",
    "als": "ALS",
    "neumf": "NeuMF",
    "itemknn": "itemKNN",
}
TEAL, ORANGE, GREY, INK = "#12938b", "#d9822b", "#ccd6d5", "#22403e"

FOLDER = Path(*sys.argv[1:2] or [Path(__file__).parent.parent / "docs" / "pictures"])
#: Pictures are compared by eye and by git: nothing in them may depend on the day.
METADATA = {"Date": None, "Creator": "unsample"}


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
        ax.text(max(high, exact) + 0.01, position + 0.2, f"{exact:.2f}", va="center", fontsize=9)
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
    figure.savefig(FOLDER / "problem.svg", metadata=METADATA, dpi=200)


def quiet_estimate(
    drawn: np.ndarray, items: np.ndarray, sampled: int, candidates: str | None, **more: object
) -> unsample.Estimates:
    """Return an estimate whose warnings are kept in it alone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        return unsample.estimate(drawn, items=items, sampled=sampled, candidates=candidates, **more)


def what_can_be_known() -> None:
    """Draw intervals and bounds for 99 and 499 negatives, with and without stated candidates."""
    panels = [
        ("99 negatives, candidates not stated", 99, "unseen", None),
        ("99 negatives, unseen candidates", 99, "unseen", "unseen"),
        ("499 negatives, unseen candidates", 499, "unseen", "unseen"),
        ("99 negatives, all candidates", 99, "all", "all"),
    ]
    figure, axes = plt.subplots(2, 2, figsize=(10, 7), sharey=True, layout="constrained")
    for ax, (title, sampled, candidates, stated) in zip(axes.flat, panels, strict=True):
        result, full_ranks = estimate_drawn("ml-1m", sampled, candidates, stated)
        plot_curve(result, full_ranks=full_ranks, ax=ax)
        ax.set_title(f"EASE on ml-1m, {title}", fontsize=10)
    figure.savefig(FOLDER / "what-can-be-known.svg", metadata=METADATA)


def from_printed_numbers() -> None:
    """Draw what four printed numbers tell about the whole curve."""
    printed = {"HR@1": "0.226", "HR@5": "0.562", "HR@10": "0.710", "NDCG@10": "0.448"}
    result = unsample.published(printed, items=3541, sampled=99, users=6040, candidates="unseen")
    full_ranks = np.minimum(load_ranks("ml-1m", "ease").ranks, 3541)
    ax = plot_curve(result, largest=1000, full_ranks=full_ranks)
    ax.figure.savefig(FOLDER / "published.svg", metadata=METADATA)


def what_was_learned(items: int = 10_000, draws: int = 4000) -> None:
    """Draw P(R) as the shipped prior has it, before any sample, and real rank sets behind it."""
    grid = RankGrid.coarse(items)
    shapes, rank = shapes_on(grid), (grid.low + grid.high) / 2
    figure, axes = plt.subplots(
        1, len(KINDS), figsize=(11, 3.6), sharex=True, sharey=True, layout="constrained"
    )
    for ax, kind in zip(axes, KINDS, strict=True):
        known = shipped().learned[kind]
        normal = np.random.default_rng(0).normal(size=(draws, len(known.mean)))
        drawn = (known.mean + normal @ known.root.T) @ shapes.T
        drawn -= np.log(np.exp(drawn) @ grid.width)[:, None]
        lowest, low, middle, high, highest = np.exp(
            np.quantile(drawn, [0.05, 0.25, 0.5, 0.75, 0.95], axis=0)
        )
        bank = load_bank().select(kind=kind, partial=False)
        near = [held for held in bank if items / 3 <= held.items <= 3 * items]
        for held in near:
            thin = {"color": INK, "alpha": min(0.5, 20 / len(near)), "lw": 0.6}
            ax.plot(*density(held, items), rasterized=True, **thin)
        ax.plot([], [], color=INK, alpha=0.5, lw=0.6, label="models of the bank")
        ax.fill_between(rank, lowest, highest, color=TEAL, alpha=0.22, lw=0, label="90 % of curves")
        ax.fill_between(rank, low, high, color=TEAL, alpha=0.4, lw=0, label="50 %")
        ax.plot(rank, middle, color=ORANGE, lw=1.6, label="median")
        ax.set(xscale="log", yscale="log", xlim=(1, items), ylim=(1e-6, 1), xlabel="rank R")
        ax.set_title(kind, fontsize=11)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel(f"P(R), {items:,} items")
    axes[0].legend(loc="lower left", frameon=False, fontsize=8)
    figure.savefig(FOLDER / "learned.svg", metadata=METADATA, dpi=120)


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
    for each in load_bank():
        known = each.model in ("ease", "knn", "pop") and each.dataset in wanted
        if known and each.kind == "unseen":
            ranks = rng.permutation(each.ranks())[:3000]
            drawn = draw_sampled_ranks(ranks, items=each.items, sampled=99, rng=rng)
            counts = unsample.RankCounts.from_ranks(drawn, items=each.items, sampled=99)
            sets[each.dataset][each.model] = counts
    found = unsample.compare(sets, across="dataset", metrics="NDCG@10", candidates="unseen")
    plot(found, ax=plt.subplots(figsize=(7.5, 2.8), layout="constrained")[1])
    plt.savefig(FOLDER / "across.svg", metadata=METADATA)
    plt.close()


def main() -> None:
    """Make every picture."""
    plt.rcParams["svg.hashsalt"] = "unsample"
    FOLDER.mkdir(parents=True, exist_ok=True)
    problem()
    what_can_be_known()
    from_printed_numbers()
    what_was_learned()
    over_data_sets()


if __name__ == "__main__":
    main()

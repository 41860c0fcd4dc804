"""Make the pictures of the documentation from the bundled ranks: ``make pictures``."""

from __future__ import annotations

import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import unsample
from unsample.datasets import load_ranks
from unsample.errors import UnsampleWarning
from unsample.report import plot_metric_curve, plot_plan
from unsample.sampling import draw_sampled_ranks

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
#: Pictures are compared by eye and by git: nothing in them may depend on the day.
METADATA = {"Date": None, "Creator": "unsample"}


def estimate_drawn(dataset: str, sampled: int, protocol: str, seen: str | None) -> tuple:
    """Return an estimate from sampled ranks of EASE, and the full ranks behind it."""
    truth = load_ranks(dataset, "ease", protocol=protocol)
    rng = np.random.default_rng(0)
    drawn = draw_sampled_ranks(truth.ranks, items=truth.items, sampled=sampled, rng=rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        result = unsample.estimate(
            drawn, items=truth.items, sampled=sampled, seen=seen, resamples=0
        )
    return result, truth.ranks


def what_can_be_known() -> None:
    """Draw intervals and bounds for 99 and 499 negatives, seen items said and not said."""
    panels = [
        ("99 negatives, nothing said", 99, "everyday", None),
        ("99 negatives, seen items excluded", 99, "everyday", "excluded"),
        ("499 negatives, seen items excluded", 499, "everyday", "excluded"),
        ("99 negatives, seen items kept", 99, "paper", "kept"),
    ]
    figure, axes = plt.subplots(2, 2, figsize=(10, 7), sharey=True, layout="constrained")
    for ax, (title, sampled, protocol, seen) in zip(axes.flat, panels, strict=True):
        result, full_ranks = estimate_drawn("ml-1m", sampled, protocol, seen)
        plot_metric_curve(result, full_ranks=full_ranks, ax=ax)
        ax.set_title(f"EASE on ml-1m, {title}", fontsize=10)
    figure.savefig(FOLDER / "what-can-be-known.svg", metadata=METADATA)


def cost_of_designs() -> None:
    """Draw the expected error of each design against its cost."""
    ax = plot_plan(unsample.plan(items=25_815, users=25_677))
    ax.figure.savefig(FOLDER / "plan.svg", metadata=METADATA)


def from_printed_numbers() -> None:
    """Draw what four printed numbers tell about the whole curve."""
    printed = {"HR@1": "0.226", "HR@5": "0.562", "HR@10": "0.710", "NDCG@10": "0.448"}
    result = unsample.published(printed, items=3541, sampled=99, users=6040, seen="excluded")
    full_ranks = np.minimum(load_ranks("ml-1m", "ease").ranks, 3541)
    ax = plot_metric_curve(result, largest=1000, full_ranks=full_ranks)
    ax.figure.savefig(FOLDER / "published.svg", metadata=METADATA)


def main() -> None:
    """Make every picture."""
    plt.rcParams["svg.hashsalt"] = "unsample"
    FOLDER.mkdir(parents=True, exist_ok=True)
    what_can_be_known()
    cost_of_designs()
    from_printed_numbers()


if __name__ == "__main__":
    main()

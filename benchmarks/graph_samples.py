"""Sampled negatives on filtered link prediction: do the intervals hold, and how wide are they?

python benchmarks/graph_samples.py FOLDER [graph ...] [--sampled 99 499] [--runs 20]

FOLDER holds the exact filtered ranks of models (NAME.npz or kg-NAME.npz with ``items``, ``n_seen``
and MODEL_1 of each model). Negatives are drawn uniformly, without replacement, among the candidates
of each question: all entities but its other true answers. Ranks of such graphs have a spike at rank
1. Both intervals are shown: the guaranteed one, and the one that is calibrated on other data sets.
(The prior of the package has seen these ranks, so that the second is optimistic here;
``benchmarks/bank.py`` leaves whole families out.)
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import unsample
from unsample.law import draw_sampled_ranks

GRAPHS = ("fb15k-237", "wn18rr", "codex-m")
METRICS = ("MRR", "Hits@1", "Hits@10")


def rank_sets(folder: Path, name: str) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield each model, its filtered ranks and the candidates of each question."""
    paths = [folder / f"{name}.npz", folder / f"kg-{name}.npz"]
    held = np.load(next(path for path in paths if path.exists()))
    items = int(held["items"]) - held["n_seen"].astype(np.int64)
    for key in sorted(held):
        if key.endswith("_1"):
            ranks = held[key].astype(np.int64)
            kept = ranks > 0
            yield key[:-2], ranks[kept], items[kept]


def measure(name: str, model: str, ranks: np.ndarray, items: np.ndarray, sampled: int, runs: int):
    """Yield a row of the table for each metric and kind of interval."""
    truth = unsample.exact(ranks, items=items, metrics=list(METRICS), resamples=0)
    found: dict[tuple[str, str], list[tuple[float, float, float]]] = {}
    for seed in range(runs):
        seen = draw_sampled_ranks(ranks, items=items, sampled=sampled, rng=seed, replacement=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = unsample.estimate(
                seen, items=items, sampled=sampled, metrics=list(METRICS), replacement=False,
                candidates="unseen", kind="graph", resamples=0,
            )  # fmt: skip
            for metric in METRICS:
                for kind in ("guaranteed", "calibrated"):
                    if kind == "calibrated" and result[metric].calibrated is None:
                        continue
                    ends = result[metric].interval(kind=kind, population=False)
                    found.setdefault((metric, kind), []).append((result[metric].value, *ends))
    for (metric, kind), rows in found.items():
        value, low, high = np.array(rows).T
        true = truth[metric].value
        held = int(((low <= true) & (true <= high)).sum())
        yield (
            f"{name:10} {model:9} {sampled:4} {metric:8} {true:.4f} {value.mean():.4f}  {kind:10} "
            f"{low.mean():.3f} .. {high.mean():.3f}  {held}/{len(rows)}"
        )


def main() -> None:
    """Print the table of the graphs that were asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("graphs", nargs="*", default=GRAPHS)
    parser.add_argument("--sampled", type=int, nargs="+", default=[99, 499])
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args()
    print("graph      model        n metric   truth  value   interval                    held")
    for name in options.graphs:
        for model, ranks, items in rank_sets(options.folder, name):
            for sampled in options.sampled:
                for row in measure(name, model, ranks, items, sampled, options.runs):
                    print(row, flush=True)


if __name__ == "__main__":
    main()

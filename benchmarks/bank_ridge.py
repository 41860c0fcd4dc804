"""Does the learned prior beat a plain ridge regression? ``benchmarks/bank_ridge.py``.

The ridge learns, for each kind and metric, the logarithm of truth over `smooth` from the slopes of
the curve that `smooth` fitted. Both learn from the other families of the bank and are tried on the
same samples. The strength of the ridge is the best of a few in hindsight, which favours the ridge.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from unsample.estimators import Observed, parse
from unsample.estimators.prior import KINDS
from unsample.lab.bank import RankSet, load_bank
from unsample.lab.bank._trials import School, exact_values, family_shares, observe
from unsample.metrics import parse_all

CUTOFFS = (1, 5, 10, 20, 50)
METRICS = parse_all([f"NDCG@{k}" for k in CUTOFFS])
#: Slopes are taken between ranks of these multiples of N / (n + 1).
PLACES = 2.0 ** np.arange(6, -6, -1)
STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 1e4)


@cache
def school() -> School:
    return School.of(load_bank())


def slopes(seen: Observed, ranks: RankSet, sampled: int) -> tuple[np.ndarray, np.ndarray]:
    """Return what the ridge sees of a sample, and the values of `smooth`."""
    fit = parse("smooth").evaluate(seen, METRICS)
    assert fit.distribution is not None
    grid, mass = fit.distribution.grid, fit.distribution.mass
    place = np.log((grid.low + grid.high) / 2.0)
    density = np.log(np.maximum(mass, 1e-15) / grid.width)
    asked = np.log(np.clip(PLACES * ranks.items / (sampled + 1), 1.0, ranks.items))
    apart, rise = np.diff(asked), np.diff(np.interp(asked, place, density))
    steep = np.where(apart < 0, rise / np.where(apart < 0, apart, 1.0), 0.0)
    shape = np.clip(steep, -4.0, 4.0)
    sizes = np.log([ranks.items / (sampled + 1), ranks.targets])
    level = np.log(np.maximum(fit.values[0, CUTOFFS.index(10)], 1e-6))
    return np.array([*shape, *sizes, level]), fit.values[0]


def fold(family: str, sizes: Sequence[int]) -> list[tuple[RankSet, int, np.ndarray, ...]]:
    """Return, of each sample of a family: set, n, features, logs of smooth, prior and truth."""
    prior = school().without(family)
    result = []
    for ranks in (each for each in school().sets if each.family == family):
        truth = exact_values(ranks, METRICS)
        for sampled in sizes:
            seen = observe(ranks, sampled, cutoffs=CUTOFFS)
            features, smooth = slopes(seen, ranks, sampled)
            mine = prior.posterior(seen, METRICS, kind=ranks.kind).mean[0, 0]
            with np.errstate(divide="ignore"):
                logs = np.log(np.maximum(smooth, 1e-12)), mine, np.log(truth)
            result.append((ranks, sampled, features, *logs))
    return result


def ridge(
    features: np.ndarray, wanted: np.ndarray, weight: np.ndarray, strength: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    weight = weight / weight.mean()
    middle = np.average(features, axis=0, weights=weight)
    scale = np.sqrt(np.average((features - middle) ** 2, axis=0, weights=weight)) + 1e-9
    standard = (features - middle) / scale
    level = float(np.average(wanted, weights=weight))
    gram = (standard * weight[:, None]).T @ standard + strength * np.eye(features.shape[1])
    return middle, scale, np.linalg.solve(gram, standard.T @ (weight * (wanted - level))), level


def errors_of_ridge(rows: Sequence[tuple], at: int, strength: float) -> np.ndarray:
    """Return the log error of each row, learned from the rows of other families."""
    features = np.stack([row[2] for row in rows])
    wanted = np.array([row[5][at] - row[3][at] for row in rows])
    family = np.array([row[0].family for row in rows])
    shares = family_shares([row[0] for row in rows])
    weight = np.array([shares[row[0].kind, row[0].dataset] for row in rows])
    result = np.full(len(rows), np.nan)
    known = np.isfinite(wanted)
    for left in set(family):
        others = (family != left) & known
        middle, scale, slope, level = ridge(
            features[others], wanted[others], weight[others], strength
        )
        mine = family == left
        result[mine] = level + (features[mine] - middle) / scale @ slope - wanted[mine]
    return result[known]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[99])
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    families = sorted({each.family for each in school().sets})
    with ProcessPoolExecutor(chosen.workers) as pool:
        found = pool.map(fold, families, [chosen.sizes] * len(families))
        rows = [row for part in found for row in part]
    print("median, mean and 95 % quantile of |log error|: smooth, ridge (its strength), prior")
    for kind in KINDS:
        for sampled in chosen.sizes:
            for at, metric in enumerate(METRICS):
                mine = [row for row in rows if row[0].kind == kind and row[1] == sampled]
                mine = [row for row in mine if np.isfinite(row[5][at])]
                tried = {s: np.abs(errors_of_ridge(mine, at, s)) for s in STRENGTHS}
                best = min(tried, key=lambda s, tried=tried: float(np.median(tried[s])))
                smooth = np.abs([row[3][at] - row[5][at] for row in mine])
                prior = np.abs([row[4][at] - row[5][at] for row in mine])
                texts = [
                    f"{np.median(e):.3f} {e.mean():.3f} {np.quantile(e, 0.95):.2f}"
                    for e in (smooth, tried[best], prior)
                ]
                label = f"{kind:8} n = {sampled:3} {metric!s:8}"
                print(f"{label}  {texts[0]}   {texts[1]} ({best:g})   {texts[2]}")


if __name__ == "__main__":
    main()

"""Numbers of every method on a few histograms, as they were: none may change without being seen.

Slow references elsewhere say that the numbers are right. These say that they stay, to six digits,
for every constant and every step behind them. `UNSAMPLE_GOLDEN=write` writes them anew; then the
changelog says which changed, and why.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from unsample.answers import estimate_counts
from unsample.estimators import REGISTRY, Observed, parse
from unsample.evidence import RankCounts
from unsample.law import Law
from unsample.metrics import parse_all

GOLDEN = Path(__file__).with_name("golden.json")
METRICS = parse_all(["Recall@1", "NDCG@5", "AP@20", "Recall@100", "MRR", "AUC"])
VARIANTS = (
    "bv(gamma=0.01)", "bv(prior=mle)", "bv(prior=mes)", "mn(prior=mes)",
)  # fmt: skip
METHODS = (*(name for name in REGISTRY), *VARIANTS)
ITEMS = 1200
#: The method whose numbers follow the prior: another prior, other numbers.
AUTO = "auto"


def _histogram(sampled, targets, spread, dip=0):
    """Return counts of sampled ranks whose global ranks are like those of a recommender."""
    place = (np.arange(targets) + 0.5) / targets
    ranks = np.clip(np.exp(spread * -np.log1p(-place)) + dip, 1, ITEMS)
    expected = Law(ITEMS, sampled).pmf(np.arange(1, sampled + 2)[:, None], ranks).sum(axis=1)
    return np.rint(expected + 0.3 * np.sin(np.arange(sampled + 1)))


def _one_design():
    return RankCounts.from_histogram(_histogram(40, 900, 1.6), Law(ITEMS, 40))


def _several_designs():
    """Return ranks of two sample sizes and two catalogues, some of them known."""
    parts = [
        RankCounts.from_histogram(
            _histogram(sampled, targets, 1.3), Law(items, sampled, replacement=False)
        )
        for items, sampled, targets in ((ITEMS, 40, 500), (ITEMS, 15, 200), (900, 40, 120))
    ]
    known = RankCounts.from_ranks([1, 2, 2, 9, 40, 333, 600], items=600, sampled=599,
                                  replacement=False)  # fmt: skip
    return sum(parts, known)


def _counts(case):
    if case == "several":
        return _several_designs()
    if case == "kept":
        return RankCounts.from_histogram(_histogram(40, 900, 1.4, dip=25), Law(ITEMS, 40))
    return _one_design()


def _observed(case):
    cutoffs, counts = (1, 5, 20, 100), _counts(case)
    if case != "batch":
        return Observed.prepare(counts, cutoffs=cutoffs)
    tilted = counts.weight * np.linspace(1.2, 0.8, len(counts))
    both = np.stack([counts.weight, tilted])
    return Observed.prepare(counts, histograms=both, cutoffs=cutoffs)


def _found(case, method):
    """Return the values; of `auto`, whose interval is that of the metric, its ends too."""
    if method != AUTO:
        return np.asarray(parse(method).evaluate(_observed(case), METRICS).values).tolist()
    candidates = "all" if case == "kept" else "unseen"
    result = estimate_counts(_counts(case), metrics=METRICS, candidates=candidates)
    rows = [(entry.value, *entry.interval(), *entry.bounds()) for entry in result.entries]
    return np.transpose(rows).tolist()


CASES = [
    (case, method)
    for case in ("one", "kept", "several", "batch")
    for method in (AUTO, *METHODS)
    # The mapping of cutoffs knows one design, and recall alone; one estimate has no batches.
    if method != "recall_map" and (case, method) != ("batch", AUTO)
]


@pytest.fixture(scope="module")
def golden():
    if os.environ.get("UNSAMPLE_GOLDEN") == "write":
        numbers = {f"{case} {method}": _found(case, method) for case, method in CASES}
        text = ",\n".join(f"{json.dumps(key)}: {json.dumps(row)}" for key, row in numbers.items())
        GOLDEN.write_text(f"{{\n{text}\n}}\n", encoding="utf-8")
    return json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("case", "method"), CASES)
def test_numbers_stay_as_they_were(golden, case, method):
    expected = np.array(golden[f"{case} {method}"])
    assert np.allclose(_found(case, method), expected, rtol=2e-6, atol=1e-9)


def test_no_number_is_there_for_nothing(golden):
    assert set(golden) == {f"{case} {method}" for case, method in CASES}

"""Properties that hold for every input: laws, counts, estimators.

The examples are the same in every run. ``UNSAMPLE_EFFORT=20`` tries twenty times as many, drawn
anew each time.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests import reference
from tests.test_contract import VARIANTS
from unsample import estimators, metrics
from unsample.estimators import Observed
from unsample.evidence import RankCounts
from unsample.law import Law, RankGrid
from unsample.metrics import parse_all

# Made-up ranks have shapes that no real ones have, and make linear methods leave their range.
pytestmark = pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")

EFFORT = int(os.environ.get("UNSAMPLE_EFFORT", "1"))


def thorough(examples: int):
    """Return settings with so many examples, times the effort."""
    return settings(max_examples=examples * EFFORT, derandomize=EFFORT == 1)


# -- the laws of a sampled rank -------------------------------------------------------------------

catalogues = st.integers(2, 60) | st.sampled_from([10**4, 10**6, 10**9, 10**12])


@st.composite
def designs(draw, largest_sample=120, sizes=catalogues):
    items, replacement = draw(sizes), draw(st.booleans())
    most = largest_sample if replacement else min(largest_sample, items - 1)
    return Law(items, draw(st.integers(1, most)), replacement)


def _all_ranks(design: Law) -> np.ndarray:
    return np.arange(1, design.n + 1)


@thorough(60)
@given(design=designs(), cuts=st.sets(st.integers(1, 120), max_size=6))
def test_on_any_grid_the_sampled_ranks_of_a_bin_have_probability_one(design, cuts):
    grid = RankGrid.fine(design.items, sampled=design.sampled, cutoffs=cuts)
    ends = np.array(sorted({cut for cut in cuts if cut < design.n} | {design.n}))
    starts = np.concatenate([[1], ends[:-1] + 1])
    assert design.matrix(starts, ends, grid).sum(axis=0) == pytest.approx(1.0, abs=1e-9)
    single = design.matrix(_all_ranks(design), _all_ranks(design), grid)
    assert single.min() > -1e-12
    assert single.sum(axis=0) == pytest.approx(1.0, abs=1e-9)


# -- counts ---------------------------------------------------------------------------------------


@st.composite
def targets(draw):
    """Return the columns of some targets: ranks, sizes, samples, counts."""
    rows = st.tuples(
        st.integers(1, 5),
        st.sampled_from([7, 50, 10**9]),
        st.sampled_from([4, 6]),
        st.integers(0, 64),
    )
    table = draw(st.lists(rows, min_size=1, max_size=25))
    columns = [np.array(column) for column in zip(*table, strict=True)]
    assume(columns[3].sum() > 0)
    return columns


def _count(columns) -> RankCounts:
    ranks, items, sampled, count = columns
    return RankCounts.from_ranks(ranks, items=items, sampled=sampled, count=count)


@thorough(80)
@given(columns=targets(), seed=st.integers(0, 2**16), parts=st.integers(1, 5))
def test_counts_depend_neither_on_the_order_nor_on_the_parts(columns, seed, parts):
    whole, size = _count(columns), len(columns[0])
    rng = np.random.default_rng(seed)
    order = rng.permutation(size)
    assert _count([column[order] for column in columns]) == whole
    where = rng.integers(parts, size=size)
    pieces = [[column[where == part] for column in columns] for part in range(parts)]
    # A piece without targets is no piece of its own.
    rest = [_count(piece) for piece in pieces if len(piece[0]) and piece[3].sum() > 0]
    merged = RankCounts.merge(rest)
    assert RankCounts.merge(rest[::-1]) == merged
    for name in ("weight", "weight_squared"):
        assert getattr(merged, name).sum() == getattr(whole, name).sum()


# -- estimators -----------------------------------------------------------------------------------


@st.composite
def histograms(draw):
    """Return counts of one small design, adversarial rather than likely."""
    design = draw(designs(largest_sample=12, sizes=st.sampled_from([2, 3, 15, 200, 10**6])))
    # Among two items with replacement, a target is beaten by every draw or by none.
    possible = [1, design.n] if design.items == 2 else range(1, design.n + 1)
    ranks = draw(st.lists(st.sampled_from(possible), min_size=1, max_size=4, unique=True))
    times = draw(
        st.lists(st.sampled_from([1, 2, 40, 10**6]), min_size=len(ranks), max_size=len(ranks))
    )
    return RankCounts.from_ranges(ranks, ranks, times, design)


def _range(metric: metrics.Metric, items: int) -> tuple[float, float]:
    """Return the least and the greatest weight: all families here fall with the rank."""
    least = 0.0 if metric.cutoff(items) < items else float(metric.weights(items, items))
    return least, float(metric.weights(1, items))


CUTOFFS = (1, 2, 3, 7, 14, 15, 16, 60, 199, 200, 5000, 10**6)
LOOKED_AT = ["NDCG@10", "AP@10", "Precision@10", "AUC@10", "NDCG", "AP", "AUC"]


@pytest.mark.parametrize("name", VARIANTS)
@thorough(8)
@given(counts=histograms())
def test_every_estimate_is_in_range_and_recall_grows_with_k(name, counts):
    estimator = estimators.parse(name)
    items = counts.largest_catalogue
    recalls = parse_all([f"Recall@{k}" for k in CUTOFFS])
    others = [metric for metric in parse_all(LOOKED_AT) if estimator.supports(metric)]
    batch = reference.bootstrap(counts, 2, rng=0)
    observed = Observed.prepare(
        counts,
        histograms=batch,
        cutoffs=[m.cutoff(items) for m in (*recalls, *others)],
    )
    evaluation = estimator.evaluate(observed, (*recalls, *others))
    assert np.isfinite(evaluation.values).all()
    for column, metric in zip(evaluation.values.T, (*recalls, *others), strict=True):
        # The sampled metric looks at the sample and no further.
        least, most = _range(metric, counts.largest_sample + 1 if name == "naive" else items)
        assert (column >= least - 1e-9).all(), metric
        assert (column <= most + 1e-9).all(), metric
    found = evaluation.values[:, : len(recalls)]
    if estimator.name not in {"cls", "bv", "mn"}:
        assert not any(evaluation.clipped)
        assert (np.diff(found, axis=1) >= -1e-9).all()
    whole = [k >= items for k in CUTOFFS]
    if name != "naive":  # which looks at K of the sample
        assert found[:, whole] == pytest.approx(1.0, abs=1e-6)

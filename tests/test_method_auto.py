"""`auto`: what other data sets know, and the condensed cells that it is fitted on."""

from dataclasses import replace

import numpy as np
import pytest

from tests import reference
from unsample import estimators
from unsample._checks import as_index
from unsample.errors import MethodError
from unsample.estimators import CANDIDATES, Observed
from unsample.estimators._observed import Condensed, _condensed_ranges
from unsample.evidence import RankCounts, group_catalogues
from unsample.lab.datasets import load_ranks
from unsample.law import Law, draw_sampled_ranks
from unsample.metrics import parse_all

TOP = parse_all(["Recall@10", "NDCG@10", "AP@10"])
AUTO = estimators.parse("auto")


def _beta_ranks(items: int, size: int, seed: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.ceil(items * rng.beta(0.5, 2.0, size=size)).astype(int).clip(1, items)


@pytest.mark.parametrize("replacement", [True, False])
def test_condensed_cells_add_up_to_one_and_expect_the_same(replacement):
    design = Law(600, 90, replacement=replacement)
    drawn = design.draw(_beta_ranks(600, 4000), rng=0)
    counts = RankCounts.from_ranks(drawn, items=600, sampled=90, replacement=replacement)
    observed = Observed.prepare(counts)
    condensed = Condensed.of(observed, observed.grid)
    starts = _condensed_ranges(*observed.ranges(90), design.n)[0]
    assert len(starts) == len(condensed.likelihood) < 0.7 * design.n
    assert np.allclose(condensed.likelihood.sum(axis=0), 1.0)
    assert condensed.shares.sum() == pytest.approx(1.0)
    # A smooth P(R) gives the same histogram of condensed cells, rank by rank or bin by bin.
    dense = reference.beta_mass(600, 0.5, 2.0)
    expected = condensed.likelihood @ np.add.reduceat(dense, as_index(condensed.grid.low - 1))
    exact = np.add.reduceat(dense @ reference.matrix(design), as_index(starts - 1))
    assert np.allclose(expected, exact, rtol=3e-3)


@pytest.mark.parametrize("candidates", ["unseen", "all"])
def test_one_sampled_item_still_tells_the_auc(candidates):
    """With n = 2 the share of targets that win is the AUC."""
    counts = RankCounts.from_ranks([1] * 600 + [2] * 400, items=300, sampled=1)
    observed = Observed.prepare(counts, candidates=candidates)
    values = AUTO.evaluate(observed, parse_all(["AUC"])).values
    assert values[0, 0] == pytest.approx(0.6, abs=0.05)


def _observed(ranks, items, sampled, *, rows=0, seed=0, **options) -> Observed:
    drawn = draw_sampled_ranks(ranks, items=items, sampled=sampled, rng=seed)
    counts = group_catalogues(RankCounts.from_ranks(drawn, items=items, sampled=sampled))
    resampled = reference.bootstrap(counts, rows, rng=seed) if rows else None
    return Observed.prepare(counts, resampled=resampled, cutoffs=[10], **options)


def _errors(method: str, dataset: str, recommender: str, seeds=range(2)) -> np.ndarray:
    bundled = load_ranks(dataset, recommender)
    truth = np.array([m.weights(bundled.ranks, int(bundled.items.max())).mean() for m in TOP])
    values = [
        estimators.parse(method)
        .evaluate(_observed(bundled.ranks, bundled.items, 99, seed=seed), TOP)
        .values[0]
        for seed in seeds
    ]
    return np.sqrt(((np.array(values) / truth - 1) ** 2).mean(axis=0))


@pytest.mark.parametrize(
    ("dataset", "recommender", "share"),
    [
        ("citeulike-a", "multivae", 0.25),
        ("citeulike-a", "ease", 0.6),
        ("pinterest-20", "als", 0.8),
    ],
)
def test_errors_are_well_below_those_of_mle(dataset, recommender, share):
    ours, theirs = (_errors(name, dataset, recommender) for name in ("auto", "mle"))
    assert (ours < share * theirs).all()


def test_mle_does_not_ask_what_became_of_seen_items():
    """It estimates P(R) among the candidates there were, whatever these were."""
    ranks = np.arange(1, 200)
    values = [
        estimators.parse("mle")
        .evaluate(_observed(ranks, 1000, 50, candidates=candidates), TOP)
        .values
        for candidates in CANDIDATES
    ]
    assert np.array_equal(*values)


def test_batches_of_unlike_histograms_are_fitted_each_on_its_own():
    """Rows need not be resamples of one data set: each gets its own fit."""
    design = Law(2000, 50)
    rng = np.random.default_rng(0)
    drawn = [
        design.draw(np.ceil(2000 * rng.beta(a, b, size=1500)).astype(int).clip(1), rng=rng)
        for a, b in ((0.4, 3.0), (0.6, 2.0), (0.5, 2.5))
    ]
    histograms = np.stack([np.bincount(r, minlength=52)[1:] for r in drawn])
    total = RankCounts.from_histogram(histograms.sum(axis=0), design)
    # Evidence depends on the number of targets behind a row, which is that of the counts.
    mean = replace(total, weight=total.weight / 3, weight_squared=total.weight_squared / 3)
    observed = Observed.prepare(
        mean, resampled=histograms[:, total.low - 1].astype(float), cutoffs=[10, 100]
    )
    metrics = parse_all(["Recall@100", "NDCG@10"])
    batch = AUTO.evaluate(observed, metrics)
    assert batch.failures == 0
    for row, histogram in zip(batch.values[1:], histograms, strict=True):
        single = Observed.prepare(RankCounts.from_histogram(histogram, design), cutoffs=[10, 100])
        assert row == pytest.approx(AUTO.evaluate(single, metrics).values[0], rel=1e-4)


def test_it_says_what_the_data_were_taken_for():
    found = AUTO.evaluate(_observed(np.arange(1, 301), 300, 20), TOP)
    assert found.explanation.startswith("learned from full rankings of other data sets (unseen")
    kind = estimators.parse("auto(kind=graph)")
    assert str(kind) == "auto(kind=graph)"
    assert "graph 100 %" in kind.evaluate(_observed(np.arange(1, 301), 300, 20), TOP).explanation
    assert estimators.parse("mle").evaluate(_observed([1, 5, 9], 100, 9), TOP).explanation == ""
    with pytest.raises(MethodError, match="kind of auto must be one of unseen, all"):
        estimators.parse("auto(kind=movies)")
    with pytest.raises(MethodError, match="prior of auto must be a Prior"):
        estimators.parse("auto(prior=file)")


def test_known_ranks_stay_where_they_are():
    ranks = np.array([1, 2, 7, 30] * 50)
    known = RankCounts.from_ranks(ranks[:100], items=300, sampled=299, replacement=False)
    drawn = RankCounts.from_ranks([1, 1, 2, 4] * 25, items=300, sampled=20, replacement=False)
    observed = Observed.prepare(known + drawn, cutoffs=[10])
    mass = AUTO.solve(observed).weights[0]
    assert mass.sum() == pytest.approx(1.0)
    assert (mass - observed.known_mass()[0]).min() > -1e-12


def test_many_samples_leave_little_to_assume():
    """With n = 1000 of 2000 items the prior hardly matters, nor what became of seen items."""
    rng = np.random.default_rng(1)
    ranks = np.ceil(2000 * rng.beta(0.5, 2.0, size=5000)).astype(int).clip(1)
    truth = (ranks <= 50).mean()
    metrics = parse_all(["Recall@50"])
    for candidates in CANDIDATES:
        observed = _observed(ranks, 2000, 1000, candidates=candidates)
        assert AUTO.evaluate(observed, metrics).values[0, 0] == pytest.approx(truth, rel=0.03)

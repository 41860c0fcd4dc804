"""Smooth curves: against a dense reference, what they assume, and what they are good for."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special

from tests import reference
from unsample import estimators
from unsample._checks import as_index
from unsample.errors import MethodError
from unsample.estimators import CANDIDATES, Observed, curves
from unsample.estimators._observed import Condensed, _condensed_ranges
from unsample.estimators._solvers import Solution, Status
from unsample.evidence import RankCounts, group_catalogues
from unsample.lab.datasets import load_ranks
from unsample.law import Law, RankGrid, draw_sampled_ranks
from unsample.metrics import parse_all

METRICS = parse_all(["Recall@5", "Recall@40", "NDCG@10", "AP@10"])


def _histogram(design: Law, ranks: np.ndarray, seed: int = 0) -> np.ndarray:
    return np.bincount(design.draw(ranks, rng=seed), minlength=design.n + 1)[1:]


def _beta_ranks(items: int, size: int, seed: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.ceil(items * rng.beta(0.5, 2.0, size=size)).astype(int).clip(1, items)


def _binormal_ranks(items: int, size: int, mean: float, sd: float, seed: int = 3) -> np.ndarray:
    z = np.random.default_rng(seed).normal(mean, sd, size=size)
    return np.ceil(items * special.ndtr(-z)).astype(int).clip(1, items)


def _values(method: str, ranks, design: Law, metrics=METRICS, **options) -> np.ndarray:
    counts = RankCounts.from_ranks(
        ranks, items=design.items, sampled=design.sampled, replacement=design.replacement
    )
    cutoffs = [metric.cutoff(design.items) for metric in metrics]
    observed = Observed.prepare(counts, cutoffs=cutoffs, **options)
    return estimators.parse(method).evaluate(observed, metrics).values[0]


def _exact(ranks, items: int, metrics=METRICS) -> np.ndarray:
    return np.array([metric.weights(ranks, items).mean() for metric in metrics])


# -- condensing ------------------------------------------------------------------------------


@pytest.mark.parametrize("replacement", [True, False])
def test_condensed_cells_add_up_to_one_and_expect_the_same(replacement):
    design = Law(600, 90, replacement=replacement)
    drawn = design.draw(_beta_ranks(600, 4000), rng=0)
    counts = RankCounts.from_ranks(drawn, items=600, sampled=90, replacement=replacement)
    observed = Observed.prepare(counts)
    condensed = Condensed.of(observed)
    starts = _condensed_ranges(*observed.ranges(90), design.n)[0]
    assert len(starts) == len(condensed.likelihood) < 0.7 * design.n
    assert np.allclose(condensed.likelihood.sum(axis=0), 1.0)
    assert condensed.shares.sum() == pytest.approx(1.0)
    # A smooth P(R) gives the same histogram of condensed cells, rank by rank or bin by bin.
    dense = reference.beta_mass(600, 0.5, 2.0)
    expected = condensed.likelihood @ np.add.reduceat(dense, as_index(condensed.grid.low - 1))
    exact = np.add.reduceat(dense @ reference.matrix(design), as_index(starts - 1))
    assert np.allclose(expected, exact, rtol=3e-3)


# -- the estimator ---------------------------------------------------------------------------


@pytest.mark.parametrize("replacement", [True, False])
def test_against_a_dense_reference(replacement):
    design = Law(400, 30, replacement=replacement)
    drawn = design.draw(_beta_ranks(400, 3000), rng=1)
    histogram = np.bincount(drawn, minlength=32)[1:]
    mass = reference.averaged_curves(reference.matrix(design), histogram)
    expected = [mass @ reference.metric_weights(m.family.name, m.k, 400) for m in METRICS]
    assert _values("smooth", drawn, design) == pytest.approx(expected, rel=0.01)


def test_three_targets_against_a_dense_reference():
    """So few that the hedge reaches its limit: where nothing is known it takes no more off."""
    design = Law(400, 30)
    drawn = design.draw(_beta_ranks(400, 3), rng=1)
    histogram = np.bincount(drawn, minlength=32)[1:]
    mass = reference.averaged_curves(reference.matrix(design), histogram)
    expected = [mass @ reference.metric_weights(m.family.name, m.k, 400) for m in METRICS]
    assert _values("smooth", drawn, design) == pytest.approx(expected, rel=0.01)


def test_bins_are_cut_where_the_curve_has_its_mass():
    """Of two bins, or of one for each rank: the share above a rank is the same."""
    design = Law(2000, 20)
    drawn = design.draw(_binormal_ranks(2000, 1500, 1.0, 1.0), rng=0)
    counts = RankCounts.from_ranks(drawn, items=2000, sampled=20)

    def distribution(grid):
        observed = Observed.prepare(counts, grid=grid)
        return estimators.parse("smooth").evaluate(observed, ()).distribution

    dense = distribution(reference.dense_grid(2000))
    for k in (301, 450, 702):
        two = distribution(RankGrid(np.array([1, k + 1]), 2000))
        assert two.cdf(k) == pytest.approx(dense.cdf(k), rel=1e-5)


def test_binormal_ranks_are_continued_beyond_what_the_sample_sees():
    """On the law it is made for, errors are a few per cent at K = N/2000, where MLE's are many."""
    design = Law(20_000, 99)
    ranks = _binormal_ranks(20_000, 20_000, mean=1.6, sd=1.1)
    metrics = parse_all(["Recall@10", "NDCG@10", "AP@10"])
    truth = _exact(ranks, 20_000, metrics)
    drawn = design.draw(ranks, rng=0)
    smooth, mle = (_values(name, drawn, design, metrics) / truth - 1 for name in ("smooth", "mle"))
    assert np.abs(smooth).max() < 0.15
    assert np.abs(mle).min() > 3 * np.abs(smooth).max()


def test_a_heap_of_unscored_items_does_no_harm():
    """A third of the targets tied at random places in the lower half, as item-based models do."""
    design = Law(10_000, 99)
    ranks = _binormal_ranks(10_000, 12_000, mean=1.8, sd=1.0)
    ranks[::3] = np.random.default_rng(5).integers(5_000, 10_001, size=len(ranks[::3]))
    metrics = parse_all(["Recall@20", "NDCG@20"])
    truth = _exact(ranks, 10_000, metrics)
    smooth = _values("smooth", design.draw(ranks, rng=0), design, metrics)
    assert np.abs(smooth / truth - 1).max() < 0.25


def test_one_rank_for_all_is_found_where_the_sample_sees_it():
    design = Law(1000, 200)
    ranks = np.full(4000, 300)
    distribution = estimators.parse("smooth").fit(
        RankCounts.from_ranks(design.draw(ranks, rng=0), items=1000, sampled=200)
    )
    assert 270 < distribution.quantile(0.5) < 330
    assert distribution.cdf(200) < 0.1


def test_a_curve_may_be_steeper_than_its_exponential_can_be_written():
    """Seven draws for each item, and a hundred thousand targets, see one rank of 300."""
    design = Law(300, 2000)
    drawn = design.draw(np.full(100_000, 280), rng=0)
    counts = RankCounts.from_ranks(drawn, items=300, sampled=2000)
    distribution = estimators.parse("smooth").fit(counts)
    assert [distribution.quantile(q) for q in (0.05, 0.5, 0.95)] == pytest.approx([280] * 3, abs=2)


def test_rows_of_a_batch_may_differ_by_any_amount_of_evidence():
    """Two bends that cancel: the common curve is stiff, and no row can be."""
    design = Law(2000, 50)
    ranks = _binormal_ranks(2000, 20_000, 1.5, 1.0)
    expected = design.pmf(np.arange(1, 52)[:, None], ranks).mean(axis=1)
    counts = RankCounts.from_histogram(np.rint(1e5 * expected).astype(int), design)
    bend = 0.3 * np.sin(np.linspace(0.0, 3 * np.pi, 51))[counts.low - 1]
    rows = np.stack([counts.weight * (1.0 + bend), counts.weight * (1.0 - bend)])
    observed = Observed.prepare(counts, resampled=rows)
    weights = estimators.parse("smooth").solve(observed).weights
    assert weights.sum(axis=1) == pytest.approx(np.ones(3))
    # Each row explains its own histogram; two rows differ by twenty times as much.
    assert np.abs(weights @ observed.likelihood.T - observed.shares).sum(axis=1).max() < 0.01


def test_more_targets_make_it_surer():
    """The spread over bootstrap samples falls like one over the root of the number of targets."""
    design = Law(4000, 99)
    spreads = []
    for size in (1500, 24_000):
        drawn = design.draw(_binormal_ranks(4000, size, 1.5, 1.0), rng=2)
        counts = RankCounts.from_ranks(drawn, items=4000, sampled=99)
        observed = Observed.prepare(counts, resampled=counts.resample(40, rng=0), cutoffs=[100])
        values = estimators.parse("smooth").evaluate(observed, parse_all(["Recall@100"])).values
        spreads.append(values[1:].std())
    assert 2.5 < spreads[0] / spreads[1] < 6.5


# -- averaging -------------------------------------------------------------------------------


def test_the_worst_curve_that_counts_certifies_a_row():
    optimal, failed = Status.OPTIMAL, Status.NOT_CONVERGED

    def curve(gap, status, mark):
        marks = np.full(2, mark)
        solution = Solution(
            np.ones((2, 1)), marks, np.array(gap), marks.astype(int), np.array(status)
        )
        return SimpleNamespace(fit=SimpleNamespace(solution=solution))

    three = [
        curve([1e-12, 1e-9], (optimal, optimal), 10.0),
        curve([1e-8, 0.5], (optimal, failed), 20.0),
        curve([0.7, 1e-8], (failed, optimal), 30.0),
    ]
    share = np.array([[0.6, 0.4, 1e-9], [0.6, 1e-9, 0.4]])
    found = curves._certified(three, share, np.ones((2, 1)))
    assert found.gap.tolist() == [1e-8, 1e-8]
    assert found.status.tolist() == [optimal, optimal]
    assert found.objective.tolist() == [20.0, 30.0]
    assert found.iterations.tolist() == [20, 30]
    # Where all count, a failure shows.
    assert curves._certified(three, np.full((2, 3), 1 / 3), np.ones((2, 1))).failures == 2


def test_the_certificate_counts_the_steps_from_the_start(counts):
    certificate = estimators.parse("smooth").evaluate(Observed.prepare(counts), ()).certificate
    assert certificate.usable
    assert certificate.iterations > 1


def test_mass_at_both_ends_is_kept():
    """Half the targets on top, half at the very bottom, where bins differ most in width."""
    counts = RankCounts.from_ranks([1] * 500 + [100] * 500, items=5000, sampled=99)
    observed = Observed.prepare(counts, cutoffs=[10])
    values = estimators.parse("smooth").evaluate(observed, parse_all(["Recall@500", "AUC"])).values
    assert values[0] == pytest.approx([0.5, 0.5], abs=0.01)


@pytest.mark.parametrize("method", ["smooth", "auto"])
@pytest.mark.parametrize("candidates", ["unseen", "all"])
def test_one_sampled_item_still_tells_the_auc(method, candidates):
    """With n = 2 the share of targets that win is the AUC, and no hedge may bend that."""
    counts = RankCounts.from_ranks([1] * 600 + [2] * 400, items=300, sampled=1)
    observed = Observed.prepare(counts, candidates=candidates)
    values = estimators.parse(method).evaluate(observed, parse_all(["AUC"])).values
    assert values[0, 0] == pytest.approx(0.6, abs=0.05)


# -- auto: what other data sets know -----------------------------------------------------

TOP = parse_all(["Recall@10", "NDCG@10", "AP@10"])
AUTO = estimators.parse("auto")


def _observed(ranks, items, sampled, *, rows=0, seed=0, **options) -> Observed:
    drawn = draw_sampled_ranks(ranks, items=items, sampled=sampled, rng=seed)
    counts = group_catalogues(RankCounts.from_ranks(drawn, items=items, sampled=sampled))
    resampled = counts.resample(rows, rng=seed) if rows else None
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


@pytest.mark.parametrize("method", ["mle", "smooth"])
def test_only_auto_asks_what_became_of_seen_items(method):
    """The others estimate P(R) among the candidates there were, whatever these were."""
    ranks = np.arange(1, 200)
    values = [
        estimators.parse(method)
        .evaluate(_observed(ranks, 1000, 50, candidates=candidates), TOP)
        .values
        for candidates in CANDIDATES
    ]
    assert np.array_equal(*values)


def test_batches_of_unlike_histograms_are_fitted_each_on_its_own():
    """Rows need not be resamples of one data set: each gets its own smoothing."""
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

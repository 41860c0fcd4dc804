"""Bounds: the linear program, its limits of shares, and that they hold whatever P(R) is."""

import math

import numpy as np
import pytest
from scipy import optimize, stats

import unsample
from tests import adversary, reference
from unsample.bounds import Bounds, Drawn, DrawnError, MeanError, UserStratum, minimum_value
from unsample.counts import RankCounts
from unsample.metrics import parse
from unsample.sampling import SamplingModel
from unsample.uncertainty._quantiles import clopper_pearson, hoeffding, quantile

NAMES = ["Recall@5", "NDCG@10", "MRR", "Recall@40"]


def _counts(items=60, sampled=12, size=400, seed=0, replacement=True):
    rng = np.random.default_rng(seed)
    full = np.ceil(items * rng.beta(0.5, 2.0, size)).astype(int).clip(1, items)
    ranks = SamplingModel(items, sampled, replacement).draw(full, rng=rng)
    return RankCounts.from_ranks(ranks, items=items, sampled=sampled, replacement=replacement)


def _slow(counts, metric, level):
    """Return the bounds by a program on single ranks, written out: no bins, no hulls."""
    design = SamplingModel(counts.largest_catalogue, counts.largest_sample, counts.replacement)
    histogram = np.zeros(design.n)
    histogram[counts.low - 1] = counts.count
    (stratum,) = Bounds.of(counts, [metric.cutoff(design.items)]).strata
    ((ends, _),) = stratum.evidence
    total, tail = histogram.sum(), (1.0 - level) / (2 * len(ends))
    probabilities = reference.matrix(design)
    rows, limits = [], []
    for end in ends:
        hits = histogram[:end].sum()
        below = probabilities[:, :end].sum(axis=1)
        low = stats.beta.ppf(tail, hits, total - hits + 1) if hits > 0 else 0.0
        high = stats.beta.ppf(1 - tail, hits + 1, total - hits) if hits < total else 1.0
        rows += [below, -below]
        limits += [high, -low]
    weights = metric.weights(np.arange(1, design.items + 1), design.items)
    ones = np.ones((1, design.items))
    found = [
        optimize.linprog(sign * weights, np.array(rows), limits, ones, [1.0], method="highs").fun
        for sign in (1, -1)
    ]
    return found[0], -found[1]


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("name", NAMES)
def test_bounds_are_those_of_a_slow_program_on_single_ranks(name, replacement):
    counts, metric = _counts(replacement=replacement), parse(name)
    low, high = Bounds.of(counts, [metric.cutoff(60)]).of_metric(metric)
    least, most = _slow(counts, metric, 0.95)
    # Bins may only widen: each function takes its most extreme value in a bin.
    assert low <= least + 1e-9 <= least + 0.02
    assert most - 1e-9 <= high <= most + 0.02
    wide = Bounds.of(counts, [metric.cutoff(60)]).of_metric(metric, 0.999)
    assert wide[0] - 1e-9 <= low <= high <= wide[1] + 1e-9


@pytest.mark.parametrize(("hits", "users"), [(0, 10), (3, 10), (10, 10), (250, 1000)])
def test_limits_of_a_share_are_those_of_the_books(hits, users):
    share = np.array([hits / users])
    low, high = (float(end[0]) for end in clopper_pearson(share, share, users, 0.025))
    book = stats.binomtest(hits, users).proportion_ci(0.95, method="exact")
    assert (low, high) == pytest.approx((book.low, book.high), abs=1e-9)
    least, most = (float(end[0]) for end in hoeffding(share, share, users, 0.025))
    assert least <= low <= high <= most
    if 0 < hits < users:
        for end in (least, most):
            inside = stats.entropy([hits / users, 1 - hits / users], [end, 1 - end])
            assert inside * users == pytest.approx(-math.log(0.025), rel=1e-6)


def test_where_nearly_all_users_have_one_value_as_many_others_as_a_share_allows_could_differ():
    values = np.where(np.arange(300) < 3, 1.0, 0.5)
    error = MeanError.of(values, np.ones(300), parse("AP"))
    book = stats.binomtest(3, 300).proportion_ci(0.95, method="exact")
    ends = 0.5 * (1 - book.high), 0.5 + 0.5 * book.high
    assert error.interval(float(values.mean()), 0.95) == pytest.approx(ends, rel=1e-9)


def test_quantiles_are_those_of_the_books():
    assert quantile(0.95) == pytest.approx(stats.norm.ppf(0.975))
    assert quantile(0.9, 4.0) == pytest.approx(stats.t.ppf(0.95, 4))
    with pytest.raises(unsample.errors.InputError, match="level must be"):
        quantile(1.0)


@pytest.mark.parametrize("kind", adversary.KINDS)
def test_bounds_hold_against_an_adversary(kind):
    """A few worlds of each kind; tests/test_validity_adversary.py has hundreds."""
    for trial in adversary.trials(kind, 4, seed=33):
        assert trial.held, trial
        assert trial.low <= trial.high
        assert trial.seconds < adversary.MAX_SECONDS


def test_a_sample_may_be_larger_than_another_users_catalogue():
    full, parts = np.arange(1, 49), []
    for items, sampled in ((50, 20), (54, 52)):
        ranks = SamplingModel(items, sampled, replacement=False).draw(full, rng=0)
        parts.append(RankCounts.from_ranks(ranks, items=items, sampled=sampled, replacement=False))
    bounds = Bounds.of(RankCounts.merge(parts), [10])
    assert len(bounds.strata) == 1
    low, high = bounds.of_metric(parse("Recall@10"))
    assert low < 10 / 48 < high < 0.6


def test_data_that_no_curve_gives_are_refuted():
    counts = RankCounts.from_ranks([1, 9] * 600, items=100, sampled=9)
    bounds = Bounds.of(counts, [5])
    assert not bounds.feasible
    assert bounds.of_metric(parse("Recall@5")) == (0.0, 1.0)
    # Where nothing fits, all that is possible is left.
    assert minimum_value(np.array([1.0, 0.5, 0.0]), -np.ones((1, 3)), np.array([-2.0])) == 0.0


def test_users_all_of_whom_are_known_have_the_error_of_their_mean():
    rng, metric = np.random.default_rng(0), parse("NDCG@10")
    nobody, everybody = np.zeros(40, dtype=bool), np.ones(40, dtype=bool)
    weights = rng.integers(1, 4, size=40).astype(float)
    for values in (rng.random(40), rng.integers(0, 2, size=40)):
        drawn = Drawn(weights, np.zeros(40, dtype=int), nobody, everybody)
        found = DrawnError.of_drawn(drawn, 0 * weights, weights, values * weights, metric)
        expected = MeanError.of(values * weights, weights, metric)
        for name in ("population", "df", "users", "max_value", "all_or_nothing"):
            assert getattr(found.of_users, name) == pytest.approx(getattr(expected, name)), name
        assert found.population == pytest.approx(expected.population)


def test_a_stratum_has_the_error_of_a_draw_without_replacement():
    part = UserStratum.of(np.ones(200), np.full(200, 0.5), 60, 0.3, 0.04, 90)
    assert (part.best, part.range, part.df) == (200.0, 100.0, 59)
    assert part.drawn_variance == pytest.approx(200**2 * (1 - 60 / 200) / 60 * 0.04)

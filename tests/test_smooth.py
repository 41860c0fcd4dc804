"""Smooth curves: the solver, the estimator against a dense reference, and what it is good for."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import integrate, special

from tests import reference
from unsample import estimators
from unsample.errors import MethodError
from unsample.estimators import Observed, _curves
from unsample.estimators._condensed import Condensed, _ranges
from unsample.estimators._curves import Head, average_curves
from unsample.estimators._solvers import LogDensity, Solution, Status
from unsample.evidence import RankCounts
from unsample.law import Law, RankGrid
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


# -- the solver ------------------------------------------------------------------------------


def _small_problem(rows: int = 1) -> LogDensity:
    design = Law(60, 8)
    histogram = _histogram(design, _beta_ranks(60, 300))
    rng = np.random.default_rng(1)
    shares = rng.multinomial(300, histogram / 300, size=rows) / 300
    z = -special.ndtri((np.arange(60) + 0.5) / 60)
    shapes = np.stack([z, z * z / 2], axis=1)
    return LogDensity(
        reference.matrix(design).T, shares, 300.0, shapes, np.zeros(60), np.zeros(2), np.ones(2)
    )


def test_no_small_move_gains_and_the_certificate_says_so():
    problem = _small_problem(rows=4)
    fit = problem.fit()
    assert set(fit.solution.status) == {Status.OPTIMAL}
    assert fit.solution.residual.max() < 1e-6
    assert fit.solution.gap.max() < 1e-9
    _, best = problem.value(fit.coefficients)
    rng = np.random.default_rng(0)
    for _ in range(50):
        _, other = problem.value(fit.coefficients + rng.normal(scale=1e-2, size=(4, 2)))
        assert (other < best).all()


def test_information_is_minus_the_hessian_of_the_value():
    problem = _small_problem()
    at = np.array([[0.4, -0.3]])
    weights, _ = problem.value(at)
    _, observed = problem.information(weights)
    step = 1e-5
    numeric = np.zeros((2, 2))
    for j in range(2):
        move = step * np.eye(2)[j][None]
        above, below = (
            problem.gradient(at + s * move, problem.value(at + s * move)[0]) for s in (1, -1)
        )
        numeric[j] = -(above - below)[0] / (2 * step)
    assert np.allclose(observed[0], numeric, rtol=1e-4, atol=1e-3)


def test_evidence_is_the_integral_over_the_coefficients():
    problem = _small_problem()
    fit = problem.fit()
    _, top = problem.value(fit.coefficients)

    def density(y, x):
        return float(np.exp(problem.value(np.array([[x, y]]))[1] - top)[0]) / (2 * np.pi)

    centre, width = fit.coefficients[0], 8 / np.sqrt(np.linalg.eigvalsh(fit.information[0])[0])
    volume, _ = integrate.dblquad(
        density, centre[0] - width, centre[0] + width, centre[1] - width, centre[1] + width
    )
    # Laplace's approximation is not exact; a tenth of a unit of log evidence decides nothing.
    assert fit.log_evidence[0] == pytest.approx(float(top[0]) + np.log(volume), abs=0.1)


def test_rows_fitted_from_their_common_fit_reach_the_same_place():
    problem = _small_problem(rows=30)
    alone = problem.fit()
    common = LogDensity(
        problem.likelihood,
        problem.shares.mean(axis=0, keepdims=True),
        *(getattr(problem, name) for name in ("targets", "shapes", "log_base", "mean")),
        problem.precision,
    ).fit()
    together = problem.fit(near=common)
    assert np.allclose(alone.coefficients, together.coefficients, atol=1e-5)
    assert np.allclose(alone.log_evidence, together.log_evidence, atol=1e-5)


# -- condensing ------------------------------------------------------------------------------


@pytest.mark.parametrize("replacement", [True, False])
def test_condensed_cells_add_up_to_one_and_expect_the_same(replacement):
    design = Law(1200, 150, replacement=replacement)
    drawn = design.draw(_beta_ranks(1200, 4000), rng=0)
    counts = RankCounts.from_ranks(drawn, items=1200, sampled=150, replacement=replacement)
    observed = Observed.prepare(counts)
    condensed = Condensed.of(observed)
    starts = _ranges(list(observed.designs), design.n)[0]
    assert len(starts) == len(condensed.likelihood) < 0.7 * design.n
    assert np.allclose(condensed.likelihood.sum(axis=0), 1.0)
    assert condensed.shares.sum() == pytest.approx(1.0)
    # A smooth P(R) gives the same histogram of condensed cells, rank by rank or bin by bin.
    dense = reference.beta_mass(1200, 0.5, 2.0)
    expected = condensed.likelihood @ np.add.reduceat(dense, condensed.grid.low - 1)
    exact = np.add.reduceat(dense @ reference.matrix(design), starts - 1)
    assert np.allclose(expected, exact, rtol=3e-3)


# -- the estimator ---------------------------------------------------------------------------


@pytest.mark.parametrize("replacement", [True, False], ids=["binomial", "hypergeometric"])
@pytest.mark.parametrize(
    ("method", "candidates", "levels", "doubt"),
    [
        ("smooth", "unseen", {0.0: 1.0}, 0.0),
        ("auto", "unseen", {0.0: 0.5, 0.15: 0.5}, 0.0),
        ("auto", "all", {0.0: 0.25, 0.1: 0.25, 0.3: 0.25, 0.6: 0.25}, 0.5),
    ],
)
def test_against_a_dense_reference(method, candidates, levels, doubt, replacement):
    design = Law(400, 30, replacement=replacement)
    drawn = design.draw(_beta_ranks(400, 3000), rng=1)
    histogram = np.bincount(drawn, minlength=32)[1:]
    mass = reference.averaged_curves(reference.matrix(design), histogram, levels, doubt)
    expected = [mass @ reference.metric_weights(m.family.name, m.k, 400) for m in METRICS]
    assert _values(method, drawn, design, candidates=candidates) == pytest.approx(
        expected, rel=0.01
    )


def test_three_targets_against_a_dense_reference():
    """So few that the hedge reaches its limit: where nothing is known it takes no more off."""
    design = Law(400, 30)
    drawn = design.draw(_beta_ranks(400, 3), rng=1)
    histogram = np.bincount(drawn, minlength=32)[1:]
    mass = reference.averaged_curves(reference.matrix(design), histogram, {0.0: 1.0}, 0.0)
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

    dense = distribution(RankGrid.dense(2000))
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
    weights = average_curves(observed, [Head(0.0)], doubt=0.0).weights
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


def test_a_prior_counts_as_evidence_does():
    design = Law(2000, 50)
    drawn = design.draw(_binormal_ranks(2000, 1500, 1.5, 1.0), rng=0)
    observed = Observed.prepare(RankCounts.from_ranks(drawn, items=2000, sampled=50))
    goes_on, levels_off = (
        average_curves(observed, [Head(level)], doubt=0.0).weights[0] for level in (0.0, 0.15)
    )

    def odds(prior):
        heads = [Head(0.0, prior), Head(0.15, 1.0 - prior)]
        both = average_curves(observed, heads, doubt=0.0).weights[0]
        apart = goes_on - levels_off
        share = (both - levels_off) @ apart / (apart @ apart)
        return share / (1.0 - share)

    # Curves that are left out as implausible counted for a millionth.
    assert odds(0.9) / odds(0.5) == pytest.approx(9.0, rel=1e-4)


def test_the_worst_curve_that_counts_certifies_a_row():
    optimal, failed = Status.OPTIMAL, Status.NOT_CONVERGED

    def curve(gap, status, mark):
        marks = np.full(2, mark)
        return SimpleNamespace(
            fit=SimpleNamespace(
                solution=Solution(
                    np.ones((2, 1)), marks, np.array(gap), marks / 10, marks.astype(int), status
                )
            )
        )

    curves = [
        curve([1e-12, 1e-9], (optimal, optimal), 10.0),
        curve([1e-8, 0.5], (optimal, failed), 20.0),
        curve([0.7, 1e-8], (failed, optimal), 30.0),
    ]
    share = np.array([[0.6, 0.4, 1e-9], [0.6, 1e-9, 0.4]])
    found = _curves._certified(curves, share, np.ones((2, 1)))
    assert found.gap.tolist() == [1e-8, 1e-8]
    assert found.status == (optimal, optimal)
    assert found.objective.tolist() == [20.0, 30.0]
    assert found.residual.tolist() == [2.0, 3.0]
    assert found.iterations.tolist() == [20, 30]
    # Where all count, a failure shows.
    assert _curves._certified(curves, np.full((2, 3), 1 / 3), np.ones((2, 1))).failures == 2


def test_curves_are_left_out_by_how_far_they_are_below_the_best():
    evidence = [-500.0, -501.0, -507.0, -530.0, -900.0]
    curves = [SimpleNamespace(log_evidence=np.array([value])) for value in evidence]
    assert _curves._plausible(curves) == curves[:3]


@pytest.mark.parametrize("method", ["smooth", "auto"])
def test_the_certificate_counts_the_steps_from_the_start(method, counts):
    certificate = estimators.parse(method).evaluate(Observed.prepare(counts), ()).certificate
    assert certificate.usable
    assert certificate.iterations > 1


# -- base measures ---------------------------------------------------------------------------


def test_bases_against_references():
    design = Law(400, 30)
    histogram = _histogram(design, _beta_ranks(400, 3000))
    likelihood, shares = reference.matrix(design), histogram / histogram.sum()
    starts = {
        "uniform": np.full(400, 1 / 400),
        "reciprocal": 1 / np.arange(1, 401),
        "power": reference.power_law(likelihood, shares),
        "beta": reference.beta(likelihood, shares),
    }
    counts = RankCounts.from_histogram(histogram, design)
    observed = Observed.prepare(counts, cutoffs=[1, 5, 10, 40])
    for base, start in starts.items():
        pi = start / start.sum()
        for _ in range(20):
            pi = pi * (likelihood @ (shares / (pi @ likelihood)))
        expected = [pi @ reference.metric_weights(m.family.name, m.k, 400) for m in METRICS]
        method = estimators.parse(f"mle(iterations=20, base={base})")
        assert method.evaluate(observed, METRICS).values[0] == pytest.approx(expected, rel=2e-3)


def test_a_strong_entropy_returns_the_base():
    design = Law(400, 30)
    counts = RankCounts.from_histogram(_histogram(design, _beta_ranks(400, 3000)), design)
    distribution = estimators.parse("mes(eta=1e6, base=reciprocal)").fit(counts, cutoffs=[10])
    harmonic = (1 / np.arange(1, 401)).cumsum()
    assert distribution.cdf(10) == pytest.approx(harmonic[9] / harmonic[-1], rel=1e-4)


def test_the_base_decides_where_the_sample_is_blind():
    """With 10 sampled of 10,000, ranks 1 and 3 look alike: their ratio is the base's."""
    design = Law(10_000, 10)
    counts = RankCounts.from_ranks(
        design.draw(_beta_ranks(10_000, 2000), rng=0), items=10_000, sampled=10
    )
    flat, steep = (
        estimators.parse(f"mle(base={base})").fit(counts) for base in ("uniform", "reciprocal")
    )
    assert flat.pmf(1) / flat.pmf(3) == pytest.approx(1.0, rel=0.05)
    assert steep.pmf(1) / steep.pmf(3) == pytest.approx(3.0, rel=0.05)


@pytest.mark.parametrize("method", ["mle(base=flat)", "mes(base=zipf)", "smooth(looseness=1)"])
def test_bad_parameters_are_refused(method):
    with pytest.raises(MethodError):
        estimators.parse(method)


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


def test_cells_of_several_sample_sizes_and_known_ranks_share_one_total():
    """Without this the information, and so the evidence, would count every size as a data set."""
    rng = np.random.default_rng(0)
    ranks, sampled = _beta_ranks(800, 2000), rng.integers(20, 40, size=2000)
    drawn = 1 + np.array(
        [rng.hypergeometric(r - 1, 800 - r, s) for r, s in zip(ranks, sampled, strict=True)]
    )
    partly = RankCounts.from_ranks(drawn, items=800, sampled=sampled, replacement=False)
    known = RankCounts.from_ranks(ranks[:500], items=800, sampled=799, replacement=False)
    for counts in (partly, partly + known):
        condensed = Condensed.of(Observed.prepare(counts))
        used = condensed.likelihood[condensed.known :].sum(axis=0)
        assert np.allclose(used, 1.0 - condensed.shares[0, : condensed.known].sum())
        assert condensed.shares.sum() == pytest.approx(1.0)

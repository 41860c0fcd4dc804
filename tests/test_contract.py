"""One contract for every estimator. `test_nothing_escapes` proves that every one is in it."""

import inspect
import pkgutil

import numpy as np
import pytest

from unsample import estimators
from unsample.counts import RankCounts
from unsample.estimators import REGISTRY, DistributionEstimator, Estimator
from unsample.likelihood import CLOSED_FORM, Observed
from unsample.metrics import parse_all
from unsample.sampling import SamplingModel

VARIANTS = [
    *REGISTRY,
    "bv(gamma=0.01)",
    "bv(prior=mle)",
    "bv(prior=mes)",
    "mn(prior=mes)",
    "mle(iterations=7)",
    "mle(iterations=converged, tol=0.001)",
    "wmle(weight=ndcg)",
    "wmle(weight=ndcg, c=5)",
    "wmle(weight=ap)",
    "mes(eta=0.0001)",
    "recall_map(a=1.0)",
]
DISTRIBUTIONS = [
    name for name in VARIANTS if isinstance(estimators.parse(name), DistributionEstimator)
]
#: Unbiased for nothing but AUC, so its values are not compared with the truth.
NOT_ESTIMATES = {"naive", "rank"}
METRICS = parse_all(["Recall@1", "Recall@40", "Precision@40", "NDCG@40", "AP@40", "AUC", "AUC@40"])


def _metrics(estimator: Estimator):
    return [metric for metric in METRICS if estimator.supports(metric)]


@pytest.fixture(scope="module")
def fitted(counts):
    """Return every variant fitted to the same counts, and to two bootstrap samples of them."""
    shares = counts.weight / counts.weight.sum()
    again = np.random.default_rng(0).multinomial(counts.total, shares, size=2)
    drawn = np.concatenate([counts.weight[None], again])
    return {
        name: _evaluate(estimators.parse(name), counts, histograms=drawn) for name in VARIANTS
    }, drawn


def _evaluate(estimator: Estimator, counts: RankCounts, metrics=None, **options):
    metrics = _metrics(estimator) if metrics is None else metrics
    cutoffs = [metric.cutoff(counts.largest_catalogue) for metric in metrics]
    observed = Observed.prepare(counts, cutoffs=cutoffs, **options)
    return estimator.evaluate(observed, metrics)


def test_nothing_escapes():
    """Every concrete estimator class of the package is registered, and so is in the contract."""
    found = set()
    for module in pkgutil.walk_packages(estimators.__path__, "unsample.estimators."):
        loaded = __import__(module.name, fromlist=["_"])
        for _, member in inspect.getmembers(loaded, inspect.isclass):
            if issubclass(member, Estimator) and not inspect.isabstract(member):
                found.add(member)
    assert found == set(REGISTRY.values())
    assert {estimators.parse(v).name for v in VARIANTS} == set(REGISTRY)
    for name, estimator in REGISTRY.items():
        assert estimator.name == name
        assert "Reference" in (inspect.getdoc(estimator) or "")


@pytest.mark.parametrize("name", VARIANTS)
def test_values_are_finite_certified_and_near_the_truth(name, fitted, full_ranks):
    estimator = estimators.parse(name)
    metrics = _metrics(estimator)
    evaluation = fitted[0][name]
    assert evaluation.values.shape == (3, len(metrics))
    assert np.isfinite(evaluation.values).all()
    assert evaluation.certificate.usable
    assert (evaluation.distribution is not None) == isinstance(estimator, DistributionEstimator)
    if estimator.name in NOT_ESTIMATES or "weight=" in name:
        return
    truth = np.array([metric.weights(full_ranks, 400).mean() for metric in metrics])
    resolved = [i for i, metric in enumerate(metrics) if metric.k != 1]
    assert np.allclose(evaluation.values[0, resolved], truth[resolved], rtol=0.3, atol=0.02)


@pytest.mark.parametrize("name", VARIANTS)
def test_recall_is_one_over_all_items_and_grows_with_k(name, counts):
    estimator = estimators.parse(name)
    recalls = parse_all([f"Recall@{k}" for k in (1, 2, 7, 30, 31, 200, 399, 400, 5000)])
    found = _evaluate(estimator, counts, recalls).values[0]
    assert ((found >= 0) & (found <= 1)).all()
    assert found[-2:] == pytest.approx(1.0, abs=1e-6)
    # What is solved for each metric by itself need not grow.
    if estimator.name not in {"cls", "bv", "mn"}:
        assert (np.diff(found) >= -1e-9).all()


@pytest.mark.parametrize("name", VARIANTS)
def test_batches_give_what_single_fits_give(name, counts, fitted):
    estimator = estimators.parse(name)
    batch, drawn = fitted[0][name].values, fitted[1]
    for row, times in enumerate(drawn.astype(int)):
        single = RankCounts.from_ranks(np.repeat(counts.low, times), items=400, sampled=30)
        alone = _evaluate(estimator, single).values[0]
        assert np.allclose(batch[row], alone, rtol=2e-5, atol=1e-7)


@pytest.mark.parametrize("name", VARIANTS)
def test_full_sampling_without_replacement_is_exact(name):
    """With n = N every sampled rank is the global rank, and no estimator may do worse."""
    estimator = estimators.parse(name)
    ranks = np.random.default_rng(0).integers(1, 151, size=500)
    counts = RankCounts.from_ranks(ranks, items=150, sampled=149, replacement=False)
    metrics = _metrics(estimator)
    truth = [metric.weights(ranks, 150).mean() for metric in metrics]
    found = _evaluate(estimator, counts)
    assert np.allclose(found.values[0], truth, rtol=1e-9, atol=1e-12)
    # There is nothing to fit.
    assert found.certificate == CLOSED_FORM


@pytest.mark.parametrize("name", VARIANTS)
def test_targets_of_known_rank_count_exactly(name, counts, full_ranks):
    """Half the targets ranked in full, half sampled without replacement: each adds its part."""
    estimator = estimators.parse(name)
    known, sampled = full_ranks[:1500], full_ranks[1500:]
    drawn = SamplingModel(400, 30, replacement=False).draw(sampled, rng=1)
    exact = RankCounts.from_ranks(known, items=400, sampled=399, replacement=False)
    partly = RankCounts.from_ranks(drawn, items=400, sampled=30, replacement=False)
    together = _evaluate(estimator, RankCounts.merge([exact, partly])).values[0]
    alone = _evaluate(estimator, partly).values[0]
    truth = np.array([m.weights(known, 400).mean() for m in _metrics(estimator)])
    if isinstance(estimator, DistributionEstimator) and estimator.joint:
        # The known ranks also inform the others: between the two, not above both.
        assert np.allclose(together, (truth + alone) / 2, rtol=0.35, atol=0.02)
    elif not estimator.name.startswith("mn"):
        assert np.allclose(together, (truth + alone) / 2, rtol=2e-3)


@pytest.mark.parametrize("name", VARIANTS)
def test_catalogues_may_differ_by_target(name, full_ranks):
    estimator = estimators.parse(name)
    rng = np.random.default_rng(3)
    items = 400 + rng.integers(0, 40, size=len(full_ranks))
    ranks = 1 + rng.binomial(30, (full_ranks - 1) / (items - 1))
    counts = RankCounts.from_ranks(ranks, items=items, sampled=30)
    metrics = [metric for metric in _metrics(estimator) if metric.k == 40]
    values = _evaluate(estimator, counts, metrics).values[0]
    assert np.isfinite(values).all()
    if estimator.name in NOT_ESTIMATES or "weight=" in name:
        return
    truth = [metric.weights(full_ranks, 400).mean() for metric in metrics]
    assert np.allclose(values, truth, rtol=0.3, atol=0.02)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions_have_mass_one_and_give_the_metrics(name, counts, fitted):
    estimator = estimators.parse(name)
    evaluation = fitted[0][name]
    distribution = evaluation.distribution
    assert distribution is not None
    assert distribution.mass.sum() == pytest.approx(1.0, abs=1e-6)
    if not estimator.name.startswith(("bv", "mn")):
        assert distribution.mass.min() >= 0
    values = [distribution.expect(metric) for metric in _metrics(estimator)]
    assert np.allclose(values, evaluation.values[0], rtol=1e-9)
    assert np.allclose(estimator.fit(counts, cutoffs=[1, 40]).mass, distribution.mass, atol=1e-9)

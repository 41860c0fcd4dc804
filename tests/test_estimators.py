"""Each estimator against a slow, dense, direct implementation of its formula."""

from dataclasses import dataclass

import numpy as np
import pytest

from tests import reference
from unsample import estimators
from unsample.errors import DesignError, MethodError, MetricError
from unsample.estimators import (
    CLOSED_FORM,
    CLS,
    MLE,
    Fit,
    Naive,
    Observed,
    RecallMap,
)
from unsample.evidence import RankCounts
from unsample.law import Law
from unsample.metrics import Recall, parse_all

NAMES = ("Recall", "NDCG", "AP")
CUTOFFS = (1, 5, 14, 40)


@pytest.fixture(scope="module", params=[True, False], ids=["binomial", "hypergeometric"])
def setting(request):
    design = Law(400, 30, replacement=request.param)
    rng = np.random.default_rng(8)
    ranks = np.ceil(400 * rng.beta(0.5, 2, size=3000)).astype(int).clip(1)
    histogram = np.bincount(design.draw(ranks, rng=rng), minlength=32)[1:]
    return design, histogram, reference.matrix(design)


def _values(method: str, setting) -> dict[tuple[str, int], float]:
    design, histogram, _ = setting
    counts = RankCounts.from_histogram(histogram, design)
    metrics = parse_all([f"{name}@{k}" for name in NAMES for k in CUTOFFS])
    observed = Observed.prepare(counts, cutoffs=CUTOFFS)
    values = estimators.parse(method).evaluate(observed, metrics).values[0]
    return {(m.family.name, m.k): v for m, v in zip(metrics, values, strict=True)}


def _same(got, expected, rel):
    for (name, k), value in got.items():
        weights = reference.metric_weights(name, k, 400)
        assert value == pytest.approx(expected(weights), rel=rel, abs=1e-9), (name, k)


def test_naive_and_rank(setting):
    _, histogram, _ = setting
    shares = histogram / histogram.sum()
    r = np.arange(1, 32)
    for (name, k), value in _values("naive", setting).items():
        assert value == pytest.approx(shares @ reference.metric_weights(name, k, 31))
    unbiased = 1 + 399 * (r - 1) / 30
    for (name, k), value in _values("rank", setting).items():
        kernel = {"Recall": np.ones(31), "NDCG": 1 / np.log2(unbiased + 1), "AP": 1 / unbiased}
        assert value == pytest.approx(shares @ np.where(unbiased <= k, kernel[name], 0))


@pytest.mark.parametrize("iterations", [1, 20, 100])
def test_mle(setting, iterations):
    _, histogram, likelihood = setting
    pi = reference.em(likelihood, histogram / histogram.sum(), iterations)
    _same(_values(f"mle(iterations={iterations})", setting), lambda w: pi @ w, 2e-4)


@pytest.mark.parametrize("weight", ["tables", "ndcg", "ap"])
def test_wmle(setting, weight):
    _, histogram, likelihood = setting
    weighted = histogram * reference.wmle_weights(weight, 31)
    pi = reference.em(likelihood, weighted / weighted.sum(), 100)
    _same(_values(f"wmle(weight={weight})", setting), lambda w: pi @ w, 2e-4)


def test_mes(setting):
    _, histogram, likelihood = setting
    pi = reference.mes(likelihood, histogram / histogram.sum(), 0.01)
    _same(_values("mes(eta=0.01)", setting), lambda w: pi @ w, 2e-4)


@pytest.mark.parametrize("gamma", [0.1, 0.01])
def test_bv(setting, gamma):
    _, histogram, likelihood = setting
    shares, uniform = histogram / histogram.sum(), np.full(400, 1 / 400)
    expected = lambda w: reference.bv(likelihood, shares, w, gamma, uniform)  # noqa: E731
    _same(_values(f"bv(gamma={gamma})", setting), expected, 1e-3)


def test_bv_and_mn_with_a_learned_prior(setting):
    _, histogram, likelihood = setting
    shares, users = histogram / histogram.sum(), float(histogram.sum())
    by_mle = reference.em(likelihood, shares, 100)
    by_mes = reference.mes(likelihood, shares, 0.001)
    cases = {
        "bv(prior=mle)": lambda w: reference.bv(likelihood, shares, w, 0.01, by_mle),
        "bv(prior=mes)": lambda w: reference.bv(likelihood, shares, w, 0.01, by_mes),
        "mn": lambda w: reference.mn(likelihood, shares, w, users, by_mle),
        "mn(prior=mes)": lambda w: reference.mn(likelihood, shares, w, users, by_mes),
    }
    for method, expected in cases.items():
        _same(_values(method, setting), expected, 5e-3)


def test_cls(setting):
    _, histogram, likelihood = setting
    shares = histogram / histogram.sum()
    _same(_values("cls", setting), lambda w: reference.cls(likelihood, shares, w), 5e-3)


def test_beta(setting):
    _, histogram, likelihood = setting
    pi = reference.beta(likelihood, histogram / histogram.sum())
    _same(_values("beta", setting), lambda w: pi @ w, 1e-3)


def test_recall_map_is_exact_on_its_own_law():
    """Under theta ~ Beta(a, 1) the beta mapping returns the true recall at every f(k)."""
    design, a = Law(10_001, 50), 0.5
    theta = (np.arange(10_000) + 0.5) / 10_000
    law = theta ** (a - 1)
    histogram = (law / law.sum()) @ reference.matrix(design)[:-1]
    counts = RankCounts.from_histogram(np.round(histogram * 10**9).astype(int), design)
    mapping = RecallMap(a=a)
    for k in (1, 5, 20):
        cutoff = round(mapping.mapping(design)[k - 1])
        metrics = parse_all([f"Recall@{cutoff}"])
        value = mapping.evaluate(Observed.prepare(counts), metrics).values[0, 0]
        assert value == pytest.approx((cutoff / 10_001) ** a, rel=0.03)
    uniform = RecallMap(a=1.0).mapping(Law(1001, 10))
    assert np.allclose(uniform, 1001 * np.arange(1, 12) / 11)


def test_ranges_of_ranks_are_for_likelihoods(setting):
    """Coarse histograms (a list that ends at K) give close to what the full one gives."""
    design, histogram, _ = setting
    first = np.array([1, 2, 3, 4, 6, 9, 13, 21])
    last = np.append(first[1:] - 1, design.n)
    counts = RankCounts.from_ranges(first, last, np.add.reduceat(histogram, first - 1), design)
    metrics = parse_all(["Recall@40"])
    observed = Observed.prepare(counts, cutoffs=[40])
    for method in ("mle", "wmle", "beta"):
        value = estimators.parse(method).evaluate(observed, metrics).values[0, 0]
        assert value == pytest.approx(_values(method, setting)["Recall", 40], rel=0.1)
    for method in ("rank", "recall_map", "mes", "bv", "cls", "mn(prior=mes)"):
        with pytest.raises(DesignError, match=r"needs single sampled ranks, got the range 4\.\.5"):
            estimators.parse(method).evaluate(observed, metrics)
    with pytest.raises(DesignError, match="naive"):
        estimators.parse("naive").evaluate(observed, parse_all(["NDCG@10"]))
    naive = estimators.parse("naive").evaluate(observed, parse_all(["Recall@5"]))
    assert naive.values[0, 0] == pytest.approx(histogram[:5].sum() / histogram.sum())


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("mel", "did you mean mle"),
        ("bv(gama=0.1)", "keys among: gamma"),
        ("bv(gamma=0)", "gamma must be"),
        ("bv(gamma=2)", "gamma must be"),
        ("bv(prior=cls)", "prior must be one of uniform, mle, mes"),
        ("mn(prior=uniform)", "prior must be one of mle, mes"),
        ("mle(iterations=0)", "iterations must be"),
        ("mle(iterations=many)", "iterations must be"),
        ("mes(eta=-1)", "eta must be"),
        ("wmle(weight=ndgc)", "did you mean ndcg"),
        ("cls(gamma=1)", "keys among: none"),
        ("recall_map(a=0)", "a must be"),
        ("mle(100)", "key=value"),
        ("mle)", "method must be a name"),
        (3, "method must be a name"),
    ],
)
def test_bad_methods_are_refused(method, words):
    with pytest.raises(MethodError, match=words):
        estimators.parse(method)


@pytest.mark.parametrize("kind", [MLE, CLS, Naive])
def test_every_kind_of_estimator_refuses_what_it_does_not_support(kind, counts):
    @dataclass(frozen=True)
    class Recalls(kind):
        name = "recalls"

        def supports(self, metric):
            return metric.family is Recall

    observed = Observed.prepare(counts, cutoffs=[10])
    assert Recalls().evaluate(observed, [Recall @ 10]).values.shape == (1, 1)
    with pytest.raises(MetricError, match=r"ones that recalls can give, got NDCG@10, AUC;"):
        Recalls().evaluate(observed, parse_all(["NDCG@10", "Recall@10", "AUC"]))


def test_only_what_rounding_cannot_explain_is_called_clipped():
    values, before = np.array([[1.0, 1.0, 0.0, 0.4]]), np.array([[1.01, 1 + 1e-9, -0.2, 0.4]])
    assert Fit(values, before, CLOSED_FORM).clipped == (True, False, True, False)
    assert Fit(values, values, CLOSED_FORM).clipped == (False,) * 4


def test_systems_too_large_are_refused():
    counts = RankCounts.from_ranks([1, 7], items=10**6, sampled=20_000)
    with pytest.raises(DesignError, match="at most 5000"):
        estimators.parse("bv").evaluate(Observed.prepare(counts), parse_all(["Recall@100"]))
    assert MLE().evaluate(Observed.prepare(counts), parse_all(["Recall@100"])).values[0, 0] > 0

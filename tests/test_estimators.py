"""Each estimator against a slow, direct twin; what they are given, and what they refuse."""

import numpy as np
import pytest

from tests import reference
from unsample import estimators
from unsample.counts import RankCounts
from unsample.errors import DesignError, InputError, MethodError, RankError
from unsample.estimators import MLE, Fit, RecallMap, maximum_likelihood
from unsample.likelihood import CLOSED_FORM, Observed, Status
from unsample.metrics import parse_all
from unsample.sampling import RankGrid, SamplingModel

NAMES = ("Recall", "NDCG", "AP")
CUTOFFS = (1, 5, 14, 40)


@pytest.fixture(scope="module", params=[True, False], ids=["binomial", "hypergeometric"])
def setting(request):
    """Return a design, a histogram of sampled ranks, and P(r | R) of every rank."""
    design = SamplingModel(400, 30, replacement=request.param)
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


def _weighted(kind, c=10):
    def slow(likelihood, shares):
        weighted = shares * reference.wmle_weights(kind, 31, c)
        return reference.em(likelihood, weighted / weighted.sum(), 100)

    return slow


#: Method -> its P(R) from the dense likelihood and the shares of sampled ranks, and digits.
CURVES = {
    "mle(iterations=1)": (lambda a, p: reference.em(a, p, 1), 2e-4),
    "mle": (lambda a, p: reference.em(a, p, 100), 2e-4),
    "wmle": (_weighted("tables"), 2e-4),
    "wmle(weight=ndcg)": (_weighted("ndcg"), 2e-4),
    "wmle(weight=ndcg, c=3)": (_weighted("ndcg", 3), 2e-4),
    "wmle(weight=ap)": (_weighted("ap"), 2e-4),
    "wmle(weight=ap, c=2)": (_weighted("ap", 10), 2e-4),
    "mes(eta=0.01)": (lambda a, p: reference.mes(a, p, 0.01), 2e-4),
    "beta": (reference.beta, 1e-3),
}


@pytest.mark.parametrize("method", CURVES)
def test_curves(setting, method):
    _, histogram, likelihood = setting
    slow, digits = CURVES[method]
    pi = slow(likelihood, histogram / histogram.sum())
    for (name, k), value in _values(method, setting).items():
        weights = reference.metric_weights(name, k, 400)
        assert value == pytest.approx(pi @ weights, rel=digits, abs=1e-9), (name, k)


@pytest.mark.parametrize("method", ["mle", "wmle"])
def test_em_converges_to_the_maximum(setting, method):
    """Of all P(R), none is likelier by more than the tolerance, as an optimiser finds it."""
    _, histogram, likelihood = setting
    shares = histogram / histogram.sum()
    if method == "wmle":
        shares = shares * reference.wmle_weights("tables", 31)
        shares /= shares.sum()

    def log_likelihood(pi):
        return shares @ np.log(np.maximum(pi @ likelihood, 1e-300))

    pi = np.full(400, 1 / 400)
    for _ in range(20_000):
        pi *= likelihood[:400] @ (shares / (pi @ likelihood))
    best = log_likelihood(pi)
    counts = RankCounts.from_histogram(histogram, setting[0])
    observed = Observed.prepare(counts, grid=RankGrid.fine(400, sampled=30, cutoffs=range(400)))
    steps = []
    for tol in ("1e-3", "1e-4", "1e-5"):
        solution = estimators.parse(f"{method}(iterations=converged, tol={tol})").solve(observed)
        assert solution.certificate.status is Status.OPTIMAL
        assert solution.certificate.gap <= float(tol)
        assert log_likelihood(solution.weights[0]) >= best - float(tol)
        steps.append(solution.certificate.iterations)
    assert steps == sorted(steps)
    hundred = estimators.parse(method).solve(observed).certificate
    assert hundred.status is Status.STOPPED
    assert hundred.gap > 1e-5


def test_em_that_does_not_converge_is_said(setting, monkeypatch):
    design, histogram, _ = setting
    monkeypatch.setattr(maximum_likelihood, "_MOST_STEPS", 200)
    observed = Observed.prepare(RankCounts.from_histogram(histogram, design))
    found = estimators.parse("mle(iterations=converged, tol=1e-12)").solve(observed).certificate
    assert found.status is Status.NOT_CONVERGED
    assert found.iterations == 200
    assert not found.usable


#: Method -> the metric from likelihood, shares, weights, and P(R) that is learned by EM or MES.
CORRECTED = {
    "bv": lambda a, p, w, *_: reference.bv(a, p, w, 0.1, np.full(400, 1 / 400)),
    "bv(gamma=0.01)": lambda a, p, w, *_: reference.bv(a, p, w, 0.01, np.full(400, 1 / 400)),
    "bv(prior=mle)": lambda a, p, w, mle, _: reference.bv(a, p, w, 0.01, mle),
    "bv(prior=mes)": lambda a, p, w, _, mes: reference.bv(a, p, w, 0.01, mes),
    "mn": lambda a, p, w, mle, _: reference.mn(a, p, w, 3000.0, mle),
    "mn(prior=mes)": lambda a, p, w, _, mes: reference.mn(a, p, w, 3000.0, mes),
    "cls": lambda a, p, w, *_: reference.cls(a, p, w),
}


def test_corrected_metrics(setting):
    _, histogram, likelihood = setting
    shares = histogram / histogram.sum()
    learned = reference.em(likelihood, shares, 100), reference.mes(likelihood, shares, 0.001)
    for method, slow in CORRECTED.items():
        for (name, k), value in _values(method, setting).items():
            weights = reference.metric_weights(name, k, 400)
            expected = slow(likelihood, shares, weights, *learned)
            assert value == pytest.approx(expected, rel=5e-3, abs=1e-9), (method, name, k)


def test_recall_map_is_exact_on_its_own_distribution():
    """Under theta ~ Beta(a, 1) the mapping returns the true recall at every f(k)."""
    design, a = SamplingModel(10_001, 50), 0.5
    theta = (np.arange(10_000) + 0.5) / 10_000
    distribution = theta ** (a - 1)
    histogram = (distribution / distribution.sum()) @ reference.matrix(design)[:-1]
    counts = RankCounts.from_histogram(np.round(histogram * 10**9).astype(int), design)
    mapping = RecallMap(a=a)
    for k in (1, 5, 20):
        cutoff = round(mapping.mapping(design)[k - 1])
        metrics = parse_all([f"Recall@{cutoff}"])
        value = mapping.evaluate(Observed.prepare(counts), metrics).values[0, 0]
        assert value == pytest.approx((cutoff / 10_001) ** a, rel=0.03)
    uniform = RecallMap(a=1.0).mapping(SamplingModel(1001, 10))
    assert np.allclose(uniform, 1001 * np.arange(1, 12) / 11)


# -- what they are given --------------------------------------------------------------------


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


def test_pools_compare_a_histogram_with_its_expectation():
    counts = RankCounts.from_ranks([1, 1, 3, 2], items=[20, 30, 30, 30], sampled=[4, 4, 4, 2])
    observed = Observed.prepare(counts, grid=reference.dense_grid(30))
    (_, small), (matrix, large) = observed.pools("mes")
    assert small == pytest.approx(np.array([[0, 0.25, 0]]))
    r, ranks = np.arange(1, 6), np.arange(1, 31)
    assert large == pytest.approx(np.array([[0.5, 0, 0.25, 0, 0]]))
    # Beyond the catalogue of 20, a rank acts as its last one, where every draw beats the target.
    by_20 = SamplingModel(20, 4).pmf(r[:, None], np.minimum(ranks, 20))
    by_30 = SamplingModel(30, 4).pmf(r[:, None], ranks)
    assert matrix == pytest.approx((by_20 + 2 * by_30) / 3, abs=1e-12)
    # Ranges that touch, overlap or lie in each other have the probabilities of their ranks.
    low, high = np.array([[1, 1], [1, 3], [3, 3], [4, 5]]).T
    wide, shares = observed.pool(4, low=low, high=high, grid=observed.grid)
    assert shares == pytest.approx(np.array([[0.5, 0, 0.25, 0]]))
    sums = [matrix[a - 1 : b].sum(axis=0) for a, b in zip(low, high, strict=True)]
    assert wide == pytest.approx(np.array(sums), abs=1e-12)


# -- refusals -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("mel", "did you mean mle"),
        ("bv(gama=0.1)", "keys among: gamma"),
        ("bv(gamma=2)", "gamma must be"),
        ("bv(prior=cls)", "prior must be one of uniform, mle, mes"),
        ("mn(prior=uniform)", "prior must be one of mle, mes"),
        ("mle(iterations=many)", "iterations must be"),
        ("mle(iterations=10, tol=1e-6)", "tol must be left out with a number of iterations"),
        ("mle(iterations=converged, tol=0)", "tol must be a finite number greater than 0"),
        ("wmle(c=5)", "c must be left out with weight=tables"),
        ("wmle(weight=ndcg, c=0)", "c must be a finite number greater than 0"),
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


def test_histograms_that_cannot_be_are_refused():
    """Of 3 items, 1000 draws give the target rank 1, about 501, or 1001; rank 2 is out of reach."""
    counts = RankCounts.from_ranges([1, 2, 501], [1, 2, 501], [5, 1, 4], SamplingModel(3, 1000))
    # One histogram that holds it is enough.
    observed = Observed.prepare(counts, histograms=np.array([[5.0, 0.0, 5.0], [5.0, 1.0, 4.0]]))
    with pytest.raises(RankError, match=r"got 2 among 1001 where 1000 of 3 items are sampled"):
        _ = observed.likelihood
    with pytest.raises(InputError, match="got an empty one"):
        Observed.prepare(counts, histograms=np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]))


def test_systems_too_large_are_refused():
    counts = RankCounts.from_ranks([1, 7], items=10**6, sampled=20_000)
    with pytest.raises(DesignError, match="at most 5000"):
        estimators.parse("bv").evaluate(Observed.prepare(counts), parse_all(["Recall@100"]))
    assert MLE().evaluate(Observed.prepare(counts), parse_all(["Recall@100"])).values[0, 0] > 0


def test_only_what_rounding_cannot_explain_is_called_clipped():
    values, before = np.array([[1.0, 1.0, 0.0, 0.4]]), np.array([[1.01, 1 + 1e-9, -0.2, 0.4]])
    assert Fit(values, before, CLOSED_FORM).clipped == (True, False, True, False)

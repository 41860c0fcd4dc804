"""Statistical promises, by simulation. Run with ``make validity``."""

import numpy as np
import pytest

import unsample
from unsample.sampling import Design

pytestmark = pytest.mark.validity

ITEMS, SAMPLED, USERS = 2000, 99, 2000
METRICS = ["Recall@50", "Recall@100", "NDCG@100", "AUC"]


def _population(rng: np.random.Generator) -> np.ndarray:
    return np.ceil(ITEMS * rng.beta(0.6, 2.0, size=USERS)).astype(int).clip(1, ITEMS)


def _simulate(method: str, simulations: int, items: int = ITEMS) -> dict[str, np.ndarray]:
    """Return (value, low, high, truth) by metric, the truth being that of users like these."""
    rng = np.random.default_rng(99)
    limit = np.ceil(ITEMS * rng.beta(0.6, 2.0, size=2_000_000)).astype(int).clip(1, ITEMS)
    truth = unsample.exact(limit, items=ITEMS, metrics=METRICS, resamples=0)
    rows: dict[str, list[tuple[float, float, float, float]]] = {m: [] for m in METRICS}
    for _ in range(simulations):
        ranks = Design(ITEMS, SAMPLED).draw(_population(rng), rng=rng)
        result = unsample.estimate(
            ranks,
            items=items,
            sampled=SAMPLED,
            metrics=METRICS,
            method=method,
            resamples=200,
            rng=rng,
        )
        for m in METRICS:
            rows[m].append((result[m].value, *result[m].interval(0.95), truth[m].value))
    return {m: np.array(values) for m, values in rows.items()}


@pytest.mark.parametrize("method", ["mle", "beta"])
def test_bootstrap_intervals_cover_where_the_sample_resolves(method):
    for metric, rows in _simulate(method, 200).items():
        covered = ((rows[:, 1] <= rows[:, 3]) & (rows[:, 3] <= rows[:, 2])).mean()
        assert covered >= 0.88, (metric, covered)


def test_bias_of_mle_is_small_where_the_sample_resolves():
    for metric, rows in _simulate("mle", 200).items():
        bias = rows[:, 0].mean() - rows[0, 3]
        assert abs(bias) <= 0.03 * rows[0, 3], (metric, bias)


def test_auc_is_unbiased_even_naively():
    rows = _simulate("naive", 200)["AUC"]
    error = rows[:, 0].std() / np.sqrt(len(rows))
    assert abs(rows[:, 0].mean() - rows[0, 3]) <= 4 * error + 1e-3


def test_a_wrong_catalogue_size_fails_these_promises():
    """A planted error must be seen: with N off by a fifth, intervals no longer cover."""
    rows = _simulate("mle", 60, items=int(1.2 * ITEMS))["Recall@100"]
    covered = ((rows[:, 1] <= rows[:, 3]) & (rows[:, 3] <= rows[:, 2])).mean()
    assert covered < 0.5

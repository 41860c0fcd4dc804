"""Statistical promises, by simulation. Run with ``make validity``."""

import itertools
import warnings

import numpy as np
import pytest
from benchmarks import coverage, verdicts

import unsample
from unsample.datasets import load_ranks
from unsample.errors import UnsampleWarning
from unsample.sampling import Design, draw_sampled_ranks

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
            entry = result[m]
            rows[m].append((entry.value, *entry.sampling_interval(0.95), truth[m].value))
    return {m: np.array(values) for m, values in rows.items()}


@pytest.mark.parametrize("method", ["mle", "beta"])
def test_bootstrap_intervals_cover_where_the_sample_resolves(method):
    for metric, rows in _simulate(method, 200).items():
        covered = ((rows[:, 1] <= rows[:, 3]) & (rows[:, 3] <= rows[:, 2])).mean()
        assert covered >= 0.88, (metric, covered)


def test_bias_of_mle_is_small_where_the_sample_resolves():
    for metric, rows in _simulate("mle", 200).items():
        bias = rows[:, 0].mean() - rows[0, 3]
        assert abs(bias) <= 0.05 * rows[0, 3], (metric, bias)


def test_auc_is_unbiased_even_naively():
    rows = _simulate("naive", 200)["AUC"]
    error = rows[:, 0].std() / np.sqrt(len(rows))
    assert abs(rows[:, 0].mean() - rows[0, 3]) <= 4 * error + 1e-3


def test_a_wrong_catalogue_size_fails_these_promises():
    """A planted error must be seen: with N off by a half, intervals no longer cover."""
    rows = _simulate("mle", 60, items=int(1.5 * ITEMS))["Recall@100"]
    covered = ((rows[:, 1] <= rows[:, 3]) & (rows[:, 3] <= rows[:, 2])).mean()
    assert covered < 0.5


@pytest.mark.parametrize(
    ("dataset", "protocol", "recommender", "sampled"),
    list(
        itertools.product(
            ("ml-1m", "citeulike-a"), ("everyday", "paper"), ("ease", "itemknn", "als"), (99, 499)
        )
    ),
)
def test_intervals_cover_the_truth_of_real_recommenders(dataset, protocol, recommender, sampled):
    """Every metric and K, with nothing said about the candidates: at least 93 of 100."""
    for cell in coverage.simulate(dataset, protocol, recommender, sampled, None, 400):
        assert cell.covered >= 0.93, cell
        assert cell.covered_these >= 0.93, cell
        assert cell.covered_bounds >= 0.93, cell


@pytest.mark.parametrize(
    ("dataset", "recommender"),
    list(
        itertools.product(("ml-1m", "citeulike-a", "pinterest-20", "yelp"), ("multivae", "neumf"))
    ),
)
@pytest.mark.parametrize(("protocol", "seen"), [("everyday", "excluded"), ("paper", "kept")])
def test_what_is_truly_said_keeps_the_promise(dataset, recommender, protocol, seen):
    """Rank sets whose intervals were not looked at when shapes were chosen; their slopes were."""
    for cell in coverage.simulate(dataset, protocol, recommender, 99, seen, 50):
        assert cell.covered >= 0.93, cell


def _covered(items_factor: float, shape: unsample.Shape | None) -> float:
    truth = load_ranks("ml-1m", "ease", protocol="paper")
    exact = unsample.exact(truth.ranks, items=truth.items, metrics="Recall@100", resamples=0)
    rng = np.random.default_rng(0)
    found = []
    for _ in range(30):
        drawn = draw_sampled_ranks(truth.ranks, items=truth.items, sampled=499, rng=rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsampleWarning)
            result = unsample.estimate(
                drawn,
                items=int(truth.items[0] * items_factor),
                sampled=499,
                metrics="Recall@100",
                shape=shape,
                resamples=0,
            )
        low, high = result["Recall@100"].interval()
        found.append(low <= exact["Recall@100"].value <= high)
    return float(np.mean(found))


def test_a_wrong_model_fails_the_promise_of_intervals():
    assert _covered(1.0, None) >= 0.93
    assert _covered(1.4, None) < 0.5


@pytest.mark.parametrize("sampled", [99, 499])
@pytest.mark.parametrize("protocol", ["everyday", "paper"])
@pytest.mark.parametrize("dataset", ["ml-1m", "citeulike-a"])
def test_verdicts_are_right(dataset, protocol, sampled):
    """What `compare` calls is right; what chance alone would call is not, where K is blind."""
    for seen in verdicts.SEEN[protocol]:
        tally = verdicts.tally(dataset, protocol, sampled, seen, 5)
        assert tally.wrong <= 0.07 * tally.called, tally
        if (dataset, protocol, sampled) == ("citeulike-a", "paper", 99):
            assert tally.wrong_if_alike > 0.1 * tally.called_if_alike, tally

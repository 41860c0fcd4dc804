"""`auto`: what other data sets know, and the condensed cells that it is fitted on."""

import numpy as np
import pytest

from tests import reference
from unsample import estimators
from unsample._checks import as_index
from unsample.errors import MethodError
from unsample.estimators import Observed
from unsample.estimators._observed import Condensed, _condensed_ranges
from unsample.evidence import RankCounts
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


def _observed(ranks, items, sampled, *, rows=0, seed=0, **options) -> Observed:
    drawn = draw_sampled_ranks(ranks, items=items, sampled=sampled, rng=seed)
    counts = RankCounts.from_ranks(drawn, items=items, sampled=sampled)
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

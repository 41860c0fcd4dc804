"""The default estimator: what it says, what it assumes, and that it beats the paper's where due."""

from dataclasses import replace

import numpy as np
import pytest

from unsample import estimators
from unsample.errors import InputError
from unsample.estimators import CANDIDATES, Observed, _curves
from unsample.estimators._curves import Head, average_curves
from unsample.evidence import RankCounts
from unsample.lab.datasets import load_ranks
from unsample.law import Law, draw_sampled_ranks
from unsample.metrics import parse_all

METRICS = parse_all(["Recall@10", "NDCG@10", "AP@10"])
AUTO = estimators.parse("auto")


def _observed(ranks, items, sampled, *, rows=0, seed=0, **options) -> Observed:
    drawn = draw_sampled_ranks(ranks, items=items, sampled=sampled, rng=seed)
    counts = RankCounts.from_ranks(drawn, items=items, sampled=sampled)
    resampled = counts.resample(rows, rng=seed) if rows else None
    return Observed.prepare(counts, resampled=resampled, cutoffs=[10], **options)


def _errors(method: str, dataset: str, recommender: str, seeds=range(4)) -> np.ndarray:
    bundled = load_ranks(dataset, recommender)
    truth = np.array([m.weights(bundled.ranks, int(bundled.items.max())).mean() for m in METRICS])
    values = [
        estimators.parse(method)
        .evaluate(_observed(bundled.ranks, bundled.items, 99, seed=seed), METRICS)
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
        ("yelp", "ease", 0.8),
    ],
)
def test_errors_are_well_below_those_of_mle(dataset, recommender, share):
    ours, theirs = (_errors(name, dataset, recommender) for name in ("auto", "mle"))
    assert (ours < share * theirs).all()


def test_it_says_what_it_chose_and_what_it_assumed():
    bundled = load_ranks("citeulike-a", "multivae")
    evaluation = AUTO.evaluate(_observed(bundled.ranks, bundled.items, 99), METRICS)
    assert "goes on" in evaluation.explanation
    assert "levels off near rank 26" in evaluation.explanation
    assert "above rank 171" in evaluation.explanation
    assert evaluation.explanation.endswith("seen in training were no candidates")
    smooth = estimators.parse("smooth").evaluate(_observed([1, 5, 9], 100, 9), METRICS)
    assert "mean looseness" in smooth.explanation
    # It has one belief, so there is nothing to weigh.
    assert "above rank" not in smooth.explanation
    assert estimators.parse("mle").evaluate(_observed([1, 5, 9], 100, 9), METRICS).explanation == ""


def test_a_curve_levels_off_at_the_first_rank_if_not_below():
    """Two draws for each three items: a seventh of the blind rank would be none at all."""
    evaluation = AUTO.evaluate(_observed(np.arange(1, 301), 300, 200), METRICS)
    assert "levels off near rank 1 " in evaluation.explanation
    assert "above rank 1," in evaluation.explanation


@pytest.mark.parametrize("looseness", [0.03, 0.3, 10.0])
def test_the_mean_of_one_looseness_is_that(looseness, monkeypatch):
    monkeypatch.setattr(_curves, "_LOOSENESS", (looseness,))
    evaluation = AUTO.evaluate(_observed(np.arange(1, 101), 300, 20), METRICS)
    assert f"(mean looseness {looseness:.2g})" in evaluation.explanation


def _shares_of_beliefs(recommender: str, dataset: str) -> list[int]:
    bundled = load_ranks(dataset, recommender)
    observed = _observed(bundled.ranks, bundled.items, 199)
    words = AUTO.evaluate(observed, METRICS).explanation.replace(",", "").replace(";", "").split()
    return [int(words[at - 1]) for at, word in enumerate(words) if word == "%"]


def test_data_weigh_the_beliefs():
    """On citeulike-a P(R) rises to the first rank, on yelp it does not, and the data can tell."""
    goes_on, levels_off = _shares_of_beliefs("multivae", "citeulike-a")
    assert goes_on > 60 > levels_off
    goes_on, levels_off = _shares_of_beliefs("ease", "yelp")
    assert goes_on < 40 < levels_off


def test_beliefs_are_those_that_the_docstring_gives():
    """Few data: every belief still counts."""
    heads = {"unseen": (0.0, 0.15), "all": (0.0, 0.1, 0.3, 0.6)}
    for candidates, levels in heads.items():
        observed = _observed([1, 3, 20, 60, 200], 400, 30, candidates=candidates)
        doubt = 0.5 if candidates == "all" else 0.0
        expected = average_curves(observed, [Head(level) for level in levels], doubt=doubt)
        assert AUTO.solve(observed).weights == pytest.approx(expected.weights, rel=1e-9)


def test_kept_items_make_the_top_smaller():
    """Where seen items fill the top, less is expected there from the same sampled ranks."""
    bundled = load_ranks("citeulike-a", "multivae", candidates="all")
    kept, excluded = (
        AUTO.evaluate(_observed(bundled.ranks, bundled.items, 99, candidates=candidates), METRICS)
        for candidates in ("all", "unseen")
    )
    assert (kept.values < excluded.values).all()
    assert kept.explanation.endswith("candidates too")
    truth = [m.weights(bundled.ranks, int(bundled.items.max())).mean() for m in METRICS]
    assert (np.abs(kept.values[0] - truth) < np.abs(excluded.values[0] - truth)).all()


def test_what_became_of_seen_items_is_checked():
    assert CANDIDATES == ("unseen", "all")
    counts = RankCounts.from_ranks([1, 2], items=10, sampled=3)
    with pytest.raises(InputError, match=r"candidates must be one of unseen, all"):
        Observed.prepare(counts, candidates="exclude")
    assert Observed.prepare(counts, candidates="all").unknown_part().candidates == "all"


@pytest.mark.parametrize("method", ["mle", "mes", "bv", "smooth"])
def test_only_auto_asks_what_became_of_seen_items(method):
    """The others estimate P(R) among the candidates there were, whatever these were."""
    ranks = np.arange(1, 200)
    values = [
        estimators.parse(method)
        .evaluate(_observed(ranks, 1000, 50, candidates=candidates), METRICS)
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


def test_many_samples_leave_little_to_assume():
    """With n = 1000 of 2000 items both beliefs, and both kinds of candidates, say the same."""
    rng = np.random.default_rng(1)
    ranks = np.ceil(2000 * rng.beta(0.5, 2.0, size=5000)).astype(int).clip(1)
    truth = (ranks <= 50).mean()
    metrics = parse_all(["Recall@50"])
    for candidates in CANDIDATES:
        observed = _observed(ranks, 2000, 1000, candidates=candidates)
        assert AUTO.evaluate(observed, metrics).values[0, 0] == pytest.approx(truth, rel=0.03)

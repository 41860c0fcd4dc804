"""The one posterior: against brute force, and against itself."""

from __future__ import annotations

import pickle
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from unsample.evidence import ItemCounts, ModelCounts, RankCounts, Targets
from unsample.lab import load_ranks
from unsample.law import Law as Design
from unsample.law import bin_weights, draw_sampled_ranks
from unsample.metrics import parse
from unsample.prior import Numbers, Posterior, shipped
from unsample.prior._shapes import shapes_on

ITEMS, SAMPLED = 2000, 99


@cache
def real(model: str = "ease", seed: int = 0) -> RankCounts:
    full = load_ranks("ml-1m", model, candidates="unseen")
    items = int(np.max(full.items))
    ranks = draw_sampled_ranks(full.ranks, items=items, sampled=SAMPLED, rng=seed)
    return RankCounts.from_ranks(ranks, items=items, sampled=SAMPLED)


@cache
def models() -> ModelCounts:
    names = ("ease", "als", "itemknn", "neumf")
    drawn = {}
    for name in names:
        full = load_ranks("ml-1m", name, candidates="unseen")
        items = int(np.max(full.items))
        ranks = draw_sampled_ranks(full.ranks, items=items, sampled=SAMPLED, rng=1)
        drawn[name] = Targets(ranks, items=items, sampled=SAMPLED)
    return ModelCounts.of_targets(drawn)


def zipf(size: int, rng: np.random.Generator) -> np.ndarray:
    weights = 1.0 / (np.arange(1, ITEMS + 1) + 5.0)
    return rng.choice(np.arange(1, ITEMS + 1), size=size, p=weights / weights.sum())


def sample(ranks: np.ndarray, seed: int) -> np.ndarray:
    return draw_sampled_ranks(ranks, items=ITEMS, sampled=SAMPLED, rng=seed)


# -- against brute force --------------------------------------------------------------------------


def test_the_posterior_is_that_of_weighted_curves() -> None:
    """Curves drawn from the prior, weighted by their likelihood, have these moments."""
    rng = np.random.default_rng(3)
    ranks = sample(zipf(80, rng), 3)
    counts = RankCounts.from_ranks(ranks, items=ITEMS, sampled=SAMPLED)
    prior = shipped().calibrated(dict.fromkeys(shipped().learned, (1.0, 1.0)))
    found = Posterior.of(counts, prior, kind="unseen")
    law = found.law("Recall@50", population=False)
    learned, stratum = prior.learned["unseen"], found.seen[0].strata[0]
    drawn = learned.mean + rng.standard_normal((60_000, len(learned.mean))) @ learned.root
    exponent = drawn @ shapes_on(stratum.grid).T + np.log(stratum.grid.width)
    mass = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    mass /= mass.sum(axis=1, keepdims=True)
    mixture = mass @ stratum.likelihood.T
    fit = 80 * (np.log(mixture) @ stratum.shares)
    weight = np.exp(fit - fit.max())
    weight /= weight.sum()
    assert 1.0 / (weight**2).sum() > 200
    metric = bin_weights(parse("Recall@50"), stratum.grid, ITEMS)
    given = mass * ((stratum.shares / mixture) @ stratum.likelihood)
    logs = np.log(given @ metric)
    mean = float(weight @ logs)
    variance = float(weight @ (logs - mean) ** 2)
    open_variance = float(law.users[0, 0] + law.prior[0, 0]) - variance
    assert law.mean[0] == pytest.approx(mean, abs=0.3 * np.sqrt(variance))
    # What is left is what the cells leave open of these users' own ranks.
    cells = stratum.likelihood * (weight @ mass)
    first = cells @ metric / cells.sum(axis=1)
    second = cells @ metric**2 / cells.sum(axis=1)
    expected = float(stratum.shares @ (second - first**2)) / 80 / np.exp(2 * mean)
    assert open_variance == pytest.approx(expected, abs=0.35 * (variance + expected))


def test_where_the_sample_sees_the_interval_is_that_of_a_mean() -> None:
    counts = real()
    law = Posterior.of(counts, shipped(), kind="unseen").law("Recall@1000")
    low, high = law.interval()
    share = law.value()
    mean = 1.96 * np.sqrt((1.0 - share) / share / counts.total)
    assert (high - low) / 2 / share < 1.25 * mean
    assert (high - low) / 2 / share > 0.7 * mean


def test_shared_items_vary_as_the_jackknife_says() -> None:
    """One order of all items, and draws that all targets share."""
    rng = np.random.default_rng(5)
    ranks = zipf(600, rng)
    logs, said = [], []
    for _ in range(60):
        drawn = np.sort(rng.choice(ITEMS - 1, 60, replace=False)) + 1
        beats = drawn[None, :] < ranks[:, None]
        counts = RankCounts.from_ranks(beats.sum(axis=1) + 1, items=ITEMS, sampled=60)
        items = ItemCounts.from_outcomes(beats, items=drawn)
        shared = RankCounts(**{**vars(counts), "shared": items})
        law = Posterior.of(shared, shipped(), kind="unseen").law("Recall@200", population=False)
        logs.append(law.mean[0])
        said.append(law.users[0, 0])
    # The targets are the same each time: all that varies is the draw.
    assert 0.4 < np.mean(said) / np.var(logs) < 3.0
    unknown = RankCounts(**{**vars(counts), "shared": ItemCounts.without_outcomes(60)})
    assert Posterior.of(unknown, shipped(), kind="unseen").sources == ("bounds",)


def test_targets_of_one_user_count_as_they_depend() -> None:
    ranks = sample(zipf(400, np.random.default_rng(6)), 6)
    twice, users = np.repeat(ranks, 2), np.repeat(np.arange(400), 2)
    design = {"items": ITEMS, "sampled": SAMPLED}
    laws = [
        Posterior.of(each, shipped(), kind="unseen").law("Recall@200")
        for each in (
            RankCounts.from_ranks(ranks, **design),
            RankCounts.from_ranks(twice, **design, users=users, filtered=True),
            RankCounts.from_ranks(twice, **design),
        )
    ]
    one, same, apart = (law.users[0, 0] for law in laws)
    assert same == pytest.approx(one, rel=0.05)
    assert apart < 0.7 * one


# -- against itself -------------------------------------------------------------------------------


def test_a_model_among_others_has_its_own_interval() -> None:
    together = Posterior.of(models(), shipped(), kind="unseen")
    for name, counts in models().items():
        alone = Posterior.of(counts, shipped(), kind="unseen")
        for population in (True, False):
            law = alone.law("NDCG@10", population=population)
            both = together.law("NDCG@10", population=population)
            assert both.value(name) == law.value()
            assert both.interval(name, 0.9) == law.interval(level=0.9)


def test_intervals_chances_and_the_best_agree() -> None:
    law = Posterior.of(models(), shipped(), kind="unseen").law("NDCG@10")
    best = law.best()
    assert sum(best.values()) == pytest.approx(1.0, abs=0.01)
    for a, b in combinations(law.names, 2):
        difference = law.difference(a, b)
        chance = law.chance(a, b)
        assert chance + law.chance(b, a) == pytest.approx(1.0, abs=1e-9)
        assert best[a] <= chance
        assert best[b] <= 1.0 - chance + 1e-9
        assert difference.value == pytest.approx(law.value(a) - law.value(b))
        for level in (0.2, 0.5, 0.8, 0.9, 0.95, 0.99):
            low, high = difference.interval(level)
            assert low < high
            excludes = low > 0 or high < 0
            assert excludes == (max(chance, 1.0 - chance) > (1.0 + level) / 2.0)


def test_a_model_ties_with_itself() -> None:
    ease = Targets(np.repeat([1, 4, 30], 500), items=ITEMS, sampled=SAMPLED)
    law = Posterior.of(ModelCounts.of_targets({"a": ease, "b": ease}), shipped()).law("NDCG@10")
    assert law.chance("a", "b") == pytest.approx(0.5)
    assert law.best()["a"] == pytest.approx(0.5)
    low, high = law.difference("a", "b").interval()
    assert low < 0 < high


def test_a_record_of_arrays_answers_anything() -> None:
    found = Posterior.of(real(), shipped(), candidates="all")
    again = pickle.loads(pickle.dumps(found))
    assert set(found.kinds) == {"all", "repeats"}
    for name in ("Recall@37", "MRR", "NDCG@10", "AP@3"):
        law = found.law(name)
        assert again.law(name).interval() == law.interval()
        ends = np.array([law.interval(level=level) for level in (0.5, 0.8, 0.95, 0.99)])
        assert (np.diff(ends[:, 0]) < 0).all()
        assert ends[-1, 0] < law.value() < ends[-1, 1] <= 1.0
    assert found.curve().expect("NDCG@10") == pytest.approx(found.law("NDCG@10").value(), rel=0.05)


def test_exact_ranks_leave_nothing_open() -> None:
    ranks = zipf(500, np.random.default_rng(9))
    counts = RankCounts.from_ranks(ranks, items=ITEMS, sampled=ITEMS - 1, replacement=False)
    found = Posterior.of(counts, shipped(), kind="unseen")
    low, high = found.law("Recall@100", population=False).interval()
    share = float((ranks <= 100).mean())
    assert low == pytest.approx(share, rel=2e-3)
    assert high == pytest.approx(share, rel=2e-3)
    low, high = found.law("Recall@100").interval()
    assert (high - low) / 2 == pytest.approx(1.96 * np.sqrt(share * (1 - share) / 500), rel=0.1)


def test_catalogues_of_different_size_share_their_curve() -> None:
    small = RankCounts.from_ranks(
        sample(zipf(300, np.random.default_rng(10)), 1), items=ITEMS, sampled=SAMPLED
    )
    found = Posterior.of(real() + small, shipped(), kind="unseen")
    assert len(found.seen[0].strata) == 2
    parts = [
        Posterior.of(each, shipped(), kind="unseen").law("NDCG@10").value()
        for each in (real(), small)
    ]
    mean = np.average(parts, weights=[real().total, small.total])
    assert found.law("NDCG@10").value() == pytest.approx(mean, rel=0.02)


# -- does it fit ----------------------------------------------------------------------------------


def test_data_unlike_the_bank_get_bounds() -> None:
    full = load_ranks("ml-1m", "ease", candidates="unseen")
    items = int(np.max(full.items))
    ranks = full.ranks.astype(np.int64).copy()
    ranks[: int(0.4 * len(ranks))] = 61
    drawn = draw_sampled_ranks(ranks, items=items, sampled=SAMPLED, rng=0)
    strange = RankCounts.from_ranks(drawn, items=items, sampled=SAMPLED)
    few = RankCounts.from_ranks(drawn[:40], items=items, sampled=SAMPLED)
    sources = [
        Posterior.of(each, shipped(), candidates="unseen").law("NDCG@10").source()
        for each in (real(), strange, few)
    ]
    assert sources == ["prior", "bounds", "bounds"]


# -- printed numbers ------------------------------------------------------------------------------


def test_printed_numbers_are_evidence() -> None:
    full = load_ranks("ml-1m", "ease", candidates="unseen")
    truth = float(parse("NDCG@10").weights(full.ranks.astype(np.int64), 3706).mean())
    counts = real()
    ranks = np.repeat(counts.low, counts.count)
    design = Design(int(counts.items[0]), SAMPLED, True)
    widths = []
    for names in (["HR@10"], ["HR@10", "NDCG@10"], ["HR@1", "HR@5", "HR@10", "NDCG@10", "MRR"]):
        means = [float(parse(name).weights(ranks, SAMPLED + 1).mean()) for name in names]
        printed = [
            (parse(name), mean - 5e-5, mean + 5e-5) for name, mean in zip(names, means, strict=True)
        ]
        numbers = Numbers.of(design, counts.total, printed)
        law = Posterior.of_numbers(numbers, shipped(), candidates="unseen").law("NDCG@10")
        low, high = law.interval()
        assert low < truth < high
        widths.append(high / low)
    assert widths[0] > widths[1] > widths[2]
    low, high = Posterior.of(counts, shipped(), candidates="unseen").law("NDCG@10").interval()
    assert widths[2] > 0.95 * high / low

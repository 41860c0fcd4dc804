"""Ways in which intervals went wrong once: spikes, heaps, needles, refutation, sizes, few users."""

import warnings

import numpy as np
import pytest

import unsample
from unsample import metrics
from unsample.confidence import SHAPES, Certainty
from unsample.errors import BiasedMethodWarning, UnsampleWarning
from unsample.evidence import RankCounts
from unsample.law import draw_sampled_ranks

ITEMS, SAMPLED = 10_000, 99


def _zipf(items, exponent):
    mass = np.arange(1, items + 1.0) ** -exponent
    return mass / mass.sum()


def _counts(mass, targets, seed, sampled=SAMPLED):
    rng = np.random.default_rng(seed)
    full = 1 + rng.choice(len(mass), size=targets, p=mass)
    ranks = draw_sampled_ranks(full, items=len(mass), sampled=sampled, rng=rng)
    return RankCounts.from_ranks(ranks, items=len(mass), sampled=sampled)


def _truth(name, mass):
    return float(mass @ metrics.parse(name).weights(np.arange(1, len(mass) + 1), len(mass)))


def _covers(certainty, name, mass):
    low, high = certainty.interval(metrics.parse(name))
    return low <= _truth(name, mass) <= high


@pytest.mark.parametrize("shape", ["power", "depleted"])
@pytest.mark.parametrize("spike", [0.1, 0.5])
def test_a_spike_at_rank_1_is_covered(spike, shape):
    mass = (1 - spike) * _zipf(ITEMS, 0.6)
    mass[0] += spike
    for seed in range(10):
        certainty = Certainty.of(_counts(mass, 5000, seed), [1, 10], SHAPES[shape])
        assert _covers(certainty, "NDCG@10", mass)
        assert _covers(certainty, "Recall@1", mass)


@pytest.mark.filterwarnings("ignore:the models' users do not match")
def test_a_spike_wins_no_verdict_against_what_is_better():
    """The model with the spike is the better one at NDCG@10; the data cannot tell."""
    spiked = 0.5 * _zipf(ITEMS, 0.6)
    spiked[0] += 0.5
    zipf = _zipf(ITEMS, 1.15)
    assert _truth("NDCG@10", spiked) > _truth("NDCG@10", zipf)
    for seed in range(5):
        models = {"spiked": _counts(spiked, 5000, seed), "zipf": _counts(zipf, 5000, 100 + seed)}
        found = unsample.compare(models, metrics="NDCG@10")
        assert [pair.winner for pair in found.differences] in ([None], ["spiked"])


@pytest.mark.parametrize("place", [0.5, 0.9, 1.0])
def test_heaps_far_down_say_nothing_of_the_top(place):
    mass = 0.6 * _zipf(ITEMS, 0.9)
    mass[int(place * (ITEMS - 1))] += 0.4
    counts = _counts(mass, 5000, 1)
    for shape in ("power", "depleted"):
        certainty = Certainty.of(counts, [50], SHAPES[shape])
        assert certainty.fits()
        assert certainty.doubt == 0.0
        low, high = certainty.interval(metrics.parse("Recall@50"))
        assert low <= _truth("Recall@50", mass) <= high
        assert high - low < 0.6 * (high + low)


@pytest.mark.parametrize("rank", [100, 101])
def test_bounds_allow_for_a_needle_beside_k(rank):
    mass = np.zeros(3706)
    mass[rank - 1] = 1.0
    counts = _counts(mass, 5000, 0)
    certainty = Certainty.of(counts, [100], SHAPES["power"])
    low, high = certainty.bounds(metrics.parse("Recall@100"))
    assert low <= float(rank <= 100) <= high
    assert certainty.fits(SHAPES["none"])


def test_near_refutation_intervals_go_over_to_the_bounds():
    """On the way from a smooth P(R) to a needle the interval must not close before it opens."""
    metric = metrics.parse("Recall@50")
    smooth, needle = _zipf(3706, 0.8), np.zeros(3706)
    needle[100] = 1.0
    seen = []
    for share in np.linspace(0.0, 1.0, 41):
        certainty = Certainty.of(
            _counts((1 - share) * smooth + share * needle, 5000, 0), [50], SHAPES["power"]
        )
        low, high = certainty.interval(metric)
        least, most = certainty.bounds(metric)
        seen.append(certainty.doubt if certainty.fits() else 1.0)
        # At full doubt the ends are the bounds, and in between as far on the way to them.
        assert high - low >= (seen[-1] - 1e-6) * (most - least)
        mass = (1 - share) * smooth + share * needle
        assert low <= _truth("Recall@50", mass) <= high
    assert seen[0] == 0.0
    assert seen[-1] == 1.0
    assert any(0.0 < doubt < 1.0 for doubt in seen)


def test_no_sample_sees_all_that_breaks_an_assumption():
    """As docs/uncertainty.md has it: 30 % of all targets at rank 61, and nobody can tell."""
    mass = 0.7 * _zipf(3706, 0.9)
    mass[60] += 0.3
    metric, missed, warned = metrics.parse("Recall@50"), 0, 0
    for seed in range(10):
        certainty = Certainty.of(_counts(mass, 2000, seed), [50], SHAPES["power"])
        missed += not _covers(certainty, "Recall@50", mass)
        warned += certainty.doubt > 0.0
        low, high = certainty.bounds(metric)
        assert low <= _truth("Recall@50", mass) <= high
    assert missed >= 8
    assert warned <= 2


def test_an_interval_is_no_narrower_than_that_of_known_ranks():
    mass = _zipf(200, 1.4)
    for seed in range(5):
        counts = _counts(mass, 400, seed, sampled=190)
        certainty = Certainty.of(counts, [1, 5], SHAPES["power"])
        for name in ("Recall@1", "Recall@5"):
            low, high = certainty.interval(metrics.parse(name))
            hits = (low + high) / 2
            assert high - low >= 0.9 * 3.92 * np.sqrt(hits * (1 - hits) / 400)


def test_an_estimate_outside_its_interval_warns_and_widens_it():
    mass = 0.5 * _zipf(3706, 0.6)
    mass[0] += 0.5
    counts = _counts(mass, 20_000, 0)
    with pytest.warns(BiasedMethodWarning, match=r"beta gives.* outside the interval .* widened"):
        result = unsample.estimate(counts, metrics="Recall@10", method="beta")
    entry = result["Recall@10"]
    low, high = entry.interval(kind="guaranteed")
    least, most = entry.bounds()
    assert entry.widened
    assert least < low == entry.value < high < most
    assert entry.raw_interval()[1] == high


# -- catalogues of very different sizes -----------------------------------------------------------


@pytest.mark.filterwarnings("ignore::unsample.errors.RefutedWarning")
def test_widening_ends_at_the_bounds():
    mass = np.zeros(3706)
    mass[[1, 1500]] = 0.5
    counts = _counts(mass, 20_000, 0)
    with pytest.warns(BiasedMethodWarning, match="outside the interval"):
        result = unsample.estimate(counts, metrics="Recall@50", method="beta")
    entry = result["Recall@50"]
    assert entry.value < entry.bounds()[0] == entry.interval(kind="guaranteed")[0]


def _by_market(targets, seed, sizes=(500, 5000)):
    """Ranks that go with the size of the catalogue: R/N has one law, P(R) has not."""
    rng = np.random.default_rng(seed)
    items = rng.choice(sizes, size=targets)
    full = np.ceil(items * rng.beta(0.3, 3.0, size=targets)).astype(int).clip(1)
    ranks = draw_sampled_ranks(full, items=items, sampled=SAMPLED, rng=rng)
    return ranks, items, full


@pytest.mark.parametrize("sizes", [(500, 5000), (1000, 5000), (300, 1000, 4000, 20_000)])
def test_ranks_that_go_with_the_size_of_the_catalogue_are_covered(sizes):
    _, items, full = _by_market(200_000, 99, sizes)
    for seed in range(5):
        ranks, items, _ = _by_market(4000, seed, sizes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsampleWarning)
            result = unsample.estimate(
                ranks, items=items, sampled=SAMPLED, metrics=["Recall@10", "Recall@50"]
            )
        for k in (10, 50):
            truth, entry = float((full <= k).mean()), result[f"Recall@{k}"]
            assert entry.interval()[0] <= truth <= entry.interval()[1]
            assert entry.bounds()[0] <= truth <= entry.bounds()[1]
        assert result["Recall@50"].value == pytest.approx(float((full <= 50).mean()), rel=0.1)
    assert f"in each of {len(sizes)} ranges of catalogue sizes" in result.assumes
    assert result["Recall@50"].interval()[1] < 1.5 * result["Recall@50"].value


def test_ranges_of_sizes_weigh_as_their_targets_do():
    """Where the catalogues alone decide, the whole is the mean of the parts."""
    ranks, items, _ = _by_market(4000, 0)
    both, small, large = (
        unsample.estimate(ranks[chosen], items=items[chosen], sampled=SAMPLED, metrics="Recall@50")[
            "Recall@50"
        ]
        for chosen in (items > 0, items == 500, items == 5000)
    )
    share = float((items == 500).mean())
    assert both.value == pytest.approx(share * small.value + (1 - share) * large.value, rel=1e-3)
    for end in (0, 1):
        mixed = share * small.interval()[end] + (1 - share) * large.interval()[end]
        # Errors of the parts do not add up, they cancel in part.
        assert abs(both.interval()[end] - both.value) <= abs(mixed - both.value) + 0.01


def test_bounds_allow_for_any_dependence_on_sizes_of_one_range():
    """Within a range, too: all good ranks in the smaller catalogues."""
    rng = np.random.default_rng(0)
    items = rng.choice([1000, 1240], size=4000)
    full = np.where(items == 1000, 40, 1000)
    ranks = draw_sampled_ranks(full, items=items, sampled=SAMPLED, rng=rng)
    certainty = Certainty.of(
        RankCounts.from_ranks(ranks, items=items, sampled=SAMPLED), [40, 45], SHAPES["none"]
    )
    assert len(certainty.strata) == 1
    assert certainty.fits()
    for k in (39, 40, 45):
        low, high = certainty.bounds(metrics.parse(f"Recall@{k}"))
        assert low <= float((full <= k).mean()) <= high


# -- full ranks that are nearly all alike ----------------------------------------------------------


@pytest.mark.parametrize("others", [0, 2])
def test_users_that_are_nearly_all_alike_are_not_taken_for_all(others):
    """33 users at rank 6, perhaps two elsewhere: a tenth of all users could have another value."""
    ranks = [6] * 33 + [1, 9][:others]
    low, high = unsample.exact(ranks, items=9, metrics="NDCG@8")["NDCG@8"].interval()
    usual = 1 / np.log2(7)
    assert 0.75 * usual < low < 0.95 * usual
    assert usual + 0.05 < high < usual + 0.25

"""The contract of the cloud: what is read from one set of curves cannot contradict itself."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

import unsample
from unsample.counts import RankCounts
from unsample.errors import InputError, MethodError, MetricError
from unsample.lab import load_ranks
from unsample.likelihood import CondensedCells
from unsample.metrics import Metric, parse, parse_all
from unsample.posterior import Cloud, FixedNumbers, shipped
from unsample.posterior._basis import SIZE
from unsample.posterior._cloud import DrawnCurves, moved_curves, turned
from unsample.posterior._components import components_of
from unsample.posterior._modes import MAX_INFORMATION, fits_of, moved_mode, strata_to_fit
from unsample.posterior._moved_shares import MovedShares, gamma_variables
from unsample.sampling import SamplingModel, bin_weights, draw_sampled_ranks
from unsample.uncertainty import quantile

pytestmark = pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")

ITEMS, SAMPLED = 3700, 99
LEVELS = (0.5, 0.9, 0.95, 0.99)
#: Each is at most the one after it, whatever P(R) is.
ASCENDING = (
    ("Recall@1", "NDCG@5", "NDCG@10", "Recall@10", "Recall@50", "Recall@3700"),
    ("Recall@1", "AP@5", "NDCG@5", "Recall@5"),
    ("Recall@1", "MRR@10", "MRR"),
)


@cache
def full_ranks() -> np.ndarray:
    """Return the ranks of a recommender among all items that users had not seen."""
    return load_ranks("ml-1m", "ease", candidates="unseen").ranks.clip(1, ITEMS).astype(np.int64)


def counts_of(full: np.ndarray, *, items: int = ITEMS, sampled: int = SAMPLED, rng: int = 0):
    drawn = draw_sampled_ranks(full, items=items, sampled=sampled, rng=rng)
    return RankCounts.from_ranks(drawn, items=items, sampled=sampled)


@cache
def cloud(users: int = 3000, seed: int = 0, protocol: str = "unseen") -> Cloud:
    counts = counts_of(full_ranks()[:users])
    return Cloud.of(counts, shipped(), protocol=protocol, numbers=FixedNumbers(seed=seed))


def half_width(found: Cloud, metric: str, *, population: bool = True) -> float:
    return float(np.ptp(found.metric(metric, population=population).interval())) / 2.0


# -- nothing contradicts anything else ------------------------------------------------------------


@pytest.mark.parametrize("population", [True, False])
@pytest.mark.parametrize("protocol", ["unseen", "all", "repeats", "graph"])
def test_metrics_are_in_order_in_every_draw_and_so_are_their_intervals(protocol, population):
    found = cloud(protocol=protocol)
    for names in ASCENDING:
        draws = [found.draws(parse(each), population=population) for each in names]
        for less, more in pairwise(draws):
            assert (less <= more + 1e-12).all()
        numbers = [found.metric(each, population=population) for each in names]
        for less, more in pairwise(numbers):
            assert less.value <= more.value + 1e-12
            for level in LEVELS:
                low, high = less.interval(level)
                more_low, more_high = more.interval(level)
                assert low <= more_low + 1e-12
                # Ends beyond the draws are extrapolated, and differ in their last digits.
                assert high <= more_high + 1e-3 * (high - low)


def test_recall_grows_with_every_k_up_to_one():
    found = cloud()
    draws = np.stack([found.draws(parse(f"Recall@{k}")) for k in (*range(1, 101), 500, ITEMS)])
    assert (np.diff(draws, axis=0) >= -1e-12).all()
    assert (draws >= 0.0).all()
    assert draws[-1] == pytest.approx(1.0)


def test_every_call_gives_the_same_numbers():
    one, other = cloud(), Cloud.of(counts_of(full_ranks()[:3000]), shipped(), protocol="unseen")
    for population in (True, False):
        for name in ("NDCG@10", "AUC@50"):
            first = one.draws(parse(name), population=population)
            assert (first == other.draws(parse(name), population=population)).all()
            assert (first == one.draws(parse(name), population=population)).all()


def test_curves_are_distributions_and_go_on_where_the_sample_shows_them():
    found = cloud()
    drawn = DrawnCurves.of(found.fitted, FixedNumbers())
    (curves,), (masses,) = drawn.curves, found.masses
    (stratum,) = found.fitted.cells.strata
    for each in (curves, masses):
        assert (each >= 0.0).all()
        assert each.sum(axis=1) == pytest.approx(1.0)
    # Given its curve, each draw has its own shares of the cells.
    assert drawn.shares.sum(axis=1) == pytest.approx(1.0)
    given = curves * stratum.likelihood[3]
    expected = drawn.shares[:, 3:4] * given / given.sum(axis=1, keepdims=True)
    others = curves * ((drawn.shares / (curves @ stratum.likelihood.T)) @ stratum.likelihood)
    assert masses == pytest.approx(others)
    assert (masses >= expected - 1e-12).all()


def test_a_metric_of_ones_own_its_quantiles_and_its_mean():
    found = cloud()
    grid, masses = found.on_one_grid()
    weights = bin_weights(parse("NDCG@10"), grid, ITEMS)
    own = found.expect(lambda ranks: np.where(ranks <= 10, 1.0 / np.log2(1.0 + ranks), 0.0))
    assert own.interval() == pytest.approx(found.metric("NDCG@10").interval(), rel=1e-9)
    mean, (low, middle, high) = found.mean(), found.quantiles([0.05, 0.5, 0.95])
    assert mean.mass.sum() == pytest.approx(1.0)
    assert mean.mass @ weights == pytest.approx(found.draws(parse("NDCG@10")).mean())
    assert (low.mass <= middle.mass).all()
    assert (middle.mass <= high.mass).all()
    assert low.mass == pytest.approx(np.quantile(masses, 0.05, axis=0))
    for wrong in (lambda _: 1.0, lambda ranks: ranks * np.nan):
        with pytest.raises(InputError, match="one finite number for each rank"):
            found.expect(wrong)
    with pytest.raises(InputError, match="probabilities"):
        found.quantiles([1.5])


def test_a_result_has_its_curves_and_any_other_metric():
    ranks = draw_sampled_ranks(full_ranks()[:500], items=ITEMS, sampled=SAMPLED, rng=1)
    design = {"items": ITEMS, "sampled": SAMPLED, "protocol": "unseen"}
    wide = [f"Recall@{k}" for k in range(1, 101)]
    result = unsample.estimate(ranks, **design, metrics=wide)
    alone = unsample.estimate(ranks, **design, metrics="Recall@37")
    assert result["Recall@37"].interval() == alone["Recall@37"].interval()
    assert alone.metric("Recall@50").interval() == result["Recall@50"].interval()
    assert result.curves.metric("Recall@37").value == alone["Recall@37"].value
    ends = np.array([each.interval() for each in result.values()])
    assert (np.diff(ends, axis=0) >= -1e-12).all()
    # Draws are in the same order for all metrics, so that any function of several is read off.
    draws = [result[each].draws for each in ("Recall@1", "Recall@10")]
    assert (draws[0] <= draws[1]).all()
    exact = unsample.exact([1, 2, 9], items=10)
    with pytest.raises(MethodError, match="curves must come from sampled ranks"):
        _ = exact.curves
    with pytest.raises(MetricError, match="must come from the prior to have draws"):
        _ = exact.entries[0].draws


# -- these users ----------------------------------------------------------------------------------


def test_draws_of_these_users_are_steps_and_may_be_zero():
    found = cloud(users=60)
    draws = [found.draws(parse(f"Recall@{k}"), population=False) for k in (1, 2, 5, 10, 50)]
    for each in draws:
        assert each * 60 == pytest.approx(np.rint(each * 60))
    assert (draws[0] == 0.0).any()
    assert (np.diff(draws, axis=0) >= 0.0).all()
    assert found.metric("Recall@1", population=False).interval()[0] == 0.0
    # What is placed does not depend on which metric is asked.
    again = found.draws(parse("Recall@5"), population=False)
    assert (again == draws[2]).all()


def test_these_users_and_users_like_these_have_about_the_same_value():
    found = cloud(users=1000)
    for name in ("Recall@10", "NDCG@10", "Recall@50"):
        here, like = (found.metric(name, population=each) for each in (False, True))
        assert here.value == pytest.approx(like.value, rel=0.1)


def test_a_metric_that_the_sample_shows_is_known_of_these_users():
    """Of K >= N the sample shows everything; at a fifth of the catalogue nearly so."""
    found = cloud()
    assert found.metric(f"Recall@{ITEMS}", population=False).interval() == (1.0, 1.0)
    share = (full_ranks()[:3000] <= ITEMS // 5).mean()
    low, high = found.metric(f"Recall@{ITEMS // 5}", population=False).interval()
    assert low <= share <= high
    assert high - low < 0.5 * 2 * 1.96 * np.sqrt(share * (1 - share) / 3000)


# -- what the sample shows, and what it does not ---------------------------------------------------


@pytest.mark.parametrize("k", [100, 370, 1000])
def test_where_a_sample_shows_a_metric_the_interval_is_that_of_a_mean(k):
    full = full_ranks()[:3000]
    found = cloud()
    share = float((full <= k).mean())
    error = np.sqrt(share * (1 - share) / len(full))
    assert found.metric(f"Recall@{k}").value == pytest.approx(share, abs=3.5 * error)
    # The draw of items adds to the error of users the less, the larger K.
    room = {100: 2.0, 370: 1.35, 1000: 1.2}[k]
    assert 0.8 * quantile(0.95) * error < half_width(found, f"Recall@{k}")
    assert half_width(found, f"Recall@{k}") < room * quantile(0.95) * error


def test_the_bottom_does_not_speak_about_the_top():
    """Ranks moved within the last four fifths of the sample leave the top where it was."""
    drawn = draw_sampled_ranks(full_ranks()[:3000], items=ITEMS, sampled=SAMPLED, rng=0)
    deep = drawn > 0.2 * (SAMPLED + 1)
    assert deep.sum() > 100
    moved = drawn.copy()
    moved[deep] = np.random.default_rng(1).integers(60, SAMPLED + 2, int(deep.sum()))
    last = np.where(deep, SAMPLED + 1, drawn)
    one = cloud()
    for ranks in (moved, last):
        counts = RankCounts.from_ranks(ranks, items=ITEMS, sampled=SAMPLED)
        other = Cloud.of(counts, shipped(), protocol="unseen")
        for name in ("Recall@1", "NDCG@10"):
            half = half_width(one, name)
            ends = np.array([each.metric(name).interval() for each in (one, other)])
            assert np.abs(np.diff(ends, axis=0)).max() < 0.03 * half
        # What is deep is seen at once where it is asked for.
        deep_recall = [each.metric("Recall@2000").value for each in (one, other)]
        assert deep_recall[0] - deep_recall[1] > 0.02


def test_users_beyond_a_number_make_no_curve_surer():
    """M users count as M K / (M + K)."""
    drawn = draw_sampled_ranks(full_ranks(), items=ITEMS, sampled=SAMPLED, rng=0)
    for factor in (1, 1000):
        counts = RankCounts.from_ranks(
            drawn, items=ITEMS, sampled=SAMPLED, count=np.full(len(drawn), factor)
        )
        users = factor * len(drawn)
        (stratum,) = strata_to_fit(CondensedCells.of(counts))
        expected = users * MAX_INFORMATION / (users + MAX_INFORMATION)
        assert stratum.targets == pytest.approx(expected, rel=1e-9)


def test_more_users_never_widen():
    full = full_ranks()
    sizes = [full[:750], full[:1500], full[:3000], full, np.tile(full, 2), np.tile(full, 16)]
    found = [Cloud.of(counts_of(each), shipped(), protocol="unseen") for each in sizes]
    widths = [half_width(each, "NDCG@10") for each in found]
    assert (np.diff(widths) < 0.0).all()


@pytest.mark.parametrize("name", ["Recall@1", "NDCG@10", "Recall@10", "Recall@100"])
def test_another_set_of_random_numbers_moves_the_ends_little(name):
    ends = np.array([cloud(seed=seed).metric(name).interval() for seed in range(4)])
    half = np.ptp(ends, axis=1).mean() / 2.0
    assert np.abs(ends - ends.mean(axis=0)).max() < 0.06 * half


def test_few_users_have_wide_intervals_and_no_bounds():
    truth = float((full_ranks() <= 100).mean())
    before = np.inf
    for users in (1, 5, 15, 49, 50, 200):
        result = unsample.estimate(
            draw_sampled_ranks(full_ranks()[:users], items=ITEMS, sampled=SAMPLED, rng=3),
            items=ITEMS,
            sampled=SAMPLED,
            protocol="unseen",
            metrics=["Recall@1", "Recall@100"],
        )
        entry = result["Recall@100"]
        assert entry.source == "prior"
        low, high = entry.interval()
        assert 0.0 <= low < truth < high <= 1.0
        assert high - low < 1.4 * before
        before = high - low
        bottom, top = result["Recall@1"].interval()
        assert 0.0 <= bottom < top <= high


@pytest.mark.parametrize("users", [1, 60, 5000])
def test_targets_that_all_come_first_may_be_all_or_few(users):
    counts = RankCounts.from_ranks([1], items=ITEMS, sampled=SAMPLED, count=[users])
    found = Cloud.of(counts, shipped(), protocol="unseen")
    for population in (True, False):
        draws = found.draws(parse("NDCG@10"), population=population)
        assert np.isfinite(draws).all()
        assert draws.min() >= 0.0
        assert draws.max() <= 1.0
        low, high = found.metric("Recall@1", population=population).interval()
        assert 0.0 <= low < high <= 1.0
    assert found.metric("Recall@1000").value > 0.5


def test_targets_that_all_come_last_are_no_hits():
    counts = RankCounts.from_ranks([SAMPLED + 1], items=ITEMS, sampled=SAMPLED, count=[2000])
    found = Cloud.of(counts, shipped(), protocol="unseen")
    assert found.metric("NDCG@10").interval()[1] < 0.02
    assert found.metric("Recall@10", population=False).interval()[0] == 0.0


# -- what a draw is --------------------------------------------------------------------------------


@pytest.mark.parametrize("users", [300, 3000])
def test_one_newton_step_is_nearly_the_whole_refit(users):
    """The slow twin: the mode with centre and shares moved, all the way, for some draws.

    Medians are the same to a twentieth of a half-width, and lower ends to a tenth. Upper ends of
    the top are up to a fifth of a half-width too high, never too low: a step is linear in log P(R).
    """
    draws = 400
    cells = CondensedCells.of(counts_of(full_ranks()[:users]))
    (stratum,) = cells.strata
    (fitted,) = strata_to_fit(cells)
    (fit,) = fits_of(cells, components_of(shipped().learned["unseen"], "unseen")[:1])
    (mode,) = fit.modes
    moved = MovedShares.of(cells, [stratum.likelihood @ mode.weights])
    normals = FixedNumbers(draws=draws).normals(SIZE + len(cells.weight))
    weights, _ = moved.draw(normals[:, SIZE:] @ moved.root)
    centre = normals[:, :SIZE] @ fit.component.error_root
    ((_, fast),) = moved_curves(fit, cells, centre=centre, weights=weights)
    shares = weights / weights.sum(axis=1, keepdims=True)
    slow = []
    for to, share in zip(centre, shares, strict=True):
        joined = np.bincount(fitted.cell_of_fit, share, minlength=len(fitted.shares))
        slow.append(mode.masses(moved_mode(mode, to, joined)[None])[0])
    for metric in parse_all(["Recall@1", "NDCG@10", "Recall@100"]):
        of_metric = bin_weights(metric, stratum.grid, ITEMS)
        steps, refits = (
            _follow(curves, shares, stratum.likelihood) @ of_metric
            for curves in (fast, np.array(slow))
        )
        half = np.ptp(np.quantile(refits, [0.025, 0.975])) / 2.0
        assert np.median(steps) == pytest.approx(np.median(refits), abs=0.05 * half)
        for tail, least, most in ((0.025, -0.1, 0.1), (0.1, -0.1, 0.1), (0.975, -0.05, 0.2)):
            apart = (np.quantile(steps, tail) - np.quantile(refits, tail)) / half
            assert least < apart < most
        assert np.corrcoef(steps, refits)[0, 1] > 0.99


def test_the_mode_that_nothing_moves_is_the_mode():
    cells = CondensedCells.of(counts_of(full_ranks()[:300]))
    (fitted,) = strata_to_fit(cells)
    for fit in fits_of(cells, components_of(shipped().learned["unseen"], "unseen")):
        (mode,) = fit.modes
        again = moved_mode(mode, np.zeros(SIZE), fitted.shares)
        assert again == pytest.approx(mode.coefficients, abs=1e-4)


def _follow(curves, shares, likelihood):
    return curves * ((shares / (curves @ likelihood.T)) @ likelihood)


def test_catalogues_of_several_sizes_err_together():
    """Each size has a curve of its own; what the prior leaves open of them is the same."""
    sizes = np.repeat([1000, 2000, 4000], 300)
    rng = np.random.default_rng(0)
    full = np.ceil(sizes * rng.random(900) ** 4).astype(np.int64)
    drawn = draw_sampled_ranks(full, items=sizes, sampled=SAMPLED, rng=rng)
    counts = RankCounts.from_ranks(drawn, items=sizes, sampled=SAMPLED)
    found = Cloud.of(counts, shipped(), protocol="unseen")
    assert len(found.masses) == 3
    assert all(len(fit.modes) == 3 for fit in found.fitted.components)
    together = half_width(found, "NDCG@10")
    alone = [
        half_width(
            Cloud.of(
                RankCounts.from_ranks(drawn[sizes == size], items=size, sampled=SAMPLED),
                shipped(),
                protocol="unseen",
            ),
            "NDCG@10",
        )
        for size in (1000, 2000, 4000)
    ]
    assert together < min(alone)
    grid, masses = found.on_one_grid()
    assert masses.sum(axis=1) == pytest.approx(1.0)
    recall = masses @ bin_weights(parse("Recall@100"), grid, 4000)
    assert recall == pytest.approx(found.draws(parse("Recall@100")), rel=0.02)


def test_shares_are_those_of_the_bayesian_bootstrap():
    """Users of one target each: gamma variables whose shares follow a Dirichlet distribution."""
    cells = CondensedCells.of(counts_of(full_ranks()[:400]))
    (stratum,) = cells.strata
    even = np.full(len(stratum.grid), 1.0 / len(stratum.grid))
    moved = MovedShares.of(cells, [stratum.likelihood @ even])
    weights, total = moved.draw(FixedNumbers().normals(len(cells.weight)))
    assert total == pytest.approx(1.0)
    shares = weights / weights.sum(axis=1, keepdims=True)
    # One more target counts, where the curve expects it.
    expected = (cells.weight + stratum.likelihood @ even) / (cells.total + 1.0)
    assert shares.mean(axis=0) == pytest.approx(expected, abs=0.0005)
    error = np.sqrt(expected * (1.0 - expected) / (cells.total + 2.0))
    empty = cells.weight == 0
    assert shares.std(axis=0)[~empty] == pytest.approx(error[~empty], rel=0.05)
    assert (weights >= 0.0).all()
    # A cell without targets may have one among other users.
    assert empty.any()
    assert (shares[:, empty].max(axis=0) > 0.0).all()


def test_gamma_variables_have_their_mean_and_variance():
    shape, scale = np.array([0.3, 1.0, 7.0, 49.0, 51.0, 900.0]), np.array([1.0, 2, 3, 1, 1, 0.1])
    normals = FixedNumbers(draws=20_000).normals(len(shape))
    found = gamma_variables(normals, shape=shape, scale=scale)
    assert found.mean(axis=0) == pytest.approx(shape * scale, rel=0.02)
    assert found.var(axis=0) == pytest.approx(shape * scale**2, rel=0.05)


def test_fixed_numbers_are_even_and_independent_of_how_many_are_asked_for():
    numbers = FixedNumbers(draws=1000)
    assert (numbers.normals(70)[:, :40] == numbers.normals(40)).all()
    assert numbers.normals(0).shape == (1000, 0)
    assert abs(numbers.normals(40).mean()) < 1e-12
    assert numbers.normals(40).std(axis=0) == pytest.approx(1.0)
    assert not (numbers.normals(5) == numbers.normals(5, stream=1)).any()
    # Even numbers: the share below any limit is right to the last draw or two.
    for column in (numbers.uniform, *numbers.even.T):
        ordered = np.sort(column)
        assert len(np.unique(ordered)) == 1000
    below = (numbers.uniform[:, None] < np.linspace(0, 1, 41)).mean(axis=0)
    assert below == pytest.approx(np.linspace(0, 1, 41), abs=0.01)
    directions = np.linalg.qr(np.random.default_rng(0).normal(size=(9, 3)))[0]
    found = turned(numbers.normals(9), numbers.even, directions=directions)
    assert found @ directions == pytest.approx(numbers.even)


# -- known ranks, and data that do not fit ---------------------------------------------------------


def test_exact_ranks_leave_nothing_open():
    ranks = np.ceil(2000 * np.random.default_rng(9).random(500) ** 4).astype(int)
    counts = RankCounts.from_ranks(ranks, items=2000, sampled=1999, replacement=False)
    found = Cloud.of(counts, shipped(), protocol="unseen")
    share = float((ranks <= 100).mean())
    low, high = found.metric("Recall@100", population=False).interval()
    assert (low, high) == pytest.approx((share, share), rel=2e-3)
    error = quantile(0.95) * np.sqrt(share * (1 - share) / 500)
    assert half_width(found, "Recall@100") == pytest.approx(error, rel=0.1)


def test_users_ranked_in_full_tell_what_no_sample_shows():
    full = full_ranks()[:3000]
    sampled = np.where(np.arange(3000) < 300, ITEMS - 1, SAMPLED)
    ranks = np.where(
        sampled == ITEMS - 1, full, draw_sampled_ranks(full, items=ITEMS, sampled=SAMPLED, rng=0)
    )
    options = {"items": ITEMS, "protocol": "unseen", "metrics": ["Recall@1", "NDCG@10"]}
    mixed = unsample.estimate(ranks, sampled=sampled, **options)
    alone = unsample.estimate(ranks[300:], sampled=SAMPLED, **options)
    few = unsample.exact(full[:300], items=ITEMS, metrics=options["metrics"])
    for metric in mixed:
        truth = parse(metric).weights(full_ranks(), ITEMS).mean()
        low, high = mixed[metric].interval()
        assert low < truth < high
        assert high - low < np.ptp(alone[metric].interval())
        assert high - low < 1.1 * np.ptp(few[metric].interval())


def test_data_that_hardly_fit_warn_and_have_an_interval_as_others():
    """One in five targets moved from an even rank to the odd one before it: no curve is so."""
    drawn = draw_sampled_ranks(full_ranks()[:3000], items=ITEMS, sampled=SAMPLED, rng=0)
    moved = np.random.default_rng(0).random(len(drawn)) < 0.2
    odd = np.where(moved, 2 * ((drawn - 1) // 2) + 1, drawn)
    design = {"items": ITEMS, "sampled": SAMPLED}
    found = Cloud.of(RankCounts.from_ranks(odd, **design), shipped(), protocol="unseen")
    assert found.fitted.unlike
    assert not cloud().fitted.unlike
    with pytest.warns(unsample.errors.UnsampleWarning, match="unlike those of the data sets"):
        result = unsample.estimate(odd, **design, protocol="unseen", metrics="NDCG@10")
    assert [note.name for note in result.notes] == ["unlike"]
    entry = result["NDCG@10"]
    assert entry.source == "prior"
    assert entry.interval() == found.metric("NDCG@10").interval()


def _lists() -> dict[str, np.ndarray]:
    """Return scored lists of users with two or three targets each."""
    rng = np.random.default_rng(0)
    users, targets = 200, np.arange(200) % 2 + 2
    parts = []
    for user, count in enumerate(targets.tolist()):
        scores = np.concatenate([rng.normal(1.5, 1.0, count), rng.normal(size=SAMPLED)])
        parts.append((np.full(len(scores), user), scores, np.arange(len(scores)) < count))
    assert len(parts) == users
    names = ("user", "score", "target")
    return dict(zip(names, map(np.concatenate, zip(*parts, strict=True)), strict=True))


def test_metrics_share_curves_where_they_weigh_targets_alike():
    """HR and MRR count the first target of a user alone, Recall counts all alike."""
    wanted = ["HR@10", "MRR", "Recall@10", "Recall(norm=min)@10", "NDCG@10", "MRR@5", "AP@10"]
    together = unsample.estimate(_lists(), items=ITEMS, metrics=wanted)
    assert together["HR@10"].cloud is together["MRR"].cloud
    for name in wanted:
        alone = unsample.estimate(_lists(), items=ITEMS, metrics=name)[name]
        assert together[name].interval() == alone.interval()
        assert together[name].interval(population=False) == alone.interval(population=False)
    assert together.curves.metric("Recall@5").value > 0.0
    assert together["HR@10"].interval()[0] >= together["MRR@5"].interval()[0]
    with pytest.raises(MetricError, match="must weigh the relevant items"):
        together["NDCG@10"].cloud.metric("Recall@5")


def test_draws_of_a_metric_do_not_depend_on_the_others_asked_for():
    found: list[np.ndarray] = []
    metric: Metric = parse("NDCG@10")
    for others in ([], ["Recall@1", "MRR"]):
        other = Cloud.of(counts_of(full_ranks()[:200]), shipped(), protocol="all")
        for name in others:
            other.metric(name)
        found.append(other.draws(metric, population=False))
    assert (found[0] == found[1]).all()


def test_another_size_of_a_sample_shows_more():
    widths = [
        half_width(
            Cloud.of(counts_of(full_ranks()[:3000], sampled=sampled), shipped(), protocol="unseen"),
            "NDCG@10",
        )
        for sampled in (20, 99, 999)
    ]
    assert widths[0] > widths[1] > widths[2]
    assert SamplingModel(ITEMS, 20).n == 21


# -- methods of papers ----------------------------------------------------------------------------


METRICS = ["Recall@10", "NDCG@10", "Recall@100", "AUC"]


@cache
def _estimated(method: str | tuple[str, ...] = "auto", prior: str | None = "shipped"):
    ranks = draw_sampled_ranks(full_ranks()[:2000], items=ITEMS, sampled=SAMPLED, rng=0)
    methods = method if isinstance(method, str) else list(method)
    return unsample.estimate(
        ranks,
        items=ITEMS,
        sampled=SAMPLED,
        protocol="unseen",
        metrics=METRICS,
        method=methods,
        prior=prior,
    )


def test_without_a_prior_intervals_are_the_bounds():
    found = _estimated(prior=None)
    assert found.methods == ("mle",)
    assert [entry.source for entry in found.values()] == ["bounds"] * 3 + ["mean"]
    assert found["NDCG@10"].interval(0.9) == found["NDCG@10"].bounds(0.9)
    assert found["NDCG@10"].interval(population=False) == found["NDCG@10"].bounds()


def test_the_interval_belongs_to_the_metric_and_asked_for_later_it_is_the_same():
    found = _estimated(("auto", "mle", "naive"))
    for metric in METRICS:
        assert len({found[metric, name].interval() for name in found.methods}) == 1
    assert found["NDCG@10", "naive"].value > found["NDCG@10"].interval()[1]
    assert found.distribution("mle").expect("NDCG@10") == pytest.approx(
        found["NDCG@10", "mle"].value
    )
    with pytest.raises(MethodError, match="one of auto, mle"):
        found.distribution("rank")
    for method in ("auto", "mle"):
        ranks = draw_sampled_ranks(full_ranks()[:2000], items=ITEMS, sampled=SAMPLED, rng=0)
        later = unsample.estimate(
            ranks, items=ITEMS, sampled=SAMPLED, protocol="unseen", metrics="AUC", method=method
        )
        for metric in METRICS:
            one, other = later.metric(metric), found[metric, method]
            assert one.to_dict() == pytest.approx(other.to_dict())
            assert one.interval(0.8) == other.interval(0.8)
    with pytest.raises(MetricError, match="naive has no P"):
        _estimated("naive").metric("Recall@37")
    with pytest.raises(MetricError, match="must be asked for with the ranks"):
        unsample.exact([1, 2, 9], items=10, metrics="MRR").metric("Recall@3")

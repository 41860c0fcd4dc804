"""Properties that hold for every input: laws, counts, estimators, names, ranks, designs.

The examples are the same in every run. ``UNSAMPLE_EFFORT=20`` tries twenty times as many, drawn
anew each time.
"""

from __future__ import annotations

import math
import os
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from tests.test_contract import VARIANTS
from unsample import estimate, estimators, metrics
from unsample.designs import Candidates, Fixed, Scorer, exact_ranks, run
from unsample.errors import MetricError, RankError, ScoreError
from unsample.estimators import Observed
from unsample.evidence import TIE_RULES, RankCounts, rank_with_ties
from unsample.law import Law, RankGrid
from unsample.metrics import parse, parse_all

# Made-up ranks have shapes that no real ones have, and make linear methods leave their range.
pytestmark = pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")

EFFORT = int(os.environ.get("UNSAMPLE_EFFORT", "1"))


def thorough(examples: int):
    """Return settings with so many examples, times the effort."""
    return settings(max_examples=examples * EFFORT, deadline=None, derandomize=EFFORT == 1)


# -- the laws of a sampled rank -------------------------------------------------------------------

catalogues = st.integers(2, 60) | st.sampled_from([10**4, 10**6, 10**9, 10**12])


@st.composite
def designs(draw, largest_sample=120, sizes=catalogues):
    items, replacement = draw(sizes), draw(st.booleans())
    most = largest_sample if replacement else min(largest_sample, items - 1)
    return Law(items, draw(st.integers(1, most)), replacement)


@st.composite
def designs_and_two_ranks(draw):
    design = draw(designs())
    near_the_ends = st.integers(1, min(design.items, 5)).flatmap(
        lambda r: st.sampled_from([r, design.items + 1 - r])
    )
    anywhere = near_the_ends | st.integers(1, design.items)
    return design, *sorted((draw(anywhere), draw(anywhere)))


def _all_ranks(design: Law) -> np.ndarray:
    return np.arange(1, design.n + 1)


@thorough(150)
@given(designs_and_two_ranks())
def test_the_law_sums_to_one_has_its_mean_and_variance_and_moves_with_the_rank(given_):
    design, rank, worse = given_
    pmf = design.pmf(_all_ranks(design)[:, None], [rank, worse])
    assert (pmf >= 0).all()
    assert pmf.sum(axis=0) == pytest.approx(1.0, abs=1e-10)
    below = np.cumsum(pmf, axis=0)
    assert (below[:, 0] >= below[:, 1] - 1e-10).all()
    # The moments are exact fractions, whatever the size of the catalogue.
    theta = Fraction(rank - 1, design.items - 1)
    left = 1 if design.replacement else Fraction(design.items - 1 - design.sampled)
    spare = 1 if design.replacement else max(design.items - 2, 1)
    variance = design.sampled * theta * (1 - theta) * left / spare
    better = _all_ranks(design) - 1
    mean = float(pmf[:, 0] @ better)
    assert mean == pytest.approx(float(design.sampled * theta), rel=1e-9, abs=1e-12)
    spread = float(pmf[:, 0] @ (better - mean) ** 2)
    assert spread == pytest.approx(float(variance), rel=1e-6, abs=1e-9)


@thorough(100)
@given(designs_and_two_ranks())
def test_counting_from_the_other_end_gives_the_same_law(given_):
    design, rank, _ = given_
    forwards = design.pmf(_all_ranks(design), rank)
    backwards = design.pmf(_all_ranks(design)[::-1], design.items + 1 - rank)
    assert forwards == pytest.approx(backwards, rel=1e-9, abs=1e-300)


@thorough(60)
@given(design=designs(), cuts=st.sets(st.integers(1, 120), max_size=6))
def test_on_any_grid_the_sampled_ranks_of_a_bin_have_probability_one(design, cuts):
    grid = RankGrid.build(design.items, sampled=design.sampled, cutoffs=cuts)
    ends = np.array(sorted({cut for cut in cuts if cut < design.n} | {design.n}))
    starts = np.concatenate([[1], ends[:-1] + 1])
    assert design.matrix(starts, ends, grid).sum(axis=0) == pytest.approx(1.0, abs=1e-9)
    single = design.matrix(_all_ranks(design), _all_ranks(design), grid)
    assert single.min() > -1e-12
    assert single.sum(axis=0) == pytest.approx(1.0, abs=1e-9)


# -- counts ---------------------------------------------------------------------------------------

#: Sums of such weights are exact in any order, so equal counts are equal to the last bit.
dyadic = st.integers(0, 64).map(lambda n: n / 16)


@st.composite
def targets(draw, weights=dyadic):
    """Return the columns of some targets: ranks, sizes, samples, weights."""
    rows = st.tuples(
        st.integers(1, 5),
        st.sampled_from([7, 50, 10**9]),
        st.sampled_from([4, 6]),
        weights,
    )
    table = draw(st.lists(rows, min_size=1, max_size=25))
    columns = [np.array(column) for column in zip(*table, strict=True)]
    assume(columns[3].sum() > 0)
    return columns


def _count(columns, replacement=True) -> RankCounts:
    ranks, items, sampled, weights = columns
    return RankCounts.from_ranks(
        ranks, items=items, sampled=sampled, weights=weights, replacement=replacement
    )


@thorough(80)
@given(columns=targets(), seed=st.integers(0, 2**16), parts=st.integers(1, 5))
def test_counts_depend_neither_on_the_order_nor_on_the_parts(columns, seed, parts):
    whole, size = _count(columns), len(columns[0])
    rng = np.random.default_rng(seed)
    order = rng.permutation(size)
    assert _count([column[order] for column in columns]) == whole
    where = rng.integers(parts, size=size)
    pieces = [[column[where == part] for column in columns] for part in range(parts)]
    # A piece without weight is no piece of its own.
    rest = [_count(piece) for piece in pieces if len(piece[0]) and piece[3].sum() > 0]
    merged = RankCounts.merge(rest)
    left, right = rest[0], rest[-1]
    for part in rest[1:]:
        left = left + part
    for part in rest[-2::-1]:
        right = part + right
    assert left == right == merged
    for name in ("weight", "weight_squared"):
        assert getattr(merged, name).sum() == getattr(whole, name).sum()


@thorough(40)
@given(
    columns=targets(st.floats(1e-90, 1e90) | st.just(0.0)),
    replacement=st.booleans(),
)
def test_what_is_saved_is_what_is_loaded(tmp_path_factory, columns, replacement):
    counts = _count(columns, replacement)
    path = tmp_path_factory.mktemp("counts") / "counts.npz"
    counts.save(path)
    assert RankCounts.load(path) == counts


@thorough(40)
@given(columns=targets(), power=st.integers(-250, 250))
def test_one_factor_on_all_weights_changes_nothing(columns, power):
    assume((columns[3] > 0).sum() > 1)
    scaled = _count([*columns[:3], columns[3] * 2.0**power])
    counts = _count(columns)
    assert scaled.effective == counts.effective
    wanted = parse_all(["Recall@3", "NDCG@20"])
    values = [
        estimators.parse("mle").evaluate(Observed.prepare(each), wanted).values
        for each in (counts, scaled)
    ]
    assert np.array_equal(*values)


# -- estimators -----------------------------------------------------------------------------------


@st.composite
def histograms(draw):
    """Return counts of one small design, adversarial rather than likely."""
    design = draw(designs(largest_sample=12, sizes=st.sampled_from([2, 3, 15, 200, 10**6])))
    # Among two items with replacement, a target is beaten by every draw or by none.
    possible = [1, design.n] if design.items == 2 else range(1, design.n + 1)
    ranks = draw(st.lists(st.sampled_from(possible), min_size=1, max_size=4, unique=True))
    times = draw(
        st.lists(st.sampled_from([1, 2, 40, 10**6]), min_size=len(ranks), max_size=len(ranks))
    )
    return RankCounts.from_ranges(ranks, ranks, times, design)


def _range(metric: metrics.Metric, items: int) -> tuple[float, float]:
    """Return the least and the greatest weight: all families here fall with the rank."""
    least = 0.0 if metric.cutoff(items) < items else float(metric.weights(items, items))
    return least, float(metric.weights(1, items))


CUTOFFS = (1, 2, 3, 7, 14, 15, 16, 60, 199, 200, 5000, 10**6)
LOOKED_AT = ["NDCG@10", "AP@10", "Precision@10", "AUC@10", "NDCG", "AP", "AUC"]


@pytest.mark.parametrize("name", VARIANTS)
@thorough(8)
@given(counts=histograms(), candidates=st.sampled_from(["unseen", "all"]))
def test_every_estimate_is_in_range_and_recall_grows_with_k(name, counts, candidates):
    estimator = estimators.parse(name)
    items = counts.largest_catalogue
    recalls = parse_all([f"Recall@{k}" for k in CUTOFFS])
    others = [metric for metric in parse_all(LOOKED_AT) if estimator.supports(metric)]
    batch = counts.resample(2, rng=0)
    observed = Observed.prepare(
        counts,
        resampled=batch,
        cutoffs=[m.cutoff(items) for m in (*recalls, *others)],
        candidates=candidates,
    )
    evaluation = estimator.evaluate(observed, (*recalls, *others))
    assert np.isfinite(evaluation.values).all()
    for column, metric in zip(evaluation.values.T, (*recalls, *others), strict=True):
        # The sampled metric looks at the sample and no further.
        least, most = _range(metric, counts.largest_sample + 1 if name == "naive" else items)
        assert (column >= least - 1e-9).all(), metric
        assert (column <= most + 1e-9).all(), metric
    found = evaluation.values[:, : len(recalls)]
    if estimator.name not in {"cls", "bv", "mn"}:
        assert not any(evaluation.clipped)
        assert (np.diff(found, axis=1) >= -1e-9).all()
    whole = [k >= items for k in CUTOFFS]
    if name != "naive":  # which looks at K of the sample
        assert found[:, whole] == pytest.approx(1.0, abs=1e-6)


LIMIT_RANKS = np.array([5, 1, 0, 2, 3, 0, 1, 4, 0, 2, 1, 1]) / 20
LIMIT_METRICS = parse_all(["Recall@1", "Recall@4", "NDCG@6", "AUC"])


def _distance_from_the_truth(method: str, design: Law) -> float:
    """Return the largest error from a histogram without noise: the expected one."""
    ranks = np.arange(1, design.n + 1)
    expected = 1e6 * design.pmf(ranks[:, None], np.arange(1, 13)) @ LIMIT_RANKS
    ranks, expected = ranks[expected > 1e-40], expected[expected > 1e-40]
    counts = RankCounts.from_ranks(
        ranks, items=12, sampled=design.sampled, weights=expected, replacement=design.replacement
    )
    estimator = estimators.parse(method)
    wanted = [metric for metric in LIMIT_METRICS if estimator.supports(metric)]
    observed = Observed.prepare(counts, cutoffs=[1, 4, 6])
    truth = [LIMIT_RANKS @ metric.weights(np.arange(1, 13), 12) for metric in wanted]
    return float(np.abs(estimator.evaluate(observed, wanted).values[0] - truth).max())


@pytest.mark.parametrize(
    ("method", "tolerance"),
    [
        *[(name, 1e-3) for name in ("auto", "mle", "cls", "bv", "bv(prior=mle)")],
        *[(name, 1e-3) for name in ("bv(prior=mes)", "mn", "mn(prior=mes)", "map(strength=1e-6)")],
        ("recall_map", 0.02),
    ],
)
def test_samples_that_see_every_rank_sharply_are_all_but_exact(method, tolerance):
    """The limit n to infinity with replacement; a prior must be weak to be outvoted by data.

    Not in it: ``naive``, which is on another scale; ``rank`` and the other maps of cutoffs, which
    put half of the targets at K beyond it; ``wmle``, whose weights stay; ``beta``, whose family
    need not hold the truth.
    """
    assert _distance_from_the_truth(method, Law(12, 1000)) < tolerance


@pytest.mark.parametrize(
    ("family", "strengths"),
    [
        ("map(strength={})", (0.1, 1e-3, 1e-6)),
        ("mes(eta={})", (1e-2, 1e-4, 1e-8)),
        ("mes(eta={}, scaling=later)", (1e-1, 1e-4, 1e-6)),
        ("mle(iterations={})", (10, 100, 10_000)),
    ],
)
def test_as_a_prior_fades_the_error_goes_to_nothing(family, strengths):
    """All but one item sampled, without replacement: what is left of the error is the prior's."""
    design = Law(12, 10, replacement=False)
    errors = [_distance_from_the_truth(family.format(one), design) for one in strengths]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 2e-4


# -- whole answers --------------------------------------------------------------------------------


@st.composite
def histograms(draw):
    """Return counts of up to 10^12 targets, smooth and ragged ones, that a P(R) fits or not."""
    design = draw(designs(largest_sample=60))
    seed, power = draw(st.integers(0, 999)), draw(st.integers(0, 9))
    rng = np.random.default_rng(seed)
    shape = draw(st.sampled_from([(0.5, 2.0), (0.2, 5.0), (1.0, 1.0), None]))
    if shape is None:
        drawn = rng.integers(1, design.n + 1, 40)
    else:
        share = rng.beta(*shape, draw(st.sampled_from([1, 50, 2000])))
        drawn = design.draw(np.ceil(design.items * share).clip(1).astype(np.int64), rng=rng)
    histogram = np.bincount(drawn, minlength=design.n + 1)[1:]
    return RankCounts.from_histogram(10**power * histogram, design)


@thorough(20)
@given(
    counts=histograms(),
    method=st.sampled_from(["auto", "mle", "beta", "naive"]),
    candidates=st.sampled_from([None, "unseen", "all"]),
)
def test_any_counts_have_intervals_within_bounds_within_the_range(counts, method, candidates):
    items = counts.largest_catalogue
    names = [f"Recall@{min(10, items)}", f"NDCG@{items // 2}", f"AP@{items}"]
    try:
        result = estimate(counts, metrics=names, method=method, candidates=candidates, resamples=5)
    except RankError as refusal:
        if "ranks must be possible under the design" not in str(refusal):
            raise
        return
    for entry in result.entries:
        if result.certainty is None:  # all ranks are known: nothing is hidden
            break
        (low, high), (least, most) = entry.interval(), entry.bounds()
        assert -1e-9 <= least <= low + 1e-6
        assert low <= high + 1e-9
        assert high - 1e-6 <= most <= 1.0 + 1e-9
    assert all(-1e-12 <= entry.value <= 1.0 + 1e-12 for entry in result.entries)
    assert str(result)


# -- names ----------------------------------------------------------------------------------------

FAMILIES = list(metrics.REGISTRY.values())
spaces = st.text(" \t", max_size=2)


@thorough(150)
@given(
    family=st.sampled_from(FAMILIES),
    k=st.none() | st.integers(1, 10**30),
    data=st.data(),
)
def test_any_spelling_of_a_name_is_printed_in_one_way(family, k, data):
    k = None if family.whole else k
    name = data.draw(st.sampled_from(family.names))
    upper = data.draw(st.lists(st.booleans(), min_size=len(name), max_size=len(name)))
    spelt = "".join(c.upper() if up else c.lower() for c, up in zip(name, upper, strict=True))
    if k is not None:
        zeros = "0" * data.draw(st.integers(0, 2))
        spelt += f"{data.draw(spaces)}@{data.draw(spaces)}{zeros}{k}"
    metric = parse(data.draw(spaces) + spelt + data.draw(spaces))
    assert metric.same_as(family(k))
    assert str(metric) == (name if k is None else f"{name}@{k}")
    assert parse(str(metric)) == metric
    assert hash(parse(str(metric))) == hash(metric)
    assert metric.cutoff(100) == min(k or 100, 100)


@thorough(200)
@given(st.text(max_size=12) | st.from_regex(r"(recall|ndcg|auc) ?@[-+0-9.e ]{0,6}", fullmatch=True))
def test_any_text_is_a_metric_that_prints_or_is_refused(text):
    try:
        metric = parse(text)
    except MetricError as refused:
        assert "must be" in str(refused)  # noqa: PT017
        return
    assert parse(str(metric)) == metric
    assert metric.k is None or metric.k >= 1


# -- ranks ----------------------------------------------------------------------------------------

#: Scores that differ in the last bit, are subnormal, zeros of both signs, or infinite.
DELICATE = {
    np.float64: [0.0, -0.0, 5e-324, -5e-324, 2e-310, 1.0, math.nextafter(1.0, 2.0)],
    np.float32: [0.0, -0.0, 1e-45, -1e-45, 1e-40, 1.0, float(np.nextafter(np.float32(1), 2))],
}


@st.composite
def delicate_scores(draw):
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    users, items = draw(st.integers(1, 4)), draw(st.integers(2, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    scores = rng.choice(np.array(DELICATE[dtype], dtype=dtype), size=(users, items))
    target = rng.integers(items, size=users)
    infinite = rng.random(scores.shape) < draw(st.sampled_from([0.0, 0.3]))
    infinite[np.arange(users), target] = False
    scores[infinite] = rng.choice(np.array([-np.inf, np.inf], dtype=dtype), size=infinite.sum())
    seen = rng.random(scores.shape) < draw(st.sampled_from([0.0, 0.4]))
    return scores, target, seen


def _by_hand(scores, target, seen) -> tuple[list[int], list[int], list[int]]:
    """Count in plain Python, with numbers that never underflow: fractions and signs."""
    table = []
    for row, own in enumerate(target):
        others = [i for i in range(scores.shape[1]) if i != own and not seen[row, i]]
        value = Fraction(float(scores[row, own]))
        exact = [
            float(x) if math.isinf(x) else Fraction(float(x)) for x in scores[row, others].tolist()
        ]
        table.append(
            (sum(x > value for x in exact), sum(x == value for x in exact), len(others) + 1)
        )
    better, tied, sizes = zip(*table, strict=True)
    return list(better), list(tied), list(sizes)


@thorough(80)
@given(world=delicate_scores(), ties=st.sampled_from(TIE_RULES))
def test_ranks_are_those_counted_by_hand_to_the_last_bit_of_a_score(world, ties):
    scores, target, seen = world
    better, tied, sizes = _by_hand(scores, target, seen)
    result = exact_ranks(
        Scorer(score_all=scores.__getitem__),
        (np.arange(len(target)), target),
        items=scores.shape[1],
        exclude=csr_array(seen),
        ties=ties,
    )
    assert result.ties.tolist() == tied
    assert result.items.tolist() == sizes
    first, last = np.array(better) + 1, np.array(better) + 1 + tied
    if ties == "random":
        assert ((result.ranks >= first) & (result.ranks <= last)).all()
        assert (result.ranks == np.floor(result.ranks)).all()
    else:
        wanted = {"optimistic": first, "pessimistic": last, "realistic": (first + last) / 2}[ties]
        assert result.ranks.tolist() == wanted.tolist()


@thorough(25)
@given(world=delicate_scores(), ties=st.sampled_from(["random", "optimistic", "pessimistic"]))
def test_drawing_every_item_gives_the_ranks_counted_by_hand(world, ties):
    scores, target, _ = world
    usable = np.isfinite(scores[np.arange(len(target)), target])
    if not usable.any() or scores.shape[1] < 2:
        return
    scores, target = scores[usable], target[usable]
    better, tied, _ = _by_hand(scores, target, np.zeros(scores.shape, dtype=bool))
    candidates = Candidates.check((np.arange(len(target)), target), scores.shape[1])
    scorer = Scorer(score_all=scores.__getitem__)
    design = Fixed(scores.shape[1] - 1, replacement=False)
    found = run(design, scorer, candidates, ties=ties)[0].ranks
    first, last = np.array(better) + 1, np.array(better) + 1 + tied
    assert ((found >= first) & (found <= last)).all()


@thorough(30)
@given(
    world=delicate_scores(),
    bad=st.sampled_from([np.nan, -np.nan]),
    place=st.integers(0, 10**6),
)
def test_one_nan_among_the_scores_is_refused(world, bad, place):
    scores, target, _ = world
    scores.reshape(-1)[place % scores.size] = bad
    with pytest.raises(ScoreError, match="must not be NaN"):
        exact_ranks(
            Scorer(score_all=scores.__getitem__),
            (np.arange(len(target)), target),
            items=scores.shape[1],
        )


def test_random_ties_are_as_likely_at_every_place_however_many_tie():
    better, tied = np.full(20_000, 3), np.full(20_000, 999)
    ranks = rank_with_ties(better, tied, "random", np.random.default_rng(0))
    assert ranks.min() >= 4
    assert ranks.max() <= 1003
    tenths = np.histogram(ranks, bins=10, range=(3.5, 1003.5))[0]
    assert np.abs(tenths - 2000).max() < 5 * math.sqrt(2000 * 0.9)


def test_whole_numbers_that_floats_would_confuse_are_refused():
    scores = np.array([[2**53, 2**53 + 1, 5]])
    with pytest.raises(ScoreError, match=r"below 2\^53"):
        exact_ranks(Scorer(score_all=scores.__getitem__), ([0], [0]), items=3)
    exact_ranks(Scorer(score_all=(scores - 2**53).__getitem__), ([0], [0]), items=3)

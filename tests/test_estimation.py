"""`estimate` and `exact`: values, intervals, what is refused and what is said beside."""

import json
import math
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize

import unsample
from unsample import estimators
from unsample.bounds import Bounds
from unsample.counts import RankCounts
from unsample.designs import DESIGNS
from unsample.errors import BiasedMethodWarning, InputError, MetricError, UnsampleWarning
from unsample.estimators import REGISTRY
from unsample.metrics import parse, parse_all
from unsample.questions.estimate.diagnostics import outside
from unsample.sampling import SamplingModel


def test_the_naive_metric_is_marked_as_biased(counts):
    with pytest.warns(BiasedMethodWarning, match="do not report it"):
        unsample.estimate(counts, metrics="Recall@40", method="naive")


def test_exact_has_intervals_and_a_distribution_and_knows_its_ranks(full_ranks):
    result = unsample.exact(full_ranks, items=400, metrics=["Recall@10", "NDCG"])
    low, high = result["Recall@10"].interval()
    spread = math.sqrt(result["Recall@10"].value * (1 - result["Recall@10"].value) / 3000)
    assert (high - low) / 3.92 == pytest.approx(spread, rel=0.25)
    for metric, entry in result.items():
        assert result.distribution().expect(metric) == pytest.approx(entry.value, rel=1e-12)
    line = str(unsample.exact([3], items=10, metrics="HR@5")["HR@5"])
    assert line == "HR@5 = 1.0000 [0.0250 .. 1.0000] (exact, 95 % interval)"
    for given, message in (
        ({"full_ranks": [11]}, r"got 11 at position 1 of 1; check items$"),
        ({"full_ranks": [3, 3], "users": [1, 1]}, "one user must differ, .* pass filtered"),
        ({"full_ranks": [3], "items": None}, "items must be given with ranks"),
    ):
        with pytest.raises(InputError, match=message):
            unsample.exact(**{"items": 10} | given)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"items": None}, "items must be given"),
        ({"sampled": None}, "sampled must be given"),
        ({"metrics": []}, "at least one metric"),
        ({"method": []}, "at least one estimator"),
        ({"method": "recall_map", "metrics": "AP@5"}, "recall_map can give"),
        ({"protocol": "movies"}, "protocol must be one of"),
        ({"prior": 5}, "must be a Prior"),
    ],
)
def test_bad_arguments_are_refused(arguments, words):
    with pytest.raises(InputError, match=words):
        unsample.estimate([1, 2, 3], **({"items": 400, "sampled": 30} | arguments))


def test_a_method_outside_the_bounds_is_told(counts):
    entry = unsample.estimate(counts, metrics="NDCG@40", method="bv")["NDCG@40"]
    assert outside(entry) == []
    (note,) = outside(replace(entry, value=0.99))
    assert re.match(r"bv.* gives NDCG@40 = 0\.99, outside the bounds 0\.\d+ \.\. 0\.\d+", note.text)


def test_the_interval_comes_of_what_is_stated_or_of_a_prior_in_a_file(counts, full_ranks, tmp_path):
    unsample.Prior.learn([full_ranks, full_ranks[:1500]], items=400).save(tmp_path / "prior.npz")
    stated = [
        {},
        {"protocol": "unseen"},
        {"protocol": "all"},
        {"prior": tmp_path / "prior.npz"},
        *({"protocol": protocol} for protocol in ("repeats", "graph")),
    ]
    found = [unsample.estimate(counts, metrics="NDCG@40", **options) for options in stated]
    assert len({each["NDCG@40"].interval() for each in found}) == len(stated)


@pytest.mark.parametrize("protocol", ["sessions", "unsen", ""])
def test_a_protocol_that_there_is_not_is_refused(protocol):
    paper, options = {"HR@10": "0.50"}, {"protocol": protocol}
    design = {"items": 400, "sampled": 30}
    for call in (
        lambda: unsample.estimate([1, 2, 3] * 40, **design, **options),
        lambda: unsample.compare({"A": [1, 2] * 60, "B": [2, 1] * 60}, **design, **options),
        lambda: unsample.published(paper, users=500, **design, **options),
        lambda: unsample.plan(items=400, users=500, **options),
    ):
        with pytest.raises(InputError, match="protocol must be one of unseen, all, repeats, graph"):
            call()


# -- what is hardly meant is said, and what is nearly right is understood --------------------------

#: Ranks against 99 negatives, and the design of somebody who counts the target as one of them.
UNIFORM = np.random.default_rng(0).integers(1, 101, 3000)
HUNDRED = {"items": 5000, "sampled": 100}


@pytest.mark.parametrize(
    ("ranks", "options", "wanted"),
    [
        (
            range(1, 100),
            {"sampled": 99, "items": [50] * 98 + [5000]},
            "must be less than items .* got 99 draws from 50",
        ),
        ([1, 4, 10], {"metrics": "NDCG@51"}, r"K must be at most items = 50 .* got NDCG@51"),
        (UNIFORM, HUNDRED, "none of 3,000 ranks is 101, .* make 100 ranks; give .* 99"),
        (UNIFORM, HUNDRED | {"sampled": 99}, None),
        (UNIFORM[:200], HUNDRED, None),  # too few to tell
        (np.minimum(UNIFORM, 60), HUNDRED, None),  # nobody near the end
        (np.repeat(np.arange(1, 101), np.arange(100, 0, -1)), HUNDRED, None),  # numbers that fall
    ],
)
def test_what_is_hardly_meant_is_said_once(ranks, options, wanted):
    options = {"items": 50, "sampled": 9, "metrics": "Recall@5", **options}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        unsample.estimate(list(ranks), **options)
    texts = [str(each.message) for each in caught]
    said = [text for text in texts if "must be" in text or "drawn beside" in text]
    assert len(said) == (wanted is not None)
    assert wanted is None or re.search(wanted, said[0])


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("ndcg10", "NDCG@10"), ("ndcg_at_10", "NDCG@10"), ("R@10", "Recall@10"),
        ("recall@k=10", "Recall@10"), ("Recall top 20", "Recall@20"), ("Hit Ratio@5", "HR@5"),
        ("p10", "P@10"), ("mean average precision@10", "MAP@10"), ("ndcg@", "NDCG"),
        ("NDCG(gain=ex)@5", "NDCG(gain=exp)"),
    ],
)  # fmt: skip
def test_suggestions_make_sense(written, meant):
    with pytest.raises(MetricError, match=re.escape(f"got {written!r}; did you mean {meant}?")):
        parse(written)


def test_metrics_may_be_listed_with_commas():
    names = [metric.name for metric in parse_all("NDCG@5, AP(norm=min)@3,AUC")]
    assert names == ["NDCG@5", "AP(norm=min)@3", "AUC"]
    with pytest.raises(MetricError, match="got ''"):
        parse_all("NDCG@5,")
    with pytest.raises(MetricError, match=r"got 'F1@10'$"):
        parse("F1@10")


# -- numbers at the edge: every answer is finite and in range, with limits in order ----------------

METRICS = parse_all(["Recall@1", "NDCG@10", "Recall@500", "AUC"])
BILLION = 10**9


def _drawn(items, sampled, replacement=True):
    rng = np.random.default_rng([items, sampled])
    full = np.ceil(items * rng.beta(0.5, 2.0, size=800)).astype(np.int64).clip(1, items)
    ranks = SamplingModel(items, sampled, replacement).draw(full, rng=rng)
    return RankCounts.from_ranks(ranks, items=items, sampled=sampled, replacement=replacement)


def _multiplied(design, times):
    """Return the noise of 20,000 users as if of many more, which no P(R) fits."""
    rng = np.random.default_rng(0)
    full = np.ceil(design.items * rng.beta(0.5, 2.0, 20_000)).astype(np.int64)
    drawn = design.draw(full.clip(1, design.items), rng=rng)
    histogram = np.bincount(drawn, minlength=design.n + 1)[1:].astype(np.int64)
    return RankCounts.from_histogram(times * histogram, design)


EDGES = {
    "n = 2 = N": lambda: RankCounts.from_ranks([1, 1, 2, 1], items=2, sampled=1),
    "n = N without": lambda: _drawn(50, 49, replacement=False),
    "n = 10 N of most targets": lambda: RankCounts.merge(
        [_drawn(12, 119), RankCounts.from_ranks([1], items=200, sampled=119)]
    ),
    "N = 10^9 without replacement": lambda: _drawn(BILLION, 20, replacement=False),
    "10^7 users that a P(R) fits by a hair": lambda: _multiplied(SamplingModel(1000, 49), 1000),
    "10^17 users that no P(R) fits": lambda: _multiplied(SamplingModel(3000, 19), 10**13),
    "one user": lambda: RankCounts.from_ranks([1], items=1000, sampled=99),
    "all last": lambda: RankCounts.from_ranks([100], items=1000, sampled=99, count=[1000]),
    "catalogues from 11 to 10^9": lambda: RankCounts.from_ranks(
        [1, 2, 3, 4], items=[11, 10**3, 10**6, BILLION], sampled=[10, 10, 99, 99]
    ),
}


def _check(entry, items):
    low, high = entry.interval()
    least, most = entry.bounds()
    most_of_all = float(entry.metric.weights(1.0, items))
    assert math.isfinite(entry.value)
    assert -1e-12 <= entry.value <= most_of_all + 1e-12
    assert -1e-9 <= low <= high <= most_of_all + 1e-9
    if entry.source == "mean":
        return
    assert least - 1e-7 <= low
    assert high <= most + 1e-7
    if entry.method == "auto":
        assert low - 1e-9 <= entry.value <= high + 1e-9


@pytest.mark.parametrize("edge", EDGES)
def test_every_method_answers_at_the_edge_with_sane_limits(edge):
    counts = EDGES[edge]()
    methods = [name for name in REGISTRY if all(map(estimators.parse(name).supports, METRICS))]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = unsample.estimate(counts, metrics=METRICS, method=["auto", *methods])
    for entry in result.entries:
        _check(entry, counts.largest_catalogue)
        wide, narrow = entry.interval(0.99, population=False), entry.interval(0.5, population=False)
        assert wide[0] <= narrow[0] <= narrow[1] <= wide[1]
    assert "nan" not in str(result)
    assert json.loads(result.to_json())["users"] == counts.total
    strange = [note for note in caught if not issubclass(note.category, UnsampleWarning)]
    assert not strange, [str(note.message) for note in strange]
    if edge != "catalogues from 11 to 10^9":
        assert "did not converge" not in str(result.warnings)


@pytest.mark.filterwarnings("ignore:these sampled ranks are unlike")
def test_a_model_whose_targets_all_come_first_is_good_and_may_be_nearly_perfect():
    """No curve of the corpus is so steep, and nothing varies."""
    for items, users in ((1000, 60), (3706, 6040), (100_000, 10**5)):
        counts = RankCounts.from_ranks([1], items=items, sampled=99, count=[users])
        result = unsample.estimate(counts, metrics=["Recall@1", "NDCG@10", "Recall@1000"])
        for entry in result.values():
            low, high = entry.interval()
            assert entry.source == "prior"
            assert entry.bounds()[1] == 1.0
            assert 0.0 <= low <= entry.value <= high <= 1.0
            assert low < high or entry.metric.k == items
        assert result["NDCG@10"].interval()[1] > 0.8
        assert result["Recall@1000"].value > 0.9


@pytest.mark.filterwarnings("ignore:these sampled ranks are unlike")
def test_linear_methods_are_clipped_into_the_range_and_say_so():
    wanted = [f"Recall@{k}" for k in (1, 10, 50, 100, 200, 400)]
    with pytest.warns(UnsampleWarning, match=r"outside the metric's range, and was clipped"):
        result = unsample.estimate([1] * 500, items=3706, sampled=99, metrics=wanted, method="cls")
    assert {0.0, 1.0} & {entry.value for entry in result.entries}
    assert all(0.0 <= entry.value <= 1.0 for entry in result.entries)


@pytest.mark.filterwarnings("ignore:these sampled ranks are unlike")
def test_where_no_solver_comes_to_an_end_the_interval_is_as_wide_as_the_metric(monkeypatch):
    class Endless:
        status, message, fun = 1, "Iteration limit", None

    monkeypatch.setattr(scipy.optimize, "linprog", lambda *_, **__: Endless)
    result = unsample.estimate([1, 2, 3, 9] * 50, items=400, sampled=30, metrics="Recall@40")
    assert result["Recall@40"].bounds() == (0.0, 1.0)


def test_a_program_near_the_border_ends():
    """Solvers went round in circles on these ranks, for half a minute or for ever."""
    histogram = [
        963, 671, 595, 418, 376, 325, 279, 251, 214, 182, 146, 133, 122, 98, 81, 78, 59, 62, 48, 46,
        32, 31, 28, 23, 33, 28, 33, 40, 54, 49, 49, 68, 68, 47, 57, 52, 47, 36, 31, 28, 14, 14, 3,
        9, 8, 4, 3, 2, 2, 0, 0,
    ]  # fmt: skip
    counts = RankCounts.from_histogram(histogram, SamplingModel(3706, 50))
    low, high = Bounds.of(counts, [20]).of_metric(parse("Recall@20"))
    assert low == 0.0
    assert high == pytest.approx(0.35, abs=0.2)


@pytest.mark.parametrize(
    ("first", "second"), [([1], [2]), ([1] * 60, [1] * 60), ([1, 100] * 30, [100, 1] * 30)]
)
@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_comparisons_at_the_edge_are_finite_and_in_order(first, second):
    models = {"A": first, "B": second}
    result = unsample.compare(models, items=1000, sampled=99, metrics=METRICS)
    for pair in result.differences:
        assert -1 <= pair.low <= pair.value <= pair.high <= 1
        assert pair.probability is None or 0 <= pair.probability <= 1
        if first == second:
            assert (pair.value, pair.winner) == (0.0, None)
            # Each model has draws of its own of what no sample shows.
            assert pair.probability is None or pair.probability == pytest.approx(0.5, abs=0.03)
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_evaluations_of_two_items_and_of_equal_scores_are_finite(design):
    subnormal = np.float32(1e-45)
    for items, scores in ((2, np.zeros((3, 2), np.float32)), (40, np.full((3, 40), subnormal))):
        scorer = lambda users, asked, scores=scores: scores[users, asked]  # noqa: E731
        targets = np.arange(3), np.zeros(3, dtype=int)
        result = unsample.evaluate(scorer, targets, items=items, design=design, metrics="NDCG@2")
        _check(result["NDCG@2"], items)

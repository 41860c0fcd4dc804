"""Comparing models: differences, verdicts, pairing, multiplicity, and the gate."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import unsample
from tests.contradictions import contradictions
from unsample.bounds import Bounds
from unsample.counts import RankCounts, Targets
from unsample.errors import InputError, UnsampleWarning
from unsample.lab import load_ranks
from unsample.questions.compare.differences import places_of, tied_groups
from unsample.questions.compare.result import tied_sentence
from unsample.report import view_of
from unsample.sampling import SamplingModel, draw_sampled_ranks

ITEMS, SAMPLED, USERS = 400, 60, 1500
METRICS = ["Recall@40", "NDCG@100"]


@pytest.fixture(scope="module")
def ranks():
    """Sampled ranks of three models on the same users: two near each other, one far behind."""
    rng = np.random.default_rng(5)
    place = rng.random(USERS)
    ease, behind = (
        np.ceil(ITEMS * stats.beta.ppf(place, *shape)).astype(int).clip(1, ITEMS)
        for shape in ((0.5, 3.0), (0.6, 1.6))
    )
    near = (ease + rng.integers(-2, 3, USERS)).clip(1, ITEMS)
    full = {"first": ease, "near": near, "behind": behind}
    return {name: SamplingModel(ITEMS, SAMPLED).draw(given, rng=3) for name, given in full.items()}


@pytest.fixture(scope="module")
def result(ranks):
    return unsample.compare(ranks, items=ITEMS, sampled=SAMPLED, metrics=METRICS)


def test_a_clear_winner_is_called_and_a_close_race_is_not(result):
    for metric in METRICS:
        assert result.difference("first", "behind", metric).winner == "first"
        assert result.difference("behind", "near", metric).winner == "near"
        close = result.difference("first", "near", metric)
        assert close.winner is None
        assert close.low < 0 < close.high
        assert result.winner(metric) is None
    with pytest.raises(KeyError, match="no comparison on AUC; there are Recall@40, NDCG@100"):
        result.winner("AUC")


def test_differences_turn_around_with_their_models(result):
    one = result.difference("first", "behind", "HR@40")
    other = result.difference("behind", "first", "HR@40")
    assert (other.value, other.low, other.high) == (-one.value, -one.high, -one.low)
    assert other.interval(0.8) == tuple(-end for end in one.interval(0.8)[::-1])
    assert (other.probability, other.winner) == (1 - one.probability, one.winner)
    with pytest.raises(KeyError, match="no difference of first and nobody"):
        result.difference("first", "nobody", "HR@40")


@pytest.mark.parametrize("level", [0.6, 0.9, 0.999])
def test_many_pairs_ask_for_more_than_a_probability_of_95(ranks, level):
    """Holm's steps: of three pairs, the surest needs a third of the error."""
    options = {"items": ITEMS, "sampled": SAMPLED, "metrics": "Recall@40"}
    found = unsample.compare(ranks, **options, level=level).differences
    doubts = np.array([min(pair.probability, 1 - pair.probability) for pair in found])
    order, steps = np.argsort(doubts), np.empty(3)
    steps[order] = np.maximum.accumulate([3, 2, 1] * doubts[order])
    assert [pair.winner is not None for pair in found] == (steps <= 1 - level).tolist()


def test_verdicts_read_as_sentences(result, ranks):
    # What holds for several metrics is said once.
    (sentence,) = result.sentences()
    assert re.fullmatch(
        "(first and near|near and first) are tied by their full-catalogue Recall@40, NDCG@100 "
        r"\(95 %, corrected for all pairs\); both beat behind\.",
        sentence,
    )
    two = {name: ranks[name] for name in ("first", "behind")}
    clear = unsample.compare(two, items=ITEMS, sampled=SAMPLED, metrics="Recall@100")
    assert clear.winner("HR@100") == "first"
    assert clear.sentences()[0].startswith("first has the highest full-catalogue Recall@100 (95 %")


# -- places ---------------------------------------------------------------------------------------


def test_models_have_places_and_models_whose_places_overlap_are_tied(result):
    tied = {"first": (1, 2), "near": (1, 2), "behind": (3, 3)}
    for metric in METRICS:
        assert result.places(metric) == tied
    models, differences = (table.with_ranges() for table in view_of(result).tables)
    for model, places in zip(models.cells("model"), models.cells("places"), strict=True):
        assert str(places) == ("3" if str(model) == "behind" else "1\N{EN DASH}2")
    told = [str(each) for each in differences.cells("differ")]
    won = [pair.winner is not None for pair in result.differences]
    assert [each == "yes" for each in told] == won
    assert {*told} == {"", "yes"}
    text = str(result)
    assert "places: between which each model lies" in text
    assert re.search(r"behind +0\.\d+ +\S+ \.\. \S+ +3 +<1 %", text)


@pytest.mark.parametrize(
    ("won", "places", "said"),
    [
        ({}, {"a": (1, 3), "b": (1, 3), "c": (1, 3)}, "a, b and c are tied by their X (sure)."),
        (
            {("a", "c"): "a"},
            {"a": (1, 2), "b": (1, 3), "c": (2, 3)},
            "a, b and c are tied by their X (sure); of these, c is beaten by some.",
        ),
        (
            {("a", "c"): "a", ("b", "c"): "b"},
            {"a": (1, 2), "b": (1, 2), "c": (3, 3)},
            "a and b are tied by their X (sure); both beat c.",
        ),
        (
            {("a", "b"): "a", ("a", "c"): "a"},
            {"a": (1, 1), "b": (2, 3), "c": (2, 3)},
            "a leads by their X (sure); it beats b and c.",
        ),
        (
            {("a", "b"): "a", ("b", "c"): "b", ("a", "c"): "c"},
            {"a": (2, 2), "b": (2, 2), "c": (2, 2)},
            "a, b and c are tied by their X (sure); of these, a, b and c are beaten by some.",
        ),
    ],
)
def test_places_follow_from_verdicts_and_sentences_from_places(result, won, places, said):
    template = result.differences[0]
    pairs = [
        replace(template, metric="X", a=a, b=b, winner=won.get((a, b)))
        for a, b in (("a", "b"), ("a", "c"), ("b", "c"))
    ]
    assert places_of(pairs, ("a", "b", "c"), metric="X") == places
    assert tied_sentence(["a", "b", "c"], places, of="X", sure="sure") == said


def test_models_on_many_places_are_grouped():
    places = {"d": (4, 4), "c": (2, 3), "b": (2, 3), "a": (1, 1)}
    assert tied_groups(places) == [["a"], ["b", "c"], ["d"]] or tied_groups(places) == [
        ["a"],
        ["c", "b"],
        ["d"],
    ]
    chain = {"a": (1, 2), "b": (1, 3), "c": (2, 3)}
    assert tied_groups(chain) == [["a", "b", "c"]]


# -- one law --------------------------------------------------------------------------------------

MANY = ["Recall@10", "NDCG@10", "Recall@100", "AUC"]
REAL = {"items": 3706, "sampled": 99, "protocol": "all", "metrics": MANY}


@pytest.fixture(scope="module")
def real():
    """Sampled ranks of three recommenders on the same users, with as many candidates for each."""
    full = {
        name: load_ranks("ml-1m", name, candidates="all").ranks[:2000]
        for name in ("ease", "als", "neumf")
    }
    return {
        name: draw_sampled_ranks(each, items=3706, sampled=99, rng=place)
        for place, (name, each) in enumerate(full.items())
    }


@pytest.fixture(scope="module")
def of_real(real):
    return unsample.compare(real, **REAL)


def test_nothing_that_is_said_contradicts_anything_else(result, of_real, real):
    assert contradictions(result) == contradictions(of_real) == []
    alone = unsample.estimate(real["als"], **REAL)
    # A model's own numbers are the same alone and in company, to the last digit.
    assert of_real.estimates["als"].to_json() == alone.to_json()
    for metric in MANY:
        best = [row.probability for row in of_real.standings if row.metric == metric]
        assert sum(best) == pytest.approx(1.0, abs=0.02)


def test_a_contradiction_would_be_seen(of_real):
    pair = of_real.difference("ease", "neumf", "NDCG@10")
    wrong = (replace(pair, probability=0.999), replace(pair, low=-1.2))
    for planted in wrong:
        assert contradictions(replace(of_real, differences=(planted,), standings=()))
    first = replace(of_real.standings[0], probability=1.0, low=0.9)
    assert contradictions(replace(of_real, standings=(first,)))


def test_the_order_of_models_changes_nothing_and_a_third_one_hardly_anything(of_real, real):
    turned = unsample.compare(dict(reversed(real.items())), **REAL)
    two = unsample.compare({"neumf": real["neumf"], "ease": real["ease"]}, **REAL)
    for metric in MANY:
        before = of_real.difference("ease", "neumf", metric)
        pair = turned.difference("ease", "neumf", metric)
        assert pair.probability == pytest.approx(before.probability, abs=1e-12)
        assert (pair.low, pair.high) == pytest.approx((before.low, before.high), abs=1e-12)
        pair = two.difference("ease", "neumf", metric)
        assert pair.value == pytest.approx(before.value, abs=1e-12)
        assert pair.probability == pytest.approx(before.probability, abs=0.02)
        room = 0.06 * (before.high - before.low)
        assert (pair.low, pair.high) == pytest.approx((before.low, before.high), abs=room)
    assert contradictions(turned) == contradictions(two) == []


@pytest.mark.parametrize("metric", ["Recall@100", "AUC"])
def test_pairs_are_of_users_in_whatever_order_they_come(real, metric):
    mixed = np.random.default_rng(1).permutation(2000)
    models = {"ease": real["ease"], "als": real["als"][mixed]}
    (paired,), (apart,) = (
        unsample.compare(models, users=users, **REAL | {"metrics": metric}).differences
        for users in ({"ease": np.arange(2000), "als": mixed}, None)
    )
    assert np.ptp(paired.interval()) < 0.95 * np.ptp(apart.interval())
    two = {name: real[name] for name in models}
    again = unsample.compare(two, **REAL | {"metrics": metric}).differences[0]
    assert again.probability == pytest.approx(paired.probability, abs=1e-9)


def test_few_users_have_wide_intervals_and_probabilities_of_their_own(real):
    some = {"ease": real["ease"], "als": real["als"], "few": real["neumf"][:40]}
    users = {name: np.arange(len(each)) for name, each in some.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        found = unsample.compare(some, users=users, **REAL)
    assert contradictions(found) == []
    for metric in MANY:
        entry = found.estimates["few"][metric]
        assert entry.source == ("mean" if metric == "AUC" else "prior")
        assert 0 < found.probability("few", "ease", metric) < 1
        wide, narrow = (
            found.difference(*two, metric) for two in (("few", "ease"), ("als", "ease"))
        )
        assert np.ptp(wide.interval()) > np.ptp(narrow.interval())


def test_without_a_prior_probabilities_are_withheld(real):
    apart = unsample.compare(real, **REAL | {"metrics": "Recall@1000"}, prior=None)
    assert all(pair.probability is None for pair in apart.differences)
    assert all(row.probability is None for row in apart.standings)
    assert contradictions(apart) == []


# -- results of several kinds ---------------------------------------------------------------------


def test_full_ranks_and_sampled_ones_are_compared():
    rng = np.random.default_rng(2)
    full = np.ceil(ITEMS * rng.random(USERS) ** 3).astype(int)
    drawn = SamplingModel(ITEMS, SAMPLED).draw(full, rng=1)
    others = {
        "sampled": Targets(drawn, ITEMS, SAMPLED),
        "full": Targets(full, ITEMS, ITEMS - 1, replacement=False),
    }
    found = unsample.compare(others, metrics=METRICS)
    assert contradictions(found) == []
    for metric in METRICS:
        # The same ranks: neither is better.
        assert found.winner(metric) is None
        assert {row.source for row in found.standings if row.metric == metric} == {"prior", "mean"}


class _Noisy:
    """A scorer that ranks each target about as well as another one does."""

    def __init__(self, seed: float, better: float) -> None:
        self.scores = np.random.default_rng(seed).normal(size=(400, 300))
        self.scores[np.arange(400), np.arange(400) % 300] += better

    def __call__(self, users, items):
        return self.scores[users, items]


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_sampled_guided_and_exact_results_compare_with_each_other():
    pairs, options = (np.arange(400), np.arange(400) % 300), {"items": 300, "metrics": ["NDCG@10"]}
    models = {name: _Noisy(place, better) for place, (name, better) in enumerate(
        {"exact": 2.0, "sampled": 2.0, "guided": 1.0}.items()
    )}  # fmt: skip
    made = {
        "exact": unsample.evaluate(models["exact"], pairs, design="exact", **options),
        "sampled": unsample.evaluate(
            models["sampled"], pairs, design=unsample.designs.Fixed(30), **options
        ),
        "guided": unsample.evaluate(
            models["guided"], pairs, design="guided", budget=40_000, rng=0, **options
        ),
    }
    sources = {name: each["NDCG@10"].source for name, each in made.items()}
    assert sources["exact"] == "mean"
    assert sources["sampled"] == "prior"
    found = unsample.compare(made)
    assert contradictions(found) == []
    assert found.places("NDCG@10")["guided"][0] > 1
    truth = {
        name: unsample.evaluate(each, pairs, design="exact", **options)["NDCG@10"].value
        for name, each in models.items()
    }
    for pair in found.differences:
        low, high = pair.interval(0.999)
        assert low < truth[pair.a] - truth[pair.b] < high
        assert 0.0 <= pair.probability <= 1.0
    best = [row.probability for row in found.standings]
    assert sum(best) == pytest.approx(1.0, abs=0.02)
    # In whatever order they come.
    turned = unsample.compare(dict(reversed(made.items())))
    for pair in found.differences:
        other = turned.difference(pair.a, pair.b, "NDCG@10")
        assert other.probability == pytest.approx(pair.probability, abs=1e-9)


def _known(ranks):
    return RankCounts.from_ranks(ranks, items=50, sampled=49, replacement=False)


@pytest.fixture(scope="module")
def given(ranks):
    """Return all that may stand for a model, by a word for it."""
    design, targets = {"items": ITEMS, "sampled": SAMPLED}, (np.arange(60), np.arange(60))
    printed = {"numbers": {"HR@5": "0.5"}, **design, "users": USERS, "metrics": METRICS}
    return {
        "ranks": ranks["first"],
        "estimates": unsample.estimate(ranks["first"], **design),
        "evaluation": unsample.evaluate(np.eye(60), targets, items=60, metrics="Recall@10"),
        "paper": unsample.published(**printed),
        "two papers": [unsample.published(**printed)] * 2,
        "paper on all": unsample.published(**printed, protocol="all"),
        "full": Targets(ranks["near"], ITEMS, ITEMS - 1, replacement=False),
        "sampled": Targets(ranks["near"], ITEMS, SAMPLED),
        "other catalogue": _known(ranks["near"].clip(1, 50)),
    }


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
@pytest.mark.parametrize(
    ("first", "second", "options", "message"),
    [
        ("ranks", None, {}, "models must be at least two"),
        ("ranks", "ranks", {"level": 0.5}, "level must be above 0.5"),
        ("ranks", "ranks", {"items": None}, "items must be given"),
        ("ranks", "ranks", {"users": {"A": range(USERS)}}, "none for B"),
        ("estimates", "estimates", {}, "A must be ranks or an evaluation, got estimates"),
        ("evaluation", "evaluation", {}, r"evaluated for \(Recall@10\), got Recall@40"),
        ("ranks", "paper", {}, "results of published, got A: arrays, B: published"),
        ("two papers", "paper", {}, "A must be one result of published, got 2"),
        ("paper", "paper on all", {}, "got A not stated and B all"),
        ("paper", "paper", {"metrics": "AP@7"}, "got AP@7; call published for these too"),
        ("full", "other catalogue", {}, "one catalogue"),
    ],
)
def test_what_cannot_be_compared_is_refused(given, first, second, options, message):
    models = {name: given[each] for name, each in (("A", first), ("B", second)) if each}
    design = {"items": ITEMS, "sampled": SAMPLED} if first == "ranks" else {}
    with pytest.raises(InputError, match=message):
        unsample.compare(models, **{"metrics": METRICS, **design, **options})


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_papers_and_models_of_other_users_are_compared_unpaired(ranks):
    design = {"items": ITEMS, "sampled": SAMPLED}
    given = {"numbers": {"HR@1": "0.6"}, "users": USERS, "metrics": "Recall@40"}
    low = unsample.published(**given | {"numbers": {"HR@1": "0.1"}}, **design)
    papers = unsample.compare({"low": low, "high": unsample.published(**given, **design)})
    others = {"low": ranks["behind"][:-1], "high": ranks["first"]}
    for found in (papers, unsample.compare(others, metrics="Recall@40", **design)):
        assert not found.paired
        assert found.winner("Recall@40") == "high"


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_full_ranks_that_are_all_alike_leave_room_for_probability():
    one = unsample.compare({"A": _known([1]), "B": _known([9])}, metrics="Recall@5").differences[0]
    assert one.low < 0 < one.high
    many = unsample.compare(
        {"A": _known([1] * 80), "B": _known([9] * 80), "C": _known([1, 9] * 40)}, metrics="Recall@5"
    )
    assert many.winner("Recall@5") == "A"
    assert 0 < many.difference("A", "B", "Recall@5").low < 1
    assert sum(row.probability for row in many.standings) == pytest.approx(1.0, abs=0.01)


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_of_many_models_the_differences_from_the_highest_are_shown():
    models = {f"m{place:03d}": _known(np.arange(1, 41) + place // 3) for place in range(30)}
    found = unsample.compare(models, metrics="Recall@5")
    assert len(found.differences) == 435
    text = str(found)
    assert "m000 - m029" in text
    assert "m001 - m029" not in text
    assert "differences: from the highest estimate" in text
    assert " and 10 others" in found.sentences()[0]
    with pytest.raises(InputError, match="at least two and at most 100, got 101"):
        unsample.compare(dict.fromkeys(map(str, range(101)), models["m000"]))


# -- the gate -------------------------------------------------------------------------------------


def test_a_gate_fails_where_the_probability_passes_the_level(result):
    gate = result.gate("Recall@40", baseline="first")
    assert gate.failed
    assert gate.verdict == "failed"
    assert gate.worse == ("behind",)
    for model in ("near", "behind"):
        pair = result.difference(model, "first", "Recall@40")
        assert gate.probabilities[model] == pytest.approx(1 - pair.probability, abs=1e-12)
        assert (pair.winner == "first") == (model in gate.worse)
    assert str(gate) == (
        "Gate failed: probability of a lower Recall@40 than first's: behind more than 99 %; the "
        "gate closes at 95 % for 2 differences together."
    )
    passed = result.gate("Recall@40", baseline="behind", fail_if_unknown=True)
    assert (passed.failed, passed.verdict, passed.unknown) == (False, "passed", ())
    assert str(passed).startswith("Gate passed: probability of a lower Recall@40 than behind's")
    with pytest.raises(InputError, match="fail_if_unknown must be"):
        result.gate("Recall@40", baseline="behind", fail_if_unknown="yes")


def test_a_margin_is_a_share_of_the_baseline(result):
    base = result.estimates["first"]["Recall@40"].value
    pair = result.difference("behind", "first", "Recall@40")
    shares = (np.arange(1, 2000) / 2000).tolist()
    # The difference, drawn at its quantiles.
    sign = pair.sign
    drawn = np.array([sign * pair.uncertain.quantile(each) for each in shares])
    assert np.median(drawn) == pytest.approx(pair.value, rel=5e-3)
    for margin in (0.0, 0.2, 0.4, 0.5):
        gate = result.gate("Recall@40", baseline="first", margin=margin)
        assert gate.probabilities["behind"] == pytest.approx(
            (drawn < -margin * base).mean(), abs=0.01
        )
    close = result.gate("Recall@40", baseline="first", margin=0.9)
    assert str(close).startswith(
        "Gate passed: probability of a lower Recall@40 than first's by more"
    )


#: Models of which nothing is known but bounds: those of the first are far from those of others.
BY_BOUNDS = {
    "base": np.ones(200, dtype=int),
    "new": np.full(200, 100),
    "like": np.repeat([1, 2], 100),
}


def _by_bounds(*names):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        return unsample.compare(
            {name: BY_BOUNDS[name] for name in names},
            metrics=["Recall@500", "Recall@1"],
            items=1000,
            sampled=99,
            prior=None,
        )


def test_a_gate_fails_where_bounds_are_apart():
    by_bounds = _by_bounds("base", "new", "like")
    gate = by_bounds.gate("Recall@500", baseline="base")
    assert gate.probabilities == {"new": None, "like": None}
    assert gate.worse == ("new",)
    assert by_bounds.difference("base", "new", "Recall@500").winner == "base"
    assert "new known by bounds alone" in str(gate)
    # A probability is never rounded up to the level.
    close = replace(gate, probabilities={"new": 0.9499}, worse=(), unknown=())
    assert "new 94.9 %; the gate closes at 95 %." in str(close)


def test_a_gate_never_passes_what_it_cannot_see():
    by_bounds = _by_bounds("base", "like")
    gate = by_bounds.gate("Recall@1", baseline="base")
    assert (gate.verdict, gate.failed, gate.worse) == ("unknown", False, ())
    assert gate.unknown == ("like",)
    assert str(gate).startswith("Gate cannot tell: probability of a lower Recall@1 than base's: ")
    assert "passed" not in str(gate)
    strict = by_bounds.gate("Recall@1", baseline="base", fail_if_unknown=True)
    assert (strict.verdict, strict.failed) == ("unknown", True)
    assert "and where it cannot tell" in str(strict)
    found = replace(by_bounds, gated=strict).to_dict()["gate"]
    assert (found["failed"], found["verdict"], found["unknown"]) == (
        True,
        "unknown",
        list(gate.unknown),
    )


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (
            "--baseline first --fail-if-worse NDCG@10",
            1,
            "Gate failed: probability of a lower NDCG@10",
        ),
        ("--baseline behind --fail-if-worse AP@10 --margin 0.01 -m AUC", 0, "Gate passed"),
        ("--baseline behind --fail-if-worse AP@10 --fail-if-unknown", 0, "Gate passed"),
        ("--baseline first --fail-if-worse Recall@1 --prior none", 0, "Gate cannot tell"),
        (
            "--baseline first --fail-if-worse Recall@1 --prior none --fail-if-unknown",
            1,
            "Gate cannot tell",
        ),
        ("--fail-if-worse NDCG@10", 2, "must be given together"),
        ("--margin 0.1", 2, "--margin must be left out without"),
        ("--fail-if-unknown", 2, "--fail-if-unknown must be left out without --fail-if-worse"),
        ("--on-each", 2, "--on-each must be left out without --fail-if-worse"),
        ("--baseline first --fail-if-worse AUC --on-each", 2, "must be given with --across"),
        ("--baseline nobody --fail-if-worse NDCG@10", 2, "got 'nobody'"),
        ("--baseline first --fail-if-worse NDCG@10 --margin 2", 2, "margin must be"),
    ],
)
def test_the_command_exits_with_one_where_the_gate_fails(ranks, tmp_path, run, options, code, said):
    paths = [tmp_path / f"{name}.csv" for name in ("first", "behind")]
    for path in paths:
        path.write_text("rank\n" + "\n".join(map(str, ranks[path.stem])), encoding="utf-8")
    design = ["--items", ITEMS, "--sampled", SAMPLED]
    found, out, err = run("compare", *paths, *design, *options.split())
    assert found == code
    assert said in (err if code == 2 else out)


@pytest.mark.parametrize("prior", ["shipped", None])
def test_bounds_at_a_level_are_computed_once(ranks, monkeypatch, prior):
    asked = []
    of_metric = Bounds.of_metric

    def counting(bounds, metric, level=0.95):
        asked.append((bounds.counts, metric, level))
        return of_metric(bounds, metric, level)

    monkeypatch.setattr(Bounds, "of_metric", counting)
    found = unsample.compare(
        ranks, items=ITEMS, sampled=SAMPLED, metrics=METRICS, prior=prior, level=0.9
    )
    found.to_json()
    str(found)
    different = {(id(counts), metric, level) for counts, metric, level in asked}
    assert len(asked) == len(different)

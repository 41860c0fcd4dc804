"""Comparing models: differences, verdicts, pairing, multiplicity, and the gate."""

import json
import math
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import unsample
from unsample.answers import Gate
from unsample.errors import DesignError, InputError, UnsampleWarning
from unsample.evidence import RankCounts, Targets
from unsample.law import Law

ITEMS, SAMPLED, USERS = 400, 60, 1500
METRICS = ["Recall@40", "NDCG@100"]


@pytest.fixture(scope="module")
def full():
    """Full ranks of three models on the same users: two near each other, one far behind."""
    rng = np.random.default_rng(5)
    place = rng.random(USERS)
    ease, behind = (
        np.ceil(ITEMS * stats.beta.ppf(place, *shape)).astype(int).clip(1, ITEMS)
        for shape in ((0.5, 3.0), (0.6, 1.6))
    )
    near = (ease + rng.integers(-2, 3, USERS)).clip(1, ITEMS)
    return {"first": ease, "near": near, "behind": behind}


@pytest.fixture(scope="module")
def ranks(full):
    design = Law(ITEMS, SAMPLED)
    return {name: design.draw(given, rng=3) for name, given in full.items()}


@pytest.fixture(scope="module")
def result(ranks):
    return unsample.compare(ranks, items=ITEMS, sampled=SAMPLED, metrics=METRICS)


def test_a_clear_winner_is_called_and_a_close_race_is_not(result, full):
    for metric in METRICS:
        assert result.difference("first", "behind", metric).winner == "first"
        assert result.difference("behind", "near", metric).winner == "near"
        close = result.difference("first", "near", metric)
        assert close.winner is None
        assert close.low < 0 < close.high
        assert result.winner(metric) is None
    truth = [
        unsample.exact(full[name], items=ITEMS, metrics=METRICS) for name in ("first", "behind")
    ]
    for metric in METRICS:
        difference = result.difference("first", "behind", metric)
        assert difference.low < truth[0][metric].value - truth[1][metric].value < difference.high


def test_differences_turn_around_with_their_models(result):
    one, other = (
        result.difference(a, b, "HR@40") for a, b in (("first", "behind"), ("behind", "first"))
    )
    assert other.value == -one.value
    assert (other.low, other.high) == (-one.high, -one.low)
    assert other.interval(0.8) == tuple(-end for end in one.interval(0.8)[::-1])
    assert other.chance == 1 - one.chance
    assert other.winner == one.winner
    with pytest.raises(KeyError, match="no difference of first and nobody"):
        result.difference("first", "nobody", "HR@40")


def test_what_cannot_be_matched_is_compared_unpaired_and_says_so(ranks):
    design = {"items": ITEMS, "sampled": SAMPLED}
    counts = {name: RankCounts.from_ranks(given, **design) for name, given in ranks.items()}
    with pytest.warns(UnsampleWarning, match="unpaired"):
        result = unsample.compare(counts, metrics="Recall@40")
    assert not result.paired
    assert any("unpaired" in text for text in result.warnings)
    assert result.difference("first", "behind", "Recall@40").winner == "first"
    models = {"a": ranks["first"], "b": ranks["behind"][:-1]}
    with pytest.warns(UnsampleWarning, match="do not match"):
        result = unsample.compare(models, **design, metrics="Recall@40")
    assert not result.paired
    assert "unpaired" in [note.name for note in result.notes]
    assert not math.isnan(result.differences[0].low)


@pytest.mark.parametrize("level", [0.6, 0.9, 0.999])
def test_many_pairs_ask_for_more_than_a_chance_of_95(ranks, level):
    """Holm's steps: of three pairs, the surest needs a third of the error."""
    options = {"items": ITEMS, "sampled": SAMPLED, "metrics": "Recall@40"}
    found = unsample.compare(ranks, **options, level=level).differences
    doubts = np.array([min(pair.chance, 1 - pair.chance) for pair in found])
    order, steps = np.argsort(doubts), np.empty(3)
    steps[order] = np.maximum.accumulate([3, 2, 1] * doubts[order])
    assert [pair.winner is not None for pair in found] == (steps <= 1 - level).tolist()


def test_verdicts_read_as_sentences(result, ranks):
    for sentence in result.sentences():
        assert re.match(
            "(first and near|near and first) cannot be told apart by their full", sentence
        )
    two = {name: ranks[name] for name in ("first", "behind")}
    clear = unsample.compare(two, items=ITEMS, sampled=SAMPLED, metrics="Recall@100")
    assert clear.winner("HR@100") == "first"
    assert clear.sentences()[0].startswith("first has the highest full-catalogue Recall@100 (95 %")
    won = {("first", "near"): "first", ("first", "behind"): "behind", ("near", "behind"): "near"}
    pairs = [replace(pair, winner=won[pair.a, pair.b]) for pair in result.differences]
    circle = replace(result, differences=tuple(pairs))
    # What holds for several metrics is said once.
    assert circle.sentences() == ("No model can be called the best on Recall@40, NDCG@100.",)


def _counts_among(items):
    return RankCounts.from_ranks([1, 2], items=items, sampled=9)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"models": {"only": [1]}}, InputError, "models must be at least two"),
        ({"models": [[1], [2]]}, InputError, "got list"),
        ({"level": 1.0}, InputError, "level must be"),
        ({"level": 0.5}, InputError, "level must be above 0.5"),
        ({"items": None}, DesignError, "items must be given"),
        ({"users": {"a": [1, 2]}}, InputError, "none for b"),
        ({"models": {"a": [1, 2], "b": [1, 99]}}, InputError, "99"),
        ({"models": {"a": _counts_among(100), "b": _counts_among(200)}}, DesignError, "one catal"),
    ],
)
def test_bad_input_is_named(change, error, message):
    options = {"models": {"a": [1, 2], "b": [2, 3]}, "items": 100, "sampled": 9, **change}
    models = options.pop("models")
    with pytest.raises(error, match=message):
        unsample.compare(models, **options)


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_a_handful_of_users_proves_little():
    options = {"items": 1000, "sampled": 99, "metrics": "Recall@100"}
    one = unsample.compare({"A": [1], "B": [100]}, **options).differences[0]
    assert one.winner is None
    assert (one.low, one.high) == pytest.approx((-1.0, 1.0), abs=0.1)
    forty = unsample.compare({"A": [1] * 40, "B": [100] * 40}, **options).differences[0]
    assert forty.winner == "A"
    assert 0 < forty.low < forty.value
    # Ranks that are all alike are no proof that there is no chance in them.
    alike = unsample.compare({"A": [1] * 60, "B": [2] * 60}, **options).differences[0]
    assert alike.high - alike.low > 0.02


def test_estimates_and_unknown_metrics_are_refused_by_name(ranks, result):
    estimates = unsample.estimate(ranks["first"], items=ITEMS, sampled=SAMPLED)
    with pytest.raises(InputError, match="A must be ranks or an evaluation, got estimates"):
        unsample.compare({"A": estimates, "B": estimates})
    scores, targets = np.eye(60), (np.arange(60), np.arange(60))
    found = unsample.evaluate(
        (scores, scores), targets, items=60, design="exact", metrics="Recall@10"
    )
    with pytest.raises(InputError, match="evaluated for \\(Recall@10\\), got NDCG@5"):
        unsample.compare({"A": found, "B": found}, metrics="NDCG@5")
    with pytest.raises(KeyError, match="no comparison on AUC; there are Recall@40, NDCG@100"):
        result.winner("AUC")


def _known(ranks):
    return RankCounts.from_ranks(ranks, items=50, sampled=49, replacement=False)


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_full_ranks_that_are_all_alike_leave_room_for_chance():
    one = unsample.compare({"A": _known([1]), "B": _known([9])}, metrics="Recall@5").differences[0]
    assert one.winner is None
    assert one.low < 0 < one.high
    many = unsample.compare(
        {"A": _known([1] * 80), "B": _known([9] * 80), "C": _known([1, 9] * 40)}, metrics="Recall@5"
    )
    assert many.winner("Recall@5") == "A"
    assert 0 < many.difference("A", "B", "Recall@5").low < 1
    assert sum(row.chance for row in many.standings) == pytest.approx(1.0, abs=0.01)


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_what_is_known_in_different_ways_is_refused(full, ranks):
    design = {"items": ITEMS, "sampled": SAMPLED}
    paper = unsample.published({"HR@5": "0.5"}, **design, users=USERS, metrics=METRICS)
    with pytest.raises(InputError, match="results of published, got A: arrays, B: published"):
        unsample.compare({"A": ranks["first"], "B": paper}, **design)
    other = unsample.published(
        {"HR@5": "0.4"}, **design, users=USERS, metrics=METRICS, candidates="all"
    )
    with pytest.raises(DesignError, match="got A not stated and B all"):
        unsample.compare({"A": paper, "B": other})
    with pytest.raises(InputError, match="A must be one result of published, got 2"):
        unsample.compare({"A": [paper, paper], "B": paper})
    known = Targets(full["first"], ITEMS, ITEMS - 1, replacement=False)
    models = {"A": known, "B": Targets(ranks["near"], ITEMS, SAMPLED)}
    with pytest.raises(DesignError, match="compared on Recall@40, got A in full, B sampled"):
        unsample.compare(models, metrics=METRICS)
    # Their means of sampled ranks are known alike.
    assert 0 < unsample.compare(models, metrics="AUC").differences[0].chance < 1


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_of_many_models_the_differences_from_the_highest_are_shown():
    counts = _known(np.arange(1, 41))
    models = {f"m{place:03d}": _known(np.arange(1, 41) + place // 3) for place in range(30)}
    found = unsample.compare(models, metrics="Recall@5")
    assert len(found.differences) == 435
    text = str(found)
    assert "m000 - m029" in text
    assert "m001 - m029" not in text
    assert "differences: from the highest estimate" in text
    assert " and 10 others" in found.sentences()[0]
    with pytest.raises(InputError, match="at least two and at most 100, got 101"):
        unsample.compare({f"{place}": counts for place in range(101)})


# -- the gate -------------------------------------------------------------------------------------


def test_a_gate_fails_where_the_chance_passes_the_level(result):
    gate = result.gate("Recall@40", baseline="first")
    assert gate.failed
    assert gate.worse == ("behind",)
    for model in ("near", "behind"):
        pair = result.difference(model, "first", "Recall@40")
        assert gate.chances[model] == pytest.approx(1 - pair.chance, abs=1e-12)
        assert (pair.winner == "first") == (model in gate.worse)
    assert str(gate) == (
        "Gate failed: chance of a lower Recall@40 than first's: behind more than 99 %; the gate "
        "closes at 95 % for 2 models together."
    )


def test_a_margin_is_a_share_of_the_baseline(result):
    base = result.estimates["first"]["Recall@40"].value
    pair = result.difference("behind", "first", "Recall@40")
    # The difference, drawn from the sum of its law's parts.
    rng, total = np.random.default_rng(0), pair.law.prior * (5.0 / 3.0) + pair.law.users
    logs = rng.multivariate_normal(pair.law.mean, total, size=100_000)
    drawn = pair.sign * (np.exp(logs[:, 0]) - np.exp(logs[:, 1]))
    for margin in (0.0, 0.2, 0.4, 0.5):
        gate = result.gate("Recall@40", baseline="first", margin=margin)
        assert gate.chances["behind"] == pytest.approx((drawn < -margin * base).mean(), abs=0.01)
    close = result.gate("Recall@40", baseline="first", margin=0.9)
    assert str(close).startswith("Gate passed: chance of a lower Recall@40 than first's by more")


def test_a_gate_fails_where_bounds_are_apart():
    few = {"base": np.ones(45, dtype=int), "new": np.full(45, 100)}
    with pytest.warns(UnsampleWarning, match="45 users are few"):
        found = unsample.compare(few, metrics="Recall@500", items=1000, sampled=99)
    gate = found.gate("Recall@500", baseline="base")
    assert gate.chances == {"new": None}
    assert gate.worse == ("new",)
    assert found.winner("Recall@500") == "base"
    assert "new known by bounds alone" in str(gate)


def test_a_chance_is_never_rounded_up_to_the_level():
    about = {"metric": "HR@1", "baseline": "A", "margin": 0.0, "level": 0.95, "worse": ()}
    assert "B 94.9 %; the gate closes at 95 %." in str(Gate(chances={"B": 0.9499}, **about))


@pytest.fixture
def words(ranks, tmp_path):
    """Return the command that compares two files."""
    paths = [tmp_path / f"{name}.csv" for name in ("first", "behind")]
    for path in paths:
        path.write_text("rank\n" + "\n".join(map(str, ranks[path.stem])), encoding="utf-8")
    return ["compare", *paths, "--items", ITEMS, "--sampled", SAMPLED]


def test_the_command_exits_with_one_where_the_gate_fails(words, run):
    code, out, err = run(*words, "--baseline", "first", "--fail-if-worse", "Recall@40")
    assert (code, err) == (1, "")
    assert "Gate failed: chance of a lower Recall@40 than first's: behind more than 99 %" in out
    more = ["--baseline", "behind", "--fail-if-worse", "Recall@40", "--margin", 0.01]
    code, out, err = run(*words, *more, "--json", "-m", "Recall@100")
    assert code == 0, err
    data = json.loads(out)
    assert [row["metric"] for row in data["standings"]] == ["Recall@100"] * 2 + ["Recall@40"] * 2
    assert (data["gate"]["failed"], data["gate"]["margin"]) == (False, 0.01)
    assert data["gate"]["reason"] in data["sentences"]


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        (["--fail-if-worse", "NDCG@10"], "must be given together"),
        (["--baseline", "first"], "got --baseline first"),
        (["--margin", "0.1"], "--margin must be left out without"),
        (["--baseline", "nobody", "--fail-if-worse", "NDCG@10"], "got 'nobody'"),
        (["--baseline", "first", "--fail-if-worse", "NDGC@10"], "NDGC@10"),
        (["--baseline", "first", "--fail-if-worse", "NDCG@10", "--margin", "2"], "margin must be"),
    ],
)
def test_a_bad_gate_exits_with_two(words, run, gate, message):
    code, out, err = run(*words, *gate)
    assert (code, out) == (2, "")
    assert message in err

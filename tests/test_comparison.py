"""Comparing models: differences, verdicts, pairing, multiplicity, and the gate."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import unsample
from unsample.errors import InputError, UnsampleWarning
from unsample.evidence import RankCounts, Targets
from unsample.law import Law

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
    return {name: Law(ITEMS, SAMPLED).draw(given, rng=3) for name, given in full.items()}


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
    assert (other.chance, other.winner) == (1 - one.chance, one.winner)
    with pytest.raises(KeyError, match="no difference of first and nobody"):
        result.difference("first", "nobody", "HR@40")


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
        "paper on all": unsample.published(**printed, candidates="all"),
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
        ("full", "sampled", {}, "compared on Recall@40, got A in full, B sampled"),
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
def test_full_ranks_that_are_all_alike_leave_room_for_chance():
    one = unsample.compare({"A": _known([1]), "B": _known([9])}, metrics="Recall@5").differences[0]
    assert one.low < 0 < one.high
    many = unsample.compare(
        {"A": _known([1] * 80), "B": _known([9] * 80), "C": _known([1, 9] * 40)}, metrics="Recall@5"
    )
    assert many.winner("Recall@5") == "A"
    assert 0 < many.difference("A", "B", "Recall@5").low < 1
    assert sum(row.chance for row in many.standings) == pytest.approx(1.0, abs=0.01)


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
    # A chance is never rounded up to the level.
    close = replace(gate, chances={"new": 0.9499}, worse=())
    assert "new 94.9 %; the gate closes at 95 %." in str(close)


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        ("--baseline first --fail-if-worse NDCG@10", 1, "Gate failed: chance of a lower NDCG@10"),
        ("--baseline behind --fail-if-worse AP@10 --margin 0.01 -m AUC", 0, "Gate passed"),
        ("--fail-if-worse NDCG@10", 2, "must be given together"),
        ("--margin 0.1", 2, "--margin must be left out without"),
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

"""Negatives that were not drawn uniformly: chances, the law of hits, estimates, and refusals."""

import json
import math
import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
import scipy.sparse
from scipy.stats import binom

import unsample
from tests.promises import BrokenPromiseError, coverage, keep, simulations
from unsample.errors import (
    BiasedMethodWarning,
    DesignError,
    InputError,
    MetricError,
    UnsampleWarning,
)
from unsample.estimators import HitLaw, Hits
from unsample.evidence import Negatives, seen_items

pytestmark = pytest.mark.filterwarnings("ignore::unsample.errors.UnresolvedWarning")
ITEMS, USERS, SIZE = 400, 1500, 60
METRICS = ["Recall@10", "NDCG@10"]


def draw(rng, weights, size, *, replacement):
    """Return so many items for each row of weights, by their chances."""
    if replacement:
        ends = np.cumsum(weights, axis=1)
        places = rng.random((len(weights), size)) * ends[:, -1:]
        return np.array(
            [np.searchsorted(*each, side="right") for each in zip(ends, places, strict=True)]
        )
    with np.errstate(divide="ignore"):
        times = rng.exponential(size=weights.shape) / weights
    return np.argpartition(times, size, axis=1)[:, :size]


@dataclass
class World:
    """Users whose lists favour popular items, and targets at ranks that are known."""

    order: np.ndarray
    ranks: np.ndarray
    popularity: np.ndarray

    @classmethod
    def make(cls, seed, users=USERS, items=ITEMS, power=0.9, favour=0.8):
        rng = np.random.default_rng(seed)
        popularity = (np.arange(items) + 3.0) ** -0.9
        taste = favour * np.log(popularity) + rng.normal(size=(users, items))
        law = (np.arange(items) + 1.0) ** -power
        ranks = 1 + np.searchsorted(np.cumsum(law / law.sum()), rng.random(users))
        return cls(np.argsort(-taste, axis=1), ranks.clip(max=items), popularity)

    def truth(self, name):
        return float(unsample.metrics.parse(name).weights(self.ranks, ITEMS).mean())

    @property
    def targets(self):
        return self.order[np.arange(len(self.ranks)), self.ranks - 1]

    @cached_property
    def beats(self):
        """Whether each item beats the target of each user."""
        place = np.empty_like(self.order)
        np.put_along_axis(place, self.order, np.arange(self.order.shape[1])[None, :], axis=1)
        return place < self.ranks[:, None] - 1

    def draw(self, rng, chances, size=SIZE, *, replacement=True):
        weights = np.tile(chances, (len(self.ranks), 1))
        weights[np.arange(len(weights)), self.targets] = 0.0
        return draw(rng, weights, size, replacement=replacement)

    def table(self, lists, **more):
        """Return scored rows, the targets' own included."""
        users, size = lists.shape
        own = np.arange(users)
        beats = np.take_along_axis(self.beats, lists, axis=1)
        return {
            "user": np.concatenate([np.repeat(own, size), own]),
            "item": np.concatenate([lists.ravel(), self.targets]),
            "score": np.concatenate([np.where(beats.ravel(), 2.0, 0.0), np.ones(users)]),
            "target": np.concatenate([np.zeros(lists.size), np.ones(users)]),
            **more,
        }


@pytest.fixture(scope="module")
def world():
    return World.make(0)


@pytest.fixture(scope="module")
def chances(world):
    return world.popularity / world.popularity.sum()


@pytest.fixture(scope="module")
def lists(world, chances):
    """Items drawn by popularity, with replacement."""
    return world.draw(np.random.default_rng(2), chances)


@pytest.fixture(scope="module")
def plain(world, chances, lists):
    """What is estimated from them."""
    return _estimate(world.table(lists), probabilities=chances)


def _estimate(table, **options):
    return unsample.estimate(
        table, items=ITEMS, metrics=METRICS, **{"candidates": "unseen", **options}
    )


# -- chances -------------------------------------------------------------------------------------


@pytest.mark.parametrize("replacement", [True, False])
def test_chances_are_those_of_simulated_samples(replacement):
    rng = np.random.default_rng(3)
    chances = rng.random(40) ** 2
    chances /= chances.sum()
    seen = scipy.sparse.csr_array(np.eye(1, 40, 5))
    left = np.where(np.arange(40) == 5, 0.0, chances)
    left[7] = 0.0
    size, runs = 8, 20_000
    drawn = draw(rng, np.tile(left, (runs + 1, 1)), size, replacement=replacement)
    met = np.zeros((runs + 1, 40))
    np.put_along_axis(met, drawn, 1.0, axis=1)
    held = Negatives(
        drawn[0], np.array([0, size]), 40, np.array([0]), seen, np.array([0]), np.array([7])
    )
    found = seen_items(
        held, np.ones(size, dtype=bool), probabilities=chances, replacement=replacement
    )
    expected = met[1:, found.negatives.ids].mean(axis=0)
    assert found.chance == pytest.approx(expected, rel=0.06, abs=0.01)
    assert found.items.tolist() == [39]
    assert len(found.chance) == len(set(drawn[0].tolist()))


def test_ranks_are_unbiased_and_at_least_what_was_seen(world, chances, lists, plain):
    rng = np.random.default_rng(1)
    mean = np.zeros(USERS)
    for _ in range(20):
        drawn = world.draw(rng, chances)
        beats = np.take_along_axis(world.beats, drawn, axis=1).ravel()
        held = Negatives.of_lists(drawn, items=ITEMS, targets=world.targets)
        seen = seen_items(held, beats, probabilities=chances)
        # An item that beats the target stands for 1/chance of them (Horvitz and Thompson 1952).
        mean += (1.0 + np.bincount(seen.owner, seen.beats / seen.chance, minlength=USERS)) / 20
    error = np.std(mean - world.ranks) / math.sqrt(USERS)
    assert abs(np.mean(mean - world.ranks)) < 4 * error + 0.01 * np.mean(world.ranks)
    _, most = plain["Recall@10"].bounds()
    distinct = [
        len(set(row[beaten].tolist()))
        for row, beaten in zip(lists, np.take_along_axis(world.beats, lists, axis=1), strict=True)
    ]
    assert most >= np.mean(np.array(distinct) < 10) >= plain["Recall@10"].value


def test_strata_have_the_chances_of_their_draws():
    lists = np.array([[0, 1, 10, 11, 12], [2, 3, 13, 14, 15]])
    held = Negatives.of_lists(lists, items=20, targets=np.array([4, 16]))
    label = np.repeat(["head", "tail"], [5, 15])
    found = seen_items(held, np.ones(10, dtype=bool), strata=label)
    assert found.chance == pytest.approx([2 / 4, 2 / 4, *[3 / 15] * 3, 2 / 5, 2 / 5, *[3 / 14] * 3])
    names = np.array(["list", "list", "other", "other", "other"] * 2)
    by_name = seen_items(
        held, np.ones(10, dtype=bool), strata={"list": "all", "other": "rest"}, names=names
    )
    assert by_name.chance == pytest.approx([1, 1, 3 / 17, 3 / 17, 3 / 17] * 2)
    assert by_name.certain.tolist() == by_name.taken.tolist() == [2, 2]
    assert by_name.uniform
    assert not found.uniform


def test_strata_that_leave_items_out_are_refused(world):
    lists = np.array([[0, 1, 10], [2, 3, 13]])
    held = Negatives.of_lists(lists, items=20, targets=np.array([4, 16]))
    names, beats = np.array(["type"] * 6), np.ones(6, dtype=bool)
    with pytest.raises(InputError, match="9 items that are in none and could never be drawn"):
        seen_items(held, beats, strata={"type": 10}, names=names)
    both = np.array(["type", "type", "other"] * 2)
    found = seen_items(held, beats, strata={"type": 10, "other": "rest"}, names=both)
    assert found.chance == pytest.approx([2 / 10, 2 / 10, 1 / 9] * 2)


# -- the law of hits -----------------------------------------------------------------------------


def _hits(rng, ranks, chance):
    count = rng.binomial(ranks - 1, chance)
    owner = np.repeat(np.arange(len(ranks)), count)
    return Hits.of(len(ranks), owner, np.full(len(owner), chance))


def test_a_law_of_equal_chances_is_the_binomial_one():
    rng = np.random.default_rng(5)
    ranks = 1 + rng.geometric(0.02, size=4000).clip(max=999)
    law = HitLaw.learn(_hits(rng, ranks, 0.1), 1000)
    assert law.blind_rank == pytest.approx(10.0, rel=0.05)
    hits, places = np.array([0, 1, 3]), np.array([1.0, 5.0, 30.0])
    expected = binom.cdf(hits[:, None], places[None, :] - 1, 0.1)
    assert law.up_to(hits, places) == pytest.approx(expected, abs=0.02)


def test_likelihoods_of_cells_are_sums_over_the_nodes():
    rng = np.random.default_rng(6)
    ranks = 1 + rng.geometric(0.05, size=500).clip(max=199)
    hits = _hits(rng, ranks, 0.2)
    law = HitLaw.learn(hits, 200)
    condensed = law.condense(hits)
    grid = condensed.grid
    middle = (grid.low + grid.high) / 2.0
    weights = law.weights(middle)
    whole = np.flatnonzero(grid.low == grid.high)
    # The cells are sorted: the first has no hits.
    zero = 0
    slow = np.array(
        [
            sum(
                weights[bin_, node] * binom.pmf(0, middle[bin_] - 1, law.chances[node])
                for node in range(len(law.nodes))
            )
            for bin_ in whole
        ]
    )
    row = condensed.likelihood[zero][whole]
    assert row / row.max() == pytest.approx(slow / slow.max(), rel=1e-6)


# -- estimates -----------------------------------------------------------------------------------


def test_popularity_samples_give_the_metrics(world, chances, plain):
    once = world.draw(np.random.default_rng(2), chances, replacement=False)
    others = _estimate(world.table(once), probabilities=chances, replacement=False)
    for result in (plain, others):
        for name in METRICS:
            low, high = result[name].interval()
            assert low < world.truth(name) < high
            assert result[name].value == pytest.approx(world.truth(name), rel=0.12)
    assert "unequal chances" in str(result)
    assert json.loads(result.to_json())["estimates"][0]["method"] == "weighted"
    assert "smoothly along the ranks" in result.assumes
    assert result.distribution.expect("Recall@10") == pytest.approx(
        result["Recall@10"].value, rel=1e-6
    )


def test_a_list_taken_whole_and_random_others(world):
    rng = np.random.default_rng(4)
    top = np.argsort(-world.popularity)[:40]
    rows = []
    for user, target in enumerate(world.targets):
        whole = top[top != target]
        others = np.setdiff1d(np.arange(ITEMS), np.append(top, target))
        drawn = rng.choice(others, 30, replace=False)
        for kind, items in (("list", whole), ("random", drawn)):
            rows += [(user, item, world.beats[user, item], kind) for item in items]
    user, item, beats, stratum = zip(*rows, strict=True)
    table = {"user": user, "item": item, "beats": np.array(beats) * 1.0, "stratum": stratum}
    result = _estimate(table, strata={"list": "all", "random": "rest"})
    for name in METRICS:
        low, high = result[name].interval()
        assert low < world.truth(name) < high
        least, most = result[name].bounds()
        assert least - 1e-9 <= low
        assert high <= most + 1e-9
        assert result[name].value == pytest.approx(world.truth(name), rel=0.1)
    assert "taken whole" in result.explanations["weighted"]
    hard = {name: np.asarray(values)[np.array(stratum) == "list"] for name, values in table.items()}
    with pytest.warns(UnsampleWarning, match="never drawn"):
        only = _estimate(hard, strata={"list": "all"})
    low, high = only["Recall@10"].bounds()
    assert math.isnan(only["Recall@10"].value)
    assert low == 0.0
    assert high > world.truth("Recall@10")
    assert only.to_dict()["estimates"][0]["value"] is None
    assert "never drawn" in str(only)


def test_chances_in_a_column_and_seen_items(world, chances, lists, plain):
    left = 1.0 - chances[world.targets]
    each = -np.expm1(-SIZE * chances[lists] / left[:, None]).ravel()
    own = np.ones(USERS)
    given = _estimate(
        world.table(lists, probability=np.append(each, own)), probabilities="probability"
    )
    assert given["NDCG@10"].value == pytest.approx(plain["NDCG@10"].value, rel=1e-6)
    nothing = scipy.sparse.csr_array((USERS, ITEMS))
    same = _estimate(world.table(lists), probabilities=chances, exclude=nothing)
    assert same["NDCG@10"].value == plain["NDCG@10"].value


def test_the_command_reads_chances_and_strata(world, chances, lists, plain, tmp_path, run):
    table, counts = tmp_path / "scores.csv", tmp_path / "counts.csv"
    columns = world.table(lists)
    rows = zip(*columns.values(), strict=True)
    table.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]))
    lines = [f"{item},{round(1e12 * value**2)}" for item, value in enumerate(chances)]
    counts.write_text("\n".join(["item,count", *lines]))
    call = ["estimate", str(table), "--items", str(ITEMS), "--json", "--resamples", "0"]
    call += ["--candidates", "unseen", "-m", "Recall@10"]
    done = run(*call, "--probabilities", str(counts), "--exponent", "0.5")
    value = json.loads(done[1])["estimates"][0]["value"]
    assert value == pytest.approx(plain["Recall@10"].value, rel=1e-6)
    assert run(*call, "--strata", "list")[0] != 0


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"probabilities": [0.5, 0.5]}, InputError, "one for each of the 400 items"),
        ({"probabilities": np.ones(ITEMS)}, InputError, "must sum to 1"),
        ({"probabilities": "zero"}, InputError, "above 0 for items that were drawn"),
        ({"probabilities": "uniform"}, InputError, "must agree with how often"),
        ({"probabilities": "chance"}, InputError, "'probability', a column"),
        ({"strata": ["a"]}, InputError, "a label for each of the 400"),
        ({"strata": {"a": "all"}}, InputError, "a label for each"),
        ({"probabilities": "good", "strata": ["a"]}, InputError, "left out with strata"),
        ({"probabilities": "good", "metrics": "AUC"}, MetricError, "must have a cutoff"),
        ({"probabilities": "good", "items": None}, DesignError, "items must be"),
        ({"exclude": scipy.sparse.csr_array((USERS, ITEMS))}, InputError, "left out without"),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_refused(world, chances, lists, change, error, text):
    zero = chances.copy()
    zero[0] = 0.0
    known = {"good": chances, "zero": zero / zero.sum(), "uniform": np.full(ITEMS, 1 / ITEMS)}
    options = {"items": ITEMS, "metrics": METRICS, **change}
    if isinstance(options.get("probabilities"), str):
        options["probabilities"] = known.get(options["probabilities"], options["probabilities"])
    with pytest.raises(error, match=text):
        unsample.estimate(world.table(lists), **options)
    with pytest.raises(InputError, match="ranks alone do not tell"):
        unsample.estimate([1, 2, 3], items=ITEMS, probabilities=chances)


def test_chances_that_do_not_reach_all_items_are_warned_of(world):
    rng = np.random.default_rng(10)
    half = np.where(np.arange(ITEMS) < ITEMS // 2, 2.0 / ITEMS, 0.0)
    lists = world.draw(rng, half)
    with pytest.warns(BiasedMethodWarning, match="of the candidates, by their chances"):
        _estimate(world.table(lists), probabilities=half)


def test_two_targets_of_a_user_or_no_outcome_are_refused(world, chances, lists):
    table = world.table(lists)
    with pytest.raises(InputError, match="each user must have one target"):
        _estimate({**table, "target": np.append(table["target"][:-1], 0)}, probabilities=chances)
    with pytest.raises(InputError, match="score and target, or a column beats"):
        _estimate({name: table[name] for name in ("user", "item")}, probabilities=chances)


# -- promises -------------------------------------------------------------------------------------


def _held(runs, favour, *, wrong=False):
    rows = {name: [] for name in METRICS}
    for seed in range(runs):
        held = World.make(1000 + seed, favour=favour)
        rng = np.random.default_rng(seed)
        chances = held.popularity / held.popularity.sum()
        lists = held.draw(rng, chances)
        beats = np.take_along_axis(held.beats, lists, axis=1)
        each = -np.expm1(-SIZE * chances[lists])
        table = {
            "user": np.repeat(np.arange(USERS), SIZE),
            "item": lists.ravel(),
            "beats": beats.ravel() * 1.0,
            # The planted error: every item is taken to be as likely as the others.
            "probability": np.full(lists.size, SIZE / ITEMS) if wrong else each.ravel(),
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsampleWarning)
            result = _estimate(table, probabilities="probability")
        for name in METRICS:
            low, high = result[name].interval()
            rows[name].append((low - held.truth(name), high - held.truth(name)))
    return [
        coverage(
            "intervals of unequal draws hold", f"favour {favour}, {name}", *np.transpose(found),
            0.0, 0.93,
        )
        for name, found in rows.items()
    ]  # fmt: skip


@pytest.mark.validity
@pytest.mark.parametrize("favour", [0.0, 0.8, 1.5])
def test_intervals_of_popularity_samples_hold(favour, ledger):
    keep(ledger(_held(simulations(200), favour)))


@pytest.mark.validity
def test_chances_that_are_wrong_break_the_promise(ledger):
    findings = ledger(_held(10, 1.5, wrong=True), planted="every item as likely as the others")
    with pytest.raises(BrokenPromiseError, match="coverage must be"):
        keep(findings)

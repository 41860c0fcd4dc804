"""Several runs of a model: one law of their mean, checked against a slow reference."""

import json
import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm, t

import unsample
from tests.test_one_law import contradictions
from unsample.errors import InputError, MetricError, UnsampleWarning
from unsample.law import draw_sampled_ranks
from unsample.prior import Law, cautious, runs_apart, with_runs

ITEMS, SAMPLED, USERS = 1000, 99, 400
DESIGN = {"items": ITEMS, "sampled": SAMPLED, "candidates": "unseen"}
METRICS = ["NDCG@10", "Recall@100", "AUC"]


def _ranks(seed, better=0.0):
    rng = np.random.default_rng(seed)
    full = np.ceil(ITEMS * np.random.default_rng(0).random(USERS) ** (3 + better))
    moved = (full * np.exp(0.3 * rng.normal(size=USERS))).clip(1, ITEMS).astype(int)
    return draw_sampled_ranks(moved, items=ITEMS, sampled=SAMPLED, rng=rng)


RUNS = {"A": [_ranks(1, 1.0), _ranks(2, 1.2), _ranks(3, 0.8)], "B": [_ranks(4), _ranks(5)]}


@pytest.fixture(scope="module")
def result():
    return unsample.compare(RUNS, metrics=METRICS, **DESIGN)


def test_the_value_is_the_mean_of_the_runs(result):
    for name, runs in RUNS.items():
        alone = [unsample.estimate(each, metrics=METRICS, **DESIGN) for each in runs]
        for metric in METRICS:
            entry = result.estimates[name][metric]
            expected = np.mean([each[metric].value for each in alone])
            assert math.isclose(entry.value, expected, rel_tol=1e-12)
            low, high = np.mean([each[metric].bounds(0.9) for each in alone], axis=0)
            assert entry.bounds(0.9) == (low, high)
    assert result.runs == {"A": 3, "B": 2}


def _slow_end(parts, end):
    """Return the root of the sum of squared ends."""
    return math.sqrt(sum(square * t.ppf(end, nu) ** 2 for square, nu in parts))


def test_parts_of_a_law_add_up_by_their_squared_ends():
    for parts in ([(0.3, 1.0)], [(0.01, 2.0), (0.2, 4.0)], [(1.0, 9.0), (1e-6, 1.0)]):
        scale, nu = with_runs(0.5, 5000.0, parts)
        for end in (0.95, 0.995):
            expected = _slow_end([(0.25, 5000.0), *parts], end)
            assert math.isclose(scale * t.ppf(end, nu), expected, rel_tol=2e-3)
    assert with_runs(0.5, 7.0, [(0.0, 1.0)]) == (0.5, 7.0)
    scale, nu = with_runs(0.0, 7.0, [(4.0, 3.0)])
    assert math.isclose(scale, 2.0, rel_tol=1e-4)
    assert math.isclose(nu, 3.0, rel_tol=1e-3)


def test_the_spread_of_runs_counts_beyond_what_users_explain():
    users = np.array([[0.04, 0.03, 0.02], [0.03, 0.05, 0.01], [0.02, 0.01, 0.06]])
    values = np.array([1.0, 1.3, 0.7])
    alone = 0.05 - 0.02  # the mean variance, less the mean covariance
    few = (t.ppf(0.975, 2) / norm.ppf(0.975)) ** 2
    square, nu = runs_apart(values, users)
    assert nu == 2.0
    assert math.isclose(square, (values.var(ddof=1) - alone / few) / 3, rel_tol=1e-6)
    assert runs_apart(np.ones(3), users) == (0.0, 2.0)
    assert runs_apart(np.ones(1), users[:1, :1]) == (0.0, 1.0)
    square, nu = cautious(1.0, 2.0)
    assert math.isclose(math.sqrt(square) * t.ppf(0.95, nu), t.ppf(0.975, 2), rel_tol=1e-9)


def test_the_law_of_models_is_that_of_a_slow_mean_of_runs():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5)) / 20
    users, common = root @ root.T, np.full((5, 5), 0.004)
    law = Law(
        tuple("abcde"), np.log([0.2, 0.22, 0.21, 0.1, 0.12]), common, np.full(5, 0.001), users,
        np.ones(5),
    )  # fmt: skip
    models = law.averaged({"A": "abc", "B": "de"})
    assert np.allclose(np.exp(models.mean), [0.21, 0.11])
    # By hand: the mean is moved by each run in proportion to its value.
    drawn = rng.multivariate_normal(np.zeros(5), users, size=200_000)
    values = np.exp(law.mean) * (1 + 0.01 * drawn)
    moved = np.log([values[:, :3].mean(axis=1), values[:, 3:].mean(axis=1)])
    assert np.allclose(np.cov(moved) / 1e-4, models.users, rtol=0.05, atol=1e-4)
    # What the prior leaves open is common to all models, or to all runs of one.
    assert np.allclose(models.common, 0.004)
    assert np.allclose(models.own, 0.001)


def test_one_run_of_each_is_what_it_was():
    lists = unsample.compare({"A": [RUNS["A"][0]], "B": [RUNS["B"][0]]}, **DESIGN)
    plain = unsample.compare({"A": RUNS["A"][0], "B": RUNS["B"][0]}, **DESIGN)
    assert lists.to_json() == plain.to_json()
    assert "training chance is not in it" in str(plain)
    with pytest.warns(UnsampleWarning, match="^B has one run: how far another training would move"):
        found = unsample.compare({"A": RUNS["A"], "B": RUNS["B"][0]}, **DESIGN)
    assert [note.name for note in found.notes] == ["one run"]
    alone = plain.estimates["B"]["NDCG@10"]
    assert found.estimates["B"]["NDCG@10"].interval() == alone.interval()


def test_runs_widen_the_intervals_and_chances_agree_with_them(result):
    assert "2 to 3 runs of each, a run of 400 users" in str(result).splitlines()[0]
    assert "training chance" not in str(result)
    assert contradictions(result) == []
    for metric in METRICS:
        # The end of an interval again, by bisection of the law's own chance.
        pair = result.difference("A", "B", metric)
        slow = brentq(lambda d, p=pair: p.law.below(d) - 0.05, -1, 1, xtol=1e-12)
        assert math.isclose(slow, pair.low, abs_tol=1e-9)
        pooled, same = np.concatenate(RUNS["A"]), np.tile(np.arange(USERS), len(RUNS["A"]))
        narrow = unsample.estimate(pooled, users=same, metrics=metric, **DESIGN)[metric]
        assert np.ptp(result.estimates["A"][metric].interval()) > np.ptp(narrow.interval())


def test_tables_and_files_hold_runs_too(tmp_path, run, result):
    rows = [
        (name, run, user, int(rank))
        for name, runs in RUNS.items()
        for run, ranks in enumerate(runs, 1)
        for user, rank in enumerate(ranks)
    ]
    names = ("model", "seed", "user", "rank")
    columns = dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))
    options = {"metrics": METRICS, "read": unsample.Read(columns={"run": "seed"}), **DESIGN}
    found = unsample.compare(columns, **options)
    assert found.runs == result.runs
    assert found.rows() == [pytest.approx(row) for row in result.rows()]
    # A column that names the models holds no runs.
    assert unsample.compare(columns, by="seed", **options).runs == {"1": 1, "2": 1, "3": 1}
    # Files of one name are runs.
    words = []
    for name, runs in RUNS.items():
        for ranks in runs:
            path = tmp_path / f"{len(words)}.csv"
            path.write_text("rank\n" + "\n".join(map(str, ranks)), encoding="utf-8")
            words.append(f"{name}={path}")
    design = ["--items", 1000, "--sampled", 99, "--candidates", "unseen", "-m", "NDCG@10"]
    code, out, err = run("compare", *words, *design, "--json")
    assert code == 0, err
    low = json.loads(out)["differences"][0]["low"]
    assert math.isclose(low, result.difference("A", "B", "NDCG@10").low)


def test_what_cannot_be_is_refused(result):
    rows = {"model": ["A"] * 8, "run": [1] * 4 + [2] * 4, "rank": [1, 2, 3, 4] * 2}
    with pytest.raises(InputError, match="at least two and at most 100, got 2 of A alone"):
        unsample.compare(rows, items=50, sampled=9)
    with pytest.raises(InputError, match="A must have at least one run, got an empty list"):
        unsample.compare({"A": [], "B": RUNS["B"]}, **DESIGN)
    with pytest.raises(MetricError, match="must be asked of compare"):
        result.estimates["A"].metric("Recall@37")

"""Several runs of a model, and several data sets: means, checked against slow references."""

import json
import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm, t

import unsample
from tests.test_one_law import contradictions
from unsample.answers import _across
from unsample.errors import InputError, MetricError, UnsampleWarning
from unsample.law import draw_sampled_ranks
from unsample.metrics import parse
from unsample.prior import CAUTION, Law, cautious, runs_apart, with_runs

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
    with pytest.raises(InputError, match=r"models must be a dict of names .* got list"):
        unsample.compare([[1], [2]], **DESIGN)
    with pytest.raises(MetricError, match="must be asked of compare"):
        result.estimates["A"].metric("Recall@37")


# -- several data sets ----------------------------------------------------------------------------

TWO = ["NDCG@10", "Recall@100"]
SIZES = {"large": 5000, "middle": 2000, "small": 900, "tiny": 500}


def _rows():
    """Return a table of models on data sets with other catalogues, designs and users."""
    rng, rows = np.random.default_rng(0), []
    for number, (name, items) in enumerate(SIZES.items()):
        sampled, count = 50 + 10 * number, 300 + 20 * number
        for place, model in enumerate("ABC"):
            full = np.ceil(items * rng.random(count) ** (4.0 - 0.4 * place)).astype(int)
            drawn = draw_sampled_ranks(full, items=items, sampled=sampled, rng=rng)
            rows += [(name, model, u, r, items, sampled) for u, r in enumerate(drawn.tolist())]
    columns = map(np.array, zip(*rows, strict=True))
    names = ("dataset", "model", "user", "rank", "items", "sampled")
    return dict(zip(names, columns, strict=True))


ROWS = _rows()
OPTIONS = {"metrics": TWO, "candidates": "unseen", "across": "dataset"}


def _only(chosen):
    """Return the chosen rows of the table."""
    return {key: values[chosen] for key, values in ROWS.items()}


SETS = {name: _only(ROWS["dataset"] == name) for name in sorted(SIZES)}


@pytest.fixture(scope="module")
def over():
    return unsample.compare(ROWS, **OPTIONS)


def _slow_mean(over, metric, models, signs, *, like, two):
    """Return value and ends of a sum of means, summed pair by pair of data sets."""
    count, values, prior, users = len(over.whole), [], [], []
    for name in over.whole:
        held = over.comparisons[name]
        posteriors = {m: held.estimates[m][metric].posterior for m in models}
        asked = unsample.tables.Asked(by="model")
        pairs = unsample.tables.read_counts(SETS[name], asked, pair=True).between
        between = {pair: each for pair, each in pairs.items() if {*pair} <= {*models}}
        law = unsample.prior.Posterior.joined(posteriors, between).law(metric)
        value = np.exp(law.mean)
        values.append(sum(s * v for s, v in zip(signs, value, strict=True)))
        total = [0.0, 0.0]
        for i, a in enumerate(signs):
            for j, b in enumerate(signs):
                weight = a * b * value[i] * value[j]
                total[0] += weight * law.prior[i, j] * 5 / 3
                total[1] += weight * law.users[i, j]
        prior.append(total[0])
        users.append(total[1])
    share = _across.IN_COMMON["unseen"][two]
    together = [
        [(1.0 if d == e else share) * math.sqrt(prior[d] * prior[e]) for e in range(count)]
        for d in range(count)
    ]
    part = sum(map(sum, together)) / count**2
    chance = sum(users) / count**2 * (CAUTION if two else 1.0)
    total = part + chance
    freedom = 4.0 + (total / max(part, 0.01 * total)) ** 2
    scale = math.sqrt(total * (freedom - 2) / freedom)
    parts = [(scale**2, freedom)]
    if like:
        found = runs_apart(np.array(values), np.array(together) + np.diag(users))
        parts.append(cautious(*found) if two else found)
    end = 0.95 if two else 0.975
    return float(np.mean(values)), _slow_end(parts, end)


@pytest.mark.parametrize("like", [False, True])
def test_means_and_differences_are_those_of_a_slow_sum(over, like):
    for metric in TWO:
        for row in (row for row in over.standings if row.metric == metric):
            value, reach = _slow_mean(over, metric, [row.model], [1.0], like=like, two=False)
            assert math.isclose(row.value, value, rel_tol=1e-6)
            high = row.like_high if like else row.high
            assert math.isclose(min(value + reach, 1.0), high, rel_tol=5e-3)
        for a, b in (("A", "B"), ("A", "C"), ("B", "C")):
            pair = over.difference(a, b, metric, like=like)
            value, reach = _slow_mean(over, metric, [a, b], [1.0, -1.0], like=like, two=True)
            assert math.isclose(pair.value, value, rel_tol=1e-6)
            assert math.isclose(pair.high - pair.value, reach, rel_tol=5e-3)


def test_means_over_data_sets_agree_with_each_other(over):
    for pair in (*over.like, *over.differences):
        assert (pair.low > 0, pair.high < 0) == (pair.chance > 0.95, pair.chance < 0.05)
        means = {row.model: row.value for row in over.standings if row.metric == pair.metric}
        assert math.isclose(pair.value, means[pair.a] - means[pair.b], abs_tol=1e-12)
    for metric in TWO:
        rows = [row for row in over.standings if row.metric == metric]
        assert math.isclose(sum(row.place for row in rows), 6.0, rel_tol=1e-9)
        assert math.isclose(sum(row.best_on for row in rows), 4.0, rel_tol=1e-9)
        for row in rows:
            assert row.like_low <= row.low <= row.value <= row.high <= row.like_high
            assert 1 <= row.place_low <= row.place <= row.place_high <= 3
            others = [name for name in "ABC" if name != row.model]
            beats = [over.difference(row.model, o, metric, like=False).chance for o in others]
            assert row.chance <= min(beats) + 1e-12


def test_places_are_those_of_a_normal_law():
    values = np.array([[0.3, 0.2], [0.3, 0.31]])
    users = np.stack([np.diag([0.01, 0.01])] * 2)
    about = (parse("NDCG@10"), ("A", "B"))
    found = _across.AcrossLaw(*about, values, np.zeros((2, 2, 2)), users, (0.0, 0.0))
    rows = {row.model: row for row in found.standings(0.95)}
    error = math.sqrt(2 * 0.01 * CAUTION)
    expected = ndtr(0.1 / error) + ndtr(-0.01 / error)
    assert math.isclose(rows["A"].best_on, expected, abs_tol=0.02)
    assert math.isclose(rows["A"].place, 2 - expected / 2, abs_tol=0.01)


def test_every_form_gives_the_same_and_each_data_set_is_compared_as_it_is_alone(
    over, tmp_path, run
):
    for name, rows in SETS.items():
        alone = unsample.compare(rows, metrics=TWO, candidates="unseen")
        assert alone.to_dict() == over.comparisons[name].to_dict()
    assert unsample.compare(SETS, **OPTIONS).to_dict() == over.to_dict()
    path = tmp_path / "all.csv"
    lines = [ROWS, *zip(*(values.tolist() for values in ROWS.values()), strict=True)]
    path.write_text("\n".join(",".join(map(str, line)) for line in lines))
    words = ["compare", path, "--across", "dataset", "--candidates", "unseen"]
    code, out, _ = run(*words, "-m", ",".join(TWO), "--json")
    assert (code, json.loads(out)) == (0, json.loads(over.to_json()))
    code, _, err = run(*words, "--baseline", "A", "--fail-if-worse", "NDCG@10")
    assert code == 2
    assert "--across must be left out with --fail-if-worse" in err


@pytest.mark.parametrize(
    ("keep", "known", "said"),
    [
        (ROWS["model"] != "B", True, "there is no B there"),
        (ROWS["model"] == "B", False, "there is no model but B there"),
        (ROWS["user"] < 20, True, "A, B and C known by bounds alone there"),
    ],
)
def test_missing_cells_are_said(keep, known, said):
    with pytest.warns(UnsampleWarning) as caught:
        found = unsample.compare(_only(keep | (ROWS["dataset"] != "tiny")), **OPTIONS)
    assert [str(each.message) for each in caught] == list(found.warnings)
    assert found.warnings[-1].startswith(f"means leave out tiny: {said}")
    assert found.whole == ("large", "middle", "small")
    assert ("tiny" in found.comparisons) == known


@pytest.mark.parametrize(
    ("models", "across", "message"),
    [
        (SETS["tiny"], "dataset", r"dataset must name at least two data sets .* got 1"),
        (ROWS, "data", "has no column 'data'"),
        (ROWS, 5, "across must be the name of a column, got 5"),
        ({"x": {"A": [1, 2], "B": [1, "z"]}}, "dataset", "x: ranks of B must be"),
        (np.ones(5), "dataset", "across must come with a table or a dict of data sets"),
    ],
)
def test_wrong_data_sets_are_refused(models, across, message):
    design = {} if "rank" in models else {"items": 9, "sampled": 3}
    with pytest.raises(InputError, match=message):
        unsample.compare(models, across=across, **design)

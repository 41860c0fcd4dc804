"""Models on several data sets: means over them, checked against slow references."""

import json
import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import t

import unsample
from unsample.answers import _across
from unsample.errors import InputError, UnsampleWarning
from unsample.law import draw_sampled_ranks
from unsample.metrics import parse
from unsample.prior import CAUTION, cautious, runs_apart

METRICS = ["NDCG@10", "Recall@100"]
SIZES = {"large": 5000, "middle": 2000, "small": 900, "tiny": 500}


def _rows(models=("A", "B", "C"), sets=SIZES, users=300):
    """Return a table of models on data sets with other catalogues, designs and users."""
    rng, rows = np.random.default_rng(0), []
    for number, (name, items) in enumerate(sets.items()):
        sampled, count = 50 + 10 * number, users + 20 * number
        for place, model in enumerate(models):
            full = np.ceil(items * rng.random(count) ** (4.0 - 0.4 * place)).astype(int)
            drawn = draw_sampled_ranks(full, items=items, sampled=sampled, rng=rng)
            rows += [(name, model, u, r, items, sampled) for u, r in enumerate(drawn.tolist())]
    columns = map(np.array, zip(*rows, strict=True))
    names = ("dataset", "model", "user", "rank", "items", "sampled")
    return dict(zip(names, columns, strict=True))


ROWS = _rows()
OPTIONS = {"metrics": METRICS, "candidates": "unseen", "across": "dataset"}


@pytest.fixture(scope="module")
def result():
    return unsample.compare(ROWS, **OPTIONS)


def test_each_data_set_is_compared_as_it_is_alone(result):
    for name in SIZES:
        mine = {key: values[ROWS["dataset"] == name] for key, values in ROWS.items()}
        alone = unsample.compare(mine, metrics=METRICS, candidates="unseen")
        assert alone.to_dict() == result.comparisons[name].to_dict()
    assert result.whole == tuple(sorted(SIZES))


def _slow(result, metric, models, signs, *, like, two):
    """Return value and ends of a sum of means, summed pair by pair of data sets."""
    count, values, prior, users = len(result.whole), [], [], []
    for name in result.whole:
        held = result.comparisons[name]
        posteriors = {m: held.estimates[m][metric].posterior for m in models}
        law = unsample.prior.Posterior.joined(posteriors, _between(name, models)).law(metric)
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
    reach = math.sqrt(sum(square * t.ppf(end, nu) ** 2 for square, nu in parts))
    return float(np.mean(values)), reach


def _between(name, models):
    mine = {key: values[ROWS["dataset"] == name] for key, values in ROWS.items()}
    counts = unsample.tables.read_counts(mine, unsample.tables.Asked(by="model"), pair=True)
    return {pair: each for pair, each in counts.between.items() if {*pair} <= {*models}}


@pytest.mark.parametrize("like", [False, True])
def test_means_and_differences_are_those_of_a_slow_sum(result, like):
    for metric in METRICS:
        for row in (row for row in result.standings if row.metric == metric):
            value, reach = _slow(result, metric, [row.model], [1.0], like=like, two=False)
            assert math.isclose(row.value, value, rel_tol=1e-6)
            high = row.like_high if like else row.high
            assert math.isclose(min(value + reach, 1.0), high, rel_tol=5e-3)
        for a, b in (("A", "B"), ("A", "C"), ("B", "C")):
            pair = result.difference(a, b, metric, like=like)
            value, reach = _slow(result, metric, [a, b], [1.0, -1.0], like=like, two=True)
            assert math.isclose(pair.value, value, rel_tol=1e-6)
            assert math.isclose(pair.high - pair.value, reach, rel_tol=5e-3)


def test_numbers_agree_with_each_other(result):
    for like in (False, True):
        for pair in result.like if like else result.differences:
            assert (pair.low > 0, pair.high < 0) == (pair.chance > 0.95, pair.chance < 0.05)
            assert result.difference(pair.b, pair.a, pair.metric, like=like).value == -pair.value
            means = {row.model: row.value for row in result.standings if row.metric == pair.metric}
            assert math.isclose(pair.value, means[pair.a] - means[pair.b], abs_tol=1e-12)
    for metric in METRICS:
        rows = [row for row in result.standings if row.metric == metric]
        assert math.isclose(sum(row.place for row in rows), 6.0, rel_tol=1e-9)
        assert math.isclose(sum(row.best_on for row in rows), 4.0, rel_tol=1e-9)
        for row in rows:
            assert row.like_low <= row.low <= row.value <= row.high <= row.like_high
            assert 1 <= row.place_low <= row.place <= row.place_high <= 3
            others = [name for name in "ABC" if name != row.model]
            beats = [result.difference(row.model, o, metric, like=False).chance for o in others]
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


@pytest.fixture
def path(tmp_path):
    lines = [ROWS, *zip(*(values.tolist() for values in ROWS.values()), strict=True)]
    (tmp_path / "all.csv").write_text("\n".join(",".join(map(str, line)) for line in lines))
    return tmp_path / "all.csv"


def test_every_form_gives_the_same(path, result):
    sets = {
        name: {key: values[ROWS["dataset"] == name] for key, values in ROWS.items()}
        for name in result.whole
    }
    for given in (path, sets):
        found = unsample.compare(given, **OPTIONS).to_dict()
        assert found == result.to_dict()


def test_missing_cells_are_said():
    keep = ~((ROWS["dataset"] == "tiny") & (ROWS["model"] == "B"))
    with pytest.warns(UnsampleWarning, match="means leave out tiny: there is no B there"):
        found = unsample.compare({k: v[keep] for k, v in ROWS.items()}, **OPTIONS)
    assert found.whole == ("large", "middle", "small")
    assert len(found.comparisons) == 4
    assert "tiny" in str(found)
    keep = (ROWS["dataset"] != "tiny") | (ROWS["model"] == "B")
    with pytest.warns(UnsampleWarning, match="means leave out tiny: there is no model but B"):
        found = unsample.compare({k: v[keep] for k, v in ROWS.items()}, **OPTIONS)
    assert set(found.comparisons) == {"large", "middle", "small"}
    few = (ROWS["dataset"] != "tiny") | (ROWS["user"] < 20)
    with pytest.warns(UnsampleWarning) as said:
        found = unsample.compare({k: v[few] for k, v in ROWS.items()}, **OPTIONS)
    assert [str(each.message) for each in said] == list(found.warnings)
    assert found.warnings[-1] == "means leave out tiny: A, B and C known by bounds alone there"


def test_the_spread_of_runs_counts_on_each_data_set(result):
    """The mean of two runs of A that differ is less sure than that of one run."""
    mine, other = ROWS["model"] == "A", ROWS["model"] == "C"
    second = {key: values[other] for key, values in ROWS.items()} | {"model": ROWS["model"][mine]}
    rows = {key: np.concatenate([values, second[key]]) for key, values in ROWS.items()}
    rows["run"] = np.repeat([1, 2], [len(ROWS["rank"]), len(second["rank"])])
    with pytest.warns(UnsampleWarning, match="B, C have one run"):
        found = unsample.compare(rows, **OPTIONS)
    assert found.comparisons["tiny"].runs == {"A": 2, "B": 1, "C": 1}
    for metric in METRICS:
        wide, narrow = (
            next(row for row in each.standings if (row.metric, row.model) == (metric, "A"))
            for each in (found, result)
        )
        assert wide.high - wide.low > narrow.high - narrow.low


def test_wrong_input_is_refused():
    one = {k: v[ROWS["dataset"] == "tiny"] for k, v in ROWS.items()}
    with pytest.raises(InputError, match=r"dataset must name at least two data sets .* got 1"):
        unsample.compare(one, **OPTIONS)
    with pytest.raises(InputError, match="has no column 'data'"):
        unsample.compare(ROWS, across="data")
    with pytest.raises(InputError, match="across must be the name of a column, got 5"):
        unsample.compare(ROWS, across=5)
    sets = {"x": {"A": [1, 2], "B": [1, "z"]}}
    with pytest.raises(InputError, match="x: ranks of B must be"):
        unsample.compare(sets, across="dataset", items=9, sampled=3)
    with pytest.raises(InputError, match="across must come with a table or a dict of data sets"):
        unsample.compare(np.ones(5), across="dataset")


def test_the_command_takes_a_column(path, run):
    words = ["--across", "dataset", "--candidates", "unseen", "-m", "NDCG@10"]
    code, out, err = run("compare", path, *words, "--json")
    assert (code, err) == (0, "")
    data = json.loads(out)
    assert data["datasets"] == sorted(SIZES)
    assert len(data["cells"]) == 12
    gate = ["--baseline", "A", "--fail-if-worse", "NDCG@10"]
    code, _, err = run("compare", path, *words, *gate)
    assert code == 2
    assert "--across must be left out with --fail-if-worse" in err

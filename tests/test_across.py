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
OPTIONS = {"metrics": METRICS, "candidates": "unseen", "across": "dataset"}


def _only(chosen):
    """Return the chosen rows of the table."""
    return {key: values[chosen] for key, values in ROWS.items()}


SETS = {name: _only(ROWS["dataset"] == name) for name in sorted(SIZES)}


@pytest.fixture(scope="module")
def result():
    return unsample.compare(ROWS, **OPTIONS)


def _slow(result, metric, models, signs, *, like, two):
    """Return value and ends of a sum of means, summed pair by pair of data sets."""
    count, values, prior, users = len(result.whole), [], [], []
    for name in result.whole:
        held = result.comparisons[name]
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
    reach = math.sqrt(sum(square * t.ppf(end, nu) ** 2 for square, nu in parts))
    return float(np.mean(values)), reach


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


def test_every_form_gives_the_same_and_each_data_set_is_compared_as_it_is_alone(
    result, tmp_path, run
):
    for name, rows in SETS.items():
        alone = unsample.compare(rows, metrics=METRICS, candidates="unseen")
        assert alone.to_dict() == result.comparisons[name].to_dict()
    assert unsample.compare(SETS, **OPTIONS).to_dict() == result.to_dict()
    path = tmp_path / "all.csv"
    lines = [ROWS, *zip(*(values.tolist() for values in ROWS.values()), strict=True)]
    path.write_text("\n".join(",".join(map(str, line)) for line in lines))
    words = ["compare", path, "--across", "dataset", "--candidates", "unseen"]
    code, out, _ = run(*words, "-m", ",".join(METRICS), "--json")
    assert (code, json.loads(out)) == (0, json.loads(result.to_json()))
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
def test_wrong_input_is_refused(models, across, message):
    design = {} if "rank" in models else {"items": 9, "sampled": 3}
    with pytest.raises(InputError, match=message):
        unsample.compare(models, across=across, **design)

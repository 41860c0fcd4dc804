"""Several runs of a model, and several data sets: means, checked against slow references."""

import json
import math

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import norm, t

import unsample
from tests.contradictions import contradictions
from unsample.errors import InputError, MetricError, UnsampleWarning
from unsample.metrics import parse
from unsample.posterior import CAUTION, DataSet, FixedNumbers
from unsample.questions.compare import data_sets as _across
from unsample.questions.compare.joint import ModelDraws
from unsample.questions.compare.repeated import spread_of, with_spread
from unsample.sampling import draw_sampled_ranks

ITEMS, SAMPLED, USERS = 1000, 99, 400
DESIGN = {"items": ITEMS, "sampled": SAMPLED, "protocol": "unseen"}
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


def test_the_spread_of_runs_counts_beyond_what_their_own_errors_explain():
    rng = np.random.default_rng(0)
    values, common = np.array([1.0, 1.3, 0.7]), rng.normal(size=(4000, 1))
    draws = values + 0.3 * common + 0.2 * rng.normal(size=(4000, 3))
    # By hand: half the variance of the difference of two runs, over all pairs.
    pairs = [(0, 1), (0, 2), (1, 2)]
    alone = np.mean([(draws[:, i] - draws[:, j]).var() / 2.0 for i, j in pairs])
    assert math.isclose(alone, 0.04, rel_tol=0.05)
    few = (t.ppf(0.975, 2) / norm.ppf(0.975)) ** 2
    square, nu = spread_of(values, draws)
    assert nu == 2.0
    assert math.isclose(square, (values.var(ddof=1) - alone / few) / 3, rel_tol=1e-6)
    assert spread_of(np.ones(3), draws) == (0.0, 2.0)
    assert spread_of(np.ones(1), draws[:, :1]) == (0.0, 1.0)


@pytest.mark.parametrize("runs", [2, 3, 10])
def test_spread_adds_a_t_variable_and_a_wider_one_in_comparisons(runs):
    normals, df = FixedNumbers(draws=20_000).normals(2), runs - 1.0
    square = 0.04
    alone = with_spread(np.zeros(20_000), (square, df), normals=normals[:, 0], caution=False)
    for end in (0.1, 0.9, 0.95, 0.975):
        assert math.isclose(np.quantile(alone, end), 0.2 * t.ppf(end, df), rel_tol=0.06)
    compared = with_spread(np.zeros(20_000), (square, df), normals=normals[:, 0], caution=True)
    assert math.isclose(np.quantile(compared, 0.95), 0.2 * t.ppf(0.975, df), rel_tol=0.06)
    # It is independent of what else is open.
    both = with_spread(0.3 * normals[:, 1], (square, 50.0), normals=normals[:, 0], caution=False)
    assert math.isclose(both.var(), 0.09 + 0.04 * 50 / 48, rel_tol=0.05)
    assert with_spread(alone, (0.0, 1.0), normals=normals[:, 0], caution=True) is alone


def test_the_distribution_of_models_is_that_of_the_mean_of_their_runs():
    rng = np.random.default_rng(0)
    values = np.array([0.2, 0.22, 0.21, 0.1, 0.12])
    draws = values + rng.multivariate_normal(np.zeros(5), 1e-5 * np.eye(5) + 1e-5, size=4096)
    runs = ModelDraws(tuple("abcde"), values, draws=draws, plain=draws)
    models = runs.averaged({"A": list("abc"), "B": list("de")}, data_set=DataSet())
    assert models.names == ("A", "B")
    assert models.values == pytest.approx([0.21, 0.11])
    for name, held in (("A", slice(0, 3)), ("B", slice(3, 5))):
        own = models.own(name)
        square, df = spread_of(values[held], draws[:, held])
        error = draws[:, held].mean(axis=1).std()
        low, high = own.interval(0.9)
        # At least as wide as either part alone, and less than both one after the other.
        parts = [norm.ppf(0.95) * error, t.ppf(0.95, df) * math.sqrt(square)]
        assert max(parts) < (high - low) / 2.0 < sum(parts)
    pair = models.difference("A", "B")
    assert math.isclose(pair.value, 0.1, rel_tol=1e-9)
    assert np.ptp(pair.interval(0.9)) > np.ptp(models.own("B").interval(0.9))


def test_one_run_of_each_is_what_it_was():
    lists = unsample.compare({"A": [RUNS["A"][0]], "B": [RUNS["B"][0]]}, **DESIGN)
    plain = unsample.compare({"A": RUNS["A"][0], "B": RUNS["B"][0]}, **DESIGN)
    assert lists.to_json() == plain.to_json()
    assert "variation between trainings is not in it" in " ".join(str(plain).split())
    with pytest.warns(UnsampleWarning, match="^B has one run: how far another training would move"):
        found = unsample.compare({"A": RUNS["A"], "B": RUNS["B"][0]}, **DESIGN)
    assert [note.name for note in found.notes] == ["one run"]
    alone = plain.estimates["B"]["NDCG@10"]
    assert found.estimates["B"]["NDCG@10"].interval() == alone.interval()


def test_runs_widen_the_intervals_and_probabilities_agree_with_them(result):
    assert "2 to 3 runs of each, a run of 400 users" in str(result).splitlines()[0]
    assert "training probability" not in str(result)
    assert contradictions(result) == []
    same = unsample.compare({name: [runs[0]] * 3 for name, runs in RUNS.items()}, **DESIGN)
    alike = unsample.compare({name: [runs[0]] for name, runs in RUNS.items()}, **DESIGN)
    assert contradictions(same) == []
    for metric in ("NDCG@10", "Recall@10"):
        for name in RUNS:
            # Runs without any spread are as one run, but for the own part of the errors of each.
            thrice, once = (found.estimates[name][metric] for found in (same, alike))
            assert thrice.value == pytest.approx(once.value)
            assert np.ptp(thrice.interval()) < 1.05 * np.ptp(once.interval())
    for name, runs in RUNS.items():
        alone = [unsample.estimate(each, metrics="Recall@100", **DESIGN) for each in runs]
        widest = max(np.ptp(each["Recall@100"].interval()) for each in alone)
        assert np.ptp(result.estimates[name]["Recall@100"].interval()) > widest


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
    with pytest.warns(UnsampleWarning, match="column 'model' .* take the rows of one at a time"):
        assert unsample.compare(columns, by="seed", **options).runs == {"1": 1, "2": 1, "3": 1}
    # Files of one name are runs.
    words = []
    for name, runs in RUNS.items():
        for ranks in runs:
            path = tmp_path / f"{len(words)}.csv"
            path.write_text("rank\n" + "\n".join(map(str, ranks)), encoding="utf-8")
            words.append(f"{name}={path}")
    design = ["--items", 1000, "--sampled", 99, "--protocol", "unseen", "-m", "NDCG@10"]
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
OPTIONS = {"metrics": TWO, "protocol": "unseen", "across": "dataset"}


def _only(chosen):
    """Return the chosen rows of the table."""
    return {key: values[chosen] for key, values in ROWS.items()}


SETS = {name: _only(ROWS["dataset"] == name) for name in sorted(SIZES)}


@pytest.fixture(scope="module")
def over():
    return unsample.compare(ROWS, **OPTIONS)


def _half(ends):
    return float(np.ptp(ends)) / 2.0


def test_means_over_data_sets_are_between_independent_and_equal_errors(over):
    count = len(over.whole)
    for metric in TWO:
        for row in (row for row in over.standings if row.metric == metric):
            entries = [over.comparisons[name].estimates[row.model][metric] for name in over.whole]
            assert math.isclose(row.value, np.mean([each.value for each in entries]), rel_tol=1e-9)
            halves = np.array([_half(each.interval()) for each in entries])
            independent, equal = math.sqrt((halves**2).sum()) / count, halves.mean()
            assert 0.85 * independent < _half((row.low, row.high)) < equal
        for a, b in (("A", "B"), ("A", "C"), ("B", "C")):
            pairs = [over.comparisons[name].difference(a, b, metric) for name in over.whole]
            pair = over.difference(a, b, metric, like=False)
            assert math.isclose(pair.value, np.mean([each.value for each in pairs]), rel_tol=1e-9)
            halves = np.array([_half(each.interval(0.9)) for each in pairs])
            independent, equal = math.sqrt((halves**2).sum()) / count, halves.mean()
            assert 0.85 * independent < _half(pair.interval(0.9)) < equal


def test_errors_in_common_widen_means_over_data_sets(over, monkeypatch):
    widths = []
    for share in (0.0, 0.4, 1.0):
        monkeypatch.setattr(_across, "IN_COMMON", {"unseen": (share, share)})
        found = unsample.compare(ROWS, **OPTIONS)
        (row,) = (each for each in found.standings if (each.model, each.metric) == ("A", "NDCG@10"))
        widths.append(row.high - row.low)
        # On each data set nothing changes.
        assert found.comparisons["tiny"].to_dict() == over.comparisons["tiny"].to_dict()
    assert widths[0] < 0.99 * widths[1] < 0.98 * widths[2]


def test_means_over_data_sets_agree_with_each_other(over):
    for pair in (*over.like, *over.differences):
        assert (pair.low > 0, pair.high < 0) == (pair.probability > 0.95, pair.probability < 0.05)
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
            beats = [over.difference(row.model, o, metric, like=False).probability for o in others]
            assert row.probability <= min(beats) + 1e-12


def test_ranks_of_models_are_those_of_a_normal_distribution():
    values = np.array([[0.3, 0.2], [0.3, 0.31]])
    numbers = FixedNumbers()
    apart = np.stack([numbers.normals(2, stream=each) for each in (1, 2)])
    error = 0.1 * math.sqrt(CAUTION)
    found = _across.MeansOverDataSets(
        parse("NDCG@10"),
        ("A", "B"),
        values=values,
        draws=values[:, None] + error * apart,
        plain=values[:, None] + 0.1 * apart,
    )
    rows = {row.model: row for row in found.standings(0.95)}
    of_two = math.sqrt(2.0) * error
    expected = ndtr(0.1 / of_two) + ndtr(-0.01 / of_two)
    assert math.isclose(rows["A"].best_on, expected, abs_tol=0.02)
    assert math.isclose(rows["A"].place, 2 - expected / 2, abs_tol=0.01)
    # The mean of two errors, and the difference of two means.
    assert math.isclose(
        _half((rows["A"].low, rows["A"].high)), 1.96 * 0.1 / math.sqrt(2), rel_tol=0.03
    )
    pair = found.difference("A", "B", like=False)
    assert math.isclose(_half(pair.interval(0.9)), 1.645 * error, rel_tol=0.03)
    assert math.isclose(pair.probability_above(0.0), ndtr(0.045 / error), abs_tol=0.01)


def test_every_form_gives_the_same_and_each_data_set_is_compared_as_it_is_alone(
    over, tmp_path, run
):
    for name, rows in SETS.items():
        alone = unsample.compare(rows, metrics=TWO, protocol="unseen")
        assert alone.to_dict() == over.comparisons[name].to_dict()
    assert unsample.compare(SETS, **OPTIONS).to_dict() == over.to_dict()
    path = tmp_path / "all.csv"
    _write(path)
    words = ["compare", path, "--across", "dataset", "--protocol", "unseen"]
    code, out, _ = run(*words, "-m", ",".join(TWO), "--json")
    data = json.loads(out)
    assert data.pop("inputs")["files"] == ["all.csv"]
    assert (code, data) == (0, json.loads(over.to_json()))


# -- the gate -------------------------------------------------------------------------------------


def test_a_gate_over_data_sets_is_that_of_their_mean_or_of_each(over):
    worst = min(over.models, key=lambda name: _mean_of(over, name, "Recall@100"))
    best = max(over.models, key=lambda name: _mean_of(over, name, "Recall@100"))
    gate = over.gate("Recall@100", baseline=best)
    for model, probability in gate.probabilities.items():
        pair = over.difference(model, best, "Recall@100", like=False)
        assert math.isclose(probability, 1.0 - pair.probability, abs_tol=1e-12)
        assert (model in gate.worse) == (pair.winner == best)
    assert worst in gate.worse
    assert not over.gate("Recall@100", baseline=worst).failed
    each = over.gate("Recall@100", baseline=best, each=True)
    names = {f"{model} on {name}" for model in over.models if model != best for name in SIZES}
    assert {*each.probabilities} == names
    one = over.comparisons["tiny"].difference(worst, best, "Recall@100")
    assert math.isclose(each.probabilities[f"{worst} on tiny"], 1 - one.probability, abs_tol=1e-12)
    assert f"for {len(names)} differences together" in str(each)
    # A margin is a share of the baseline where the model is compared with it.
    assert not over.gate("Recall@100", baseline=best, margin=0.99, each=True).failed
    with pytest.raises(InputError, match="baseline"):
        over.gate("Recall@100", baseline="nobody")
    with pytest.raises(InputError, match="baseline"):
        over.gate("Recall@100", baseline="nobody", each=True)


def _mean_of(over, model, metric):
    rows = (row for row in over.standings if (row.model, row.metric) == (model, metric))
    return next(rows).value


@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_a_gate_does_not_pass_a_model_that_was_not_evaluated():
    there = ~((ROWS["model"] == "B") & (ROWS["dataset"] == "tiny"))
    found = unsample.compare(_only(there), **OPTIONS)
    gate = found.gate("Recall@100", baseline="A", margin=0.9, each=True)
    assert gate.unknown == gate.missing == ("B on tiny",)
    assert (gate.verdict, gate.failed) == ("unknown", False)
    assert "Gate cannot tell" in str(gate)
    assert "B on tiny not evaluated" in str(gate)
    strict = found.gate("Recall@100", baseline="A", margin=0.9, each=True, fail_if_unknown=True)
    assert strict.failed


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("--baseline A", (0, 1)),
        ("--baseline A --on-each", (0, 1)),
        ("--baseline A --on-each --margin 0.99", (0,)),
        ("--baseline A --margin 0.99 --fail-if-unknown", (0,)),
    ],
)
def test_the_command_has_a_gate_over_data_sets(over, tmp_path, run, options, code):
    path = tmp_path / "all.csv"
    _write(path)
    words = ["compare", path, "--across", "dataset", "--protocol", "unseen", "-m", "Recall@100"]
    found, out, err = run(*words, *options.split(), "--fail-if-worse", "Recall@100", "--json")
    assert found in code, err
    told = json.loads(out)["gate"]
    assert found == told["failed"]
    margin = 0.99 if "margin" in options else 0.0
    gate = over.gate("Recall@100", baseline="A", margin=margin, each="--on-each" in options)
    assert told["worse"] == list(gate.worse)
    assert told["probabilities"] == pytest.approx(dict(gate.probabilities))


def _write(path):
    lines = [ROWS, *zip(*(values.tolist() for values in ROWS.values()), strict=True)]
    path.write_text("\n".join(",".join(map(str, line)) for line in lines))


def test_the_table_of_data_sets_has_a_row_for_each_model_and_metric(over):
    cells, *_ = over.view().tables
    assert cells.columns == ("metric", "model", *over.comparisons)
    assert [row[:2] for row in cells.rows] == [(m, name) for m in TWO for name in "ABC"]
    no_chart, means, differences = (part.chart for part in over.view().parts)
    assert no_chart is None  # its intervals stand in the cells
    labels = [sorted(row.label for row in chart.views[0].rows) for chart in (means, differences)]
    assert labels == [["A", "B", "C"], ["A - B", "A - C", "B - C"]]


def test_places_over_data_sets_and_who_is_tied(over):
    for like in (False, True):
        for metric in TWO:
            places = over.places(metric, like=like)
            assert {*places} == {*"ABC"}
            for pair in over.like if like else over.differences:
                if pair.metric == metric and pair.winner:
                    loser = pair.b if pair.winner == pair.a else pair.a
                    assert places[pair.winner][1] < 3
                    assert places[loser][0] > 1
            winner = over.winner(metric, like=like)
            assert (winner is not None) == ((1, 1) in places.values())
    for metric, sentence in zip(TWO, over.sentences(), strict=True):
        tied = over.winner(metric) is None and over.winner(metric, like=False) is None
        assert (" by their mean " in sentence) == tied


@pytest.mark.parametrize(
    ("keep", "known", "said"),
    [
        (ROWS["model"] != "B", True, "there is no B there"),
        (ROWS["model"] == "B", False, "there is no model but B there"),
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

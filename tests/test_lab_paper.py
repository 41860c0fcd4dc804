"""The paper as data, runs that reproduce it, its claims, and the report."""

import csv
import json
import re
from dataclasses import asdict, replace
from itertools import product

import numpy as np
import pytest

from tests.test_pages import Reader
from unsample.errors import (
    DatasetError,
    FileError,
    InputError,
    MethodError,
    RecommenderError,
)
from unsample.lab._train import Trained
from unsample.lab.datasets import load_ranks
from unsample.lab.paper import (
    ESTIMATORS,
    RECOMMENDERS,
    SCHEMA,
    Cell,
    Spec,
    _report_tables,
    _run,
    claim_rows,
    claims,
    deviations,
    exhibits,
    run,
    write_report,
)
from unsample.lab.paper._cells import compute_cell, count_repeats, typical_sizes
from unsample.lab.paper._report import wide_latex
from unsample.lab.paper._report_tables import accuracy_tables, winner_tables
from unsample.pages import Sheet, as_html, as_markdown

DATASETS = ("ml-1m", "citeulike-a", "pinterest-20", "yelp")
SMALL = Spec(
    datasets=("ml-1m",),
    recommenders=("ease", "itemknn"),
    estimators=(("BV 0.1", "bv"), ("MLE", "mle")),
    repeats=4,
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "whole"
    return folder, run(SMALL, folder)


def _bytes(folder):
    return {name: (folder / f"{name}.csv").read_bytes() for name in SCHEMA}


# -- the paper as data --------------------------------------------------------------------------


def _rows(kind):
    return [
        (e.settings.get("dataset"), row) for e in exhibits() if e.kind == kind for row in e.rows
    ]


def test_every_printed_cell_is_there():
    assert len(_rows("accuracy")) == 330
    assert len(_rows("winners")) == 252
    assert {row["dataset"] for _, row in _rows("statistics")} == set(DATASETS)
    assert {dataset for dataset, _ in _rows("accuracy")} == set(DATASETS)
    keys = [(d, r["recommender"], r["metric"], r["estimator"]) for d, r in _rows("accuracy")]
    assert len(set(keys)) == 330
    assert {key[1] for key in keys} == set(RECOMMENDERS.values())
    assert {key[3] for key in keys} == set(ESTIMATORS)
    keys = [(d, r["k"], r["metric"], r["estimator"]) for d, r in _rows("winners")]
    assert len(set(keys)) == 252
    assert {key[1] for key in keys} == {1, 5, 10, 20}
    assert all(row["std_x1000"] < row["mean_x1000"] < 200 for _, row in _rows("accuracy"))
    for exhibit in exhibits():
        if exhibit.kind in ("distributions", "sweep"):
            assert set(exhibit.settings["recommenders"]) <= set(RECOMMENDERS.values())
            assert set(exhibit.settings["estimators"]) <= set(ESTIMATORS)


def test_every_deviation_is_used_or_about_all():
    used = {key for exhibit in exhibits() for key in exhibit.deviations}
    assert used | {"bias-and-rmse"} == set(deviations())
    assert all(len(text) > 40 for text in deviations().values())


# -- specs --------------------------------------------------------------------------------------


def test_names_are_taken_in_any_case():
    spec = Spec.choose(recommenders=["itemKNN"], estimators=["mes", "BV 0.01", "bv(gamma=0.5)"])
    assert spec.recommenders == ("itemknn",)
    assert spec.estimators == (
        ("MES", "mes(eta=0.0001)"),
        ("BV 0.01", "bv(gamma=0.01)"),
        ("bv(gamma=0.5)", "bv(gamma=0.5)"),
    )


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"datasets": ["ml-1n"]}, DatasetError, "did you mean ml-1m"),
        ({"recommenders": ["eese"]}, RecommenderError, "did you mean ease"),
        ({"estimators": ["WMLF"]}, MethodError, "did you mean WMLE"),
        ({"candidates": ["unsen"]}, InputError, "did you mean unseen"),
        ({"repeats": 1}, InputError, "repeats must be an integer of at least 2"),
        ({"sampled": 0}, InputError, "sampled must be"),
        ({"rng": -1}, InputError, "rng must be"),
    ],
)
def test_unknown_names_are_refused_with_a_suggestion(arguments, error, said):
    with pytest.raises(error, match=said):
        Spec.choose(**arguments)


def test_cells_of_figures_are_those_of_tables_where_they_can_be():
    spec = Spec()
    assert len(spec.tables()) == 40
    assert len(spec.cells()) == len(set(spec.cells()))
    assert spec.cells()[:40] == spec.tables()
    figure = Cell("citeulike-a", "all", "neumf", 499)
    assert set(spec.labels_of(figure)) == {"BV 0.1", "MLE", "WMLE", "MES"}


# -- cells --------------------------------------------------------------------------------------


def test_seeds_differ_by_cell_and_by_nothing_else():
    ease, als = Cell("ml-1m", "all", "ease", 99), Cell("ml-1m", "all", "als", 99)
    drawn = [cell.seed_sequence(3).generate_state(4).tolist() for cell in (ease, ease, als)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_counting_repeats_keeps_each_histogram():
    rng = np.random.default_rng(5)
    items = rng.integers(50, 60, size=300)
    drawn = rng.integers(1, 11, size=(7, 300))
    counts, histograms = count_repeats(drawn, items, 9)
    assert counts.effective == pytest.approx(300)
    for row, ranks in zip(histograms, drawn, strict=True):
        expected = {}
        for size, rank in zip(items, ranks, strict=True):
            expected[size, rank] = expected.get((size, rank), 0) + 1
        got = {(s, r): c for s, r, c in zip(counts.items, counts.low, row, strict=True) if c}
        assert got == expected


def test_catalogues_are_one_where_they_are_many_and_nearly_equal():
    few = np.arange(1000, 1032)
    assert typical_sizes(few, np.ones(32), 20) is few
    rng = np.random.default_rng(3)
    items, weight = rng.integers(1000, 1300, 200), rng.uniform(1.0, 2.0, 200)
    for sampled, width in ((20, 0.04), (900, 0.02)):
        label = np.round(np.log(items) / width)
        expected = [
            np.average(items[same], weights=weight[same]) for same in label == label[:, None]
        ]
        assert typical_sizes(items, weight, sampled).tolist() == np.rint(expected).tolist()


def test_a_cell_agrees_with_estimating_one_repeat_by_itself():
    from unsample import estimate
    from unsample.law import draw_sampled_ranks

    cell = Cell("ml-1m", "unseen", "als", 99)
    bundled = load_ranks("ml-1m", "als", candidates="unseen")
    # Beyond a factor of 1.25, `estimate` has a P(R) for each range of sizes, and the paper has one.
    alike = bundled.items > bundled.items.max() / 1.25
    ranks, items = bundled.ranks[alike], bundled.items[alike]
    spec = Spec(repeats=3, estimators=(("MLE", "mle"), ("WMLE", "wmle")))
    result = compute_cell(spec, cell, ranks, items)
    plain = [metric.weights(ranks, items.max()).mean() for metric in spec.columns]
    assert np.allclose(result.exact, plain)
    seed = cell.seed_sequence(0)
    drawn = draw_sampled_ranks(ranks, items=items, sampled=99, rng=seed, size=(3,))
    methods = ("mle", "wmle")
    alone = estimate(drawn[1], items=items, sampled=99, metrics=spec.columns, method=methods)
    for label, method in spec.estimators:
        values = [alone[metric, method].value for metric in spec.columns]
        # The reproduction joins sizes of catalogues within four per cent, `estimate` within 0.4.
        assert np.allclose(result.values[label][1], values, rtol=5e-3)


# -- runs ---------------------------------------------------------------------------------------


def test_a_run_leaves_its_tables(finished):
    folder, result = finished
    assert len(result.accuracy) == 2 * 2 * 3 * 2
    assert len(result.winners) == 2 * 12 * 2
    assert {row["sampled"] for row in result.sweep} == {49, 99, 199, 499, 999}
    assert [row["source"] for row in result.statistics] == ["paper", "here"]
    for table, columns in SCHEMA.items():
        with (folder / f"{table}.csv").open(encoding="utf-8", newline="") as file:
            written = list(csv.DictReader(file))
        assert len(written) == len(getattr(result, table))
        for text, row in zip(written, getattr(result, table), strict=True):
            assert tuple(text) == columns
            assert set(row) == set(columns)
    settings = json.loads((folder / "settings.json").read_text())
    assert (settings["rng"], settings["repeats"]) == (0, 4)
    assert {"id", "text"} == set(settings["deviations"][0])


def test_errors_are_what_their_names_say(finished):
    for row in finished[1].accuracy:
        assert row["bias"] == pytest.approx(row["mean"] - row["exact"], abs=1e-9)
        spread = row["std"] ** 2 * (row["repeats"] - 1) / row["repeats"]
        assert row["rmse"] ** 2 == pytest.approx(spread + row["bias"] ** 2, rel=1e-6)


def test_printed_values_stand_beside_ours(finished):
    row = next(
        r for r in finished[1].accuracy if (r["recommender"], r["estimator"]) == ("EASE", "MLE")
    )
    assert (row["paper_exact"], row["paper_mean"], row["paper_std"]) == (0.03477, 0.03533, 0.00717)
    # Two recommenders are another contest than the paper's five.
    assert all(r["paper_correct"] is None for r in finished[1].winners)


def test_winners_count_repeats_in_which_the_best_is_named(finished):
    cells = []
    for name in ("ease", "itemknn"):
        known = load_ranks("ml-1m", name, candidates="all")
        cell = Cell("ml-1m", "all", name, 99)
        cells.append(compute_cell(SMALL, cell, known.ranks, known.items))
    column = [metric.name for metric in SMALL.columns].index("NDCG@10")
    best = np.argmax([cell.exact[column] for cell in cells])
    named = np.stack([cell.values["MLE"][:, column] for cell in cells]).argmax(axis=0)
    row = next(
        r
        for r in finished[1].winners
        if (r["metric"], r["k"], r["estimator"], r["candidates"]) == ("NDCG", 10, "MLE", "all")
    )
    assert row["true_winner"] == ("EASE", "itemKNN")[best]
    assert row["correct"] == (named == best).sum()


def test_a_cell_does_not_depend_on_its_company(finished, tmp_path):
    steps = []
    alone = replace(SMALL, recommenders=("itemknn",))
    result = run(alone, tmp_path, progress=lambda done, total, note: steps.append((done, total)))
    whole = [row for row in finished[1].accuracy if row["recommender"] == "itemKNN"]
    assert list(result.accuracy) == whole
    assert result.winners == ()
    assert steps[-1] == (len(alone.cells()),) * 2


def test_workers_change_nothing(finished, tmp_path):
    run(SMALL, tmp_path, workers=2)
    assert _bytes(tmp_path) == _bytes(finished[0])


def test_a_failing_cell_ends_the_run_and_its_processes(tmp_path):
    import multiprocessing

    broken = replace(SMALL, retrain=True)  # without ranks in the folder
    with pytest.raises(AssertionError):
        list(_run._computed(broken, tmp_path, broken.cells(), workers=2))
    assert multiprocessing.active_children() == []


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(FileError, match="cannot write"):
        run(SMALL, tmp_path / "thesis.tex")
    with pytest.raises(InputError, match="workers must be"):
        run(SMALL, tmp_path, workers=0)


def test_recommenders_are_trained_once_for_both_kinds_of_candidates(tmp_path, monkeypatch):
    trained = []

    def train(dataset, recommender, *, progress):
        trained.append(recommender)
        unseen, every = (
            load_ranks(dataset, recommender, candidates=kind) for kind in ("unseen", "all")
        )
        ranks = {"unseen": unseen.ranks[::-1], "all": every.ranks[::-1]}
        about = {key: every.provenance[key] for key in ("items", "users", "training_pairs")}
        about |= {"complete": True, "note": "ours"}
        return Trained(dataset, recommender, ranks, unseen.items[::-1], about, {})

    monkeypatch.setattr(_run, "train", train)
    spec = replace(SMALL, retrain=True, recommenders=("itemknn",))
    first = run(spec, tmp_path)
    assert trained == ["itemknn"]
    assert first.statistics[1]["note"] == "ours"
    assert run(replace(spec, repeats=3), tmp_path).settings["repeats"] == 3
    assert trained == ["itemknn"]


# -- claims -------------------------------------------------------------------------------------


def _row(estimator, bias, std, recommender="EASE", dataset="ml-1m"):
    return {
        "dataset": dataset,
        "candidates": "all",
        "recommender": recommender,
        "metric": "Recall",
        "estimator": estimator,
        "bias": bias,
        "std": std,
        "rmse": float(np.hypot(bias, std)),
        "exact": 1.0,
        "mean": 1.0 + bias,
        "paper_exact": None,
        "paper_mean": None,
        "paper_std": None,
    }


def _verdicts(accuracy):
    tables = dict.fromkeys(SCHEMA, ()) | {"accuracy": tuple(accuracy)}
    return {row["id"]: row for row in claim_rows(tables)}


def test_claims_tell_bias_from_rmse():
    rows = [
        _row("CLS", 0.5, 0.0),
        _row("BV 0.1", 0.3, 0.1),
        _row("BV 0.01", 0.2, 0.2),
        _row("MLE", 0.01, 0.6),
        _row("WMLE", 0.05, 0.62),
        _row("MES", -0.02, 0.7),
    ]
    verdicts = _verdicts(rows)
    accurate = verdicts["accurate-ml-1m"]
    assert (accurate["holds_by_bias"], accurate["holds_by_rmse"]) == (True, False)
    worst = verdicts["cls-worst-ml-1m"]
    assert (worst["holds_by_bias"], worst["holds_by_rmse"]) == (True, False)
    assert verdicts["variance"]["holds_by_bias"] is True


def test_claims_without_their_data_are_left_open():
    verdicts = _verdicts([_row("MLE", 0.1, 0.1)])
    assert set(verdicts) == {claim["id"] for claim in claims()}
    assert all(row["holds_by_bias"] is None and row["detail"] for row in verdicts.values())


@pytest.mark.slow
def test_spreads_on_ml_1m_are_the_printed_ones(tmp_path):
    chosen = Spec(
        datasets=("ml-1m",), candidates=("all",), estimators=tuple(ESTIMATORS.items())[:5]
    )
    result = run(chosen, tmp_path)
    verdicts = {row["id"]: row for row in result.claims}
    assert verdicts["numbers-std"]["holds_by_bias"] is True
    assert verdicts["numbers-wmle-ratio"]["holds_by_bias"] is True
    near = {"EASE", "MultiVAE", "NeuMF"}
    assert all(name in verdicts["numbers-std"]["detail"] for name in near)


# -- the report ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def html(finished):
    pytest.importorskip("jinja2")
    return as_html(finished[1])


def test_the_page_shows_every_part_and_fetches_nothing(html):
    shown = Reader(html)
    assert not re.search(
        r"url\(|@import|https?:", re.sub(r"<script.*?</script>", "", html, flags=re.DOTALL)
    )
    sections = "datasets accuracy winners figures claims deviations settings"
    for name in sections.split():
        assert f'id="{name}"' in html
    assert {"sizes", "agreement", "accuracy-1", "accuracy-2", "claims-checked"} <= set(shown.tables)
    titles = [chart["title"] for chart in shown.charts]
    assert titles == ["itemKNN on ml-1m, 99 items sampled", "How many samples are needed? ml-1m"]
    ranks, sweep = shown.charts
    assert [view["name"] for view in ranks["views"]] == ["P(R)", "Recall@R"]
    assert {one["name"] for one in ranks["views"][0]["series"]} == {"exact", "BV 0.1", "MLE"}
    assert sweep["views"][0]["x"] == [49, 99, 199, 499, 999]


def test_numbers_stand_in_the_cells_times_a_thousand(finished, html):
    for row in finished[1].accuracy:
        assert f"{1000 * row['mean']:.2f} ± {1000 * row['std']:.2f}" in html
        assert f"; {1000 * row['rmse']:.2f}" in html
        if row["paper_mean"] is not None:
            assert f"{1000 * row['paper_mean']:.2f} ± {1000 * row['paper_std']:.2f}" in html
    assert "1,000,209" in html
    assert "among all items, as in the paper (training items kept)" in html
    assert re.search(r"\d+ of 12 of the printed means agree", html)


def test_names_have_no_power_over_the_page(finished):
    pytest.importorskip("jinja2")
    evil = "<script>alert('x')</script>"
    accuracy = tuple({**row, "recommender": evil} for row in finished[1].accuracy)
    text = as_html(replace(finished[1], accuracy=accuracy))
    assert evil not in text + as_markdown(Sheet((), accuracy_tables(accuracy)))
    assert "&lt;script&gt;" in text


@pytest.mark.parametrize("table", ["accuracy", "winners"])
def test_markdown_and_latex_have_whole_tables(finished, table):
    rows = getattr(finished[1], table)
    sheet = Sheet((), (accuracy_tables if table == "accuracy" else winner_tables)(rows))
    markdown, latex = as_markdown(sheet), wide_latex(sheet)
    for part in re.split(r"^### .*$", markdown, flags=re.MULTILINE)[1:]:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in part.strip().splitlines()}) == 1
    for name in ("table*", "tabular"):
        assert latex.count(rf"\begin{{{name}}}") == latex.count(rf"\end{{{name}}}") == 2
    assert not set("±−–×≠") & set(latex)  # noqa: RUF001


def test_the_report_stands_beside_the_results(finished, html, tmp_path):
    path = write_report(finished[1], tmp_path)
    assert path.read_text(encoding="utf-8") == html
    tables = {"accuracy.md", "accuracy.tex", "winners.md", "winners.tex"}
    assert {entry.name for entry in tmp_path.iterdir()} == tables | {"report.html"}
    command = (
        "--recommender ease --recommender itemknn --estimator &#39;BV 0.1&#39; --estimator MLE"
    )
    assert command in html
    assert "BV 0.1 = bv, MLE = mle" in html


@pytest.mark.parametrize(("ours", "sign"), [(10.5, "="), (12.0, "~"), (14.0, "≠")])
def test_signs_count_standard_deviations(ours, sign):
    row = {"mean": ours, "paper_mean": 10.0, "std": 1.0, "paper_std": 1.0}
    assert _report_tables.mean_sign(row) == sign
    assert _report_tables.mean_sign({**row, "paper_mean": None}) == ""


@pytest.mark.parametrize(
    ("ours", "paper", "sign"), [(50, 60, "~"), (60, 60, "="), (100, 100, "="), (30, 60, "≠")]
)
def test_counts_of_winners_are_compared_by_their_standard_error(ours, paper, sign):
    row = {"correct": ours, "paper_correct": paper, "repeats": 100}
    assert _report_tables.winner_sign(row) == sign


def test_relative_errors_are_medians():
    rows = [{"exact": exact, "rmse": 0.1} for exact in (1.0, 0.5, 1e-9, 0.0)]
    assert _report_tables.median_relative(rows, "rmse") == pytest.approx(0.2)
    assert np.isnan(_report_tables.median_relative([], "rmse"))


# -- the command --------------------------------------------------------------------------------

ARGUMENTS = (
    *("reproduce", "--dataset", "ml-1m", "--recommender", "EASE", "--recommender", "itemKNN"),
    *("--estimator", "BV 0.1", "--estimator", "mle", "--repeats", 4, "--workers", 1),
)


def test_the_command_runs_and_says_where_results_are(command_of_small, finished):
    code, out, _ = command_of_small()
    assert code == 0
    assert "accurate-ml-1m" in out
    assert "Report: " in out
    content = json.loads(command_of_small("--json")[1])
    assert content["rows"]["accuracy"] == len(finished[1].accuracy)
    assert content["settings"]["repeats"] == 4


@pytest.fixture
def command_of_small(run, finished, tmp_path, monkeypatch):
    """The command with a run that is finished already."""
    pytest.importorskip("jinja2")
    asked = []
    monkeypatch.setattr(
        "unsample.lab.paper.run", lambda spec, *_, **__: asked.append(spec) or finished[1]
    )

    def call(*more):
        found = run(*ARGUMENTS, "--out", tmp_path, *more)
        assert asdict(asked[-1]) == asdict(SMALL)
        return found

    return call


def test_the_command_refuses_unknown_names(run):
    code, _, err = run("reproduce", "--dataset", "ml-2m")
    assert code == 2
    assert "did you mean ml-1m" in err


def test_every_estimator_has_a_column_in_every_table(finished):
    assert {(row["estimator"], row["candidates"]) for row in finished[1].accuracy} == set(
        product(("BV 0.1", "MLE"), ("all", "unseen"))
    )

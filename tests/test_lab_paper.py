"""Runs that reproduce the paper, its claims, and the report."""

import csv
import importlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from unsample import estimate
from unsample.errors import FileError, InputError
from unsample.lab import paper
from unsample.lab.datasets import load_ranks
from unsample.lab.paper import SCHEMA, Cell, _report
from unsample.lab.paper._cells import compute_cell
from unsample.lab.paper._exhibits import METRICS
from unsample.lab.paper._report import figure_charts, mean_sign
from unsample.report import as_html
from unsample.sampling import draw_sampled_ranks

ROOT = Path(__file__).parent.parent
CHOSEN = {"datasets": ("ml-1m", "pinterest-20"), "repeats": 3}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "whole"
    return folder, paper.run(folder, **CHOSEN)


@pytest.fixture(scope="module")
def tables(finished):
    return finished[1].tables


def test_a_cell_agrees_with_estimating_one_repeat_by_itself():
    cell = Cell("ml-1m", "unseen", "als", 99)
    bundled = load_ranks("ml-1m", "als", candidates="unseen")
    # Beyond a factor of 1.25, `estimate` has a P(R) for each range of sizes, and the paper has one.
    alike = bundled.items > bundled.items.max() / 1.25
    ranks, items = bundled.ranks[alike], bundled.items[alike]
    result = compute_cell(cell, ranks, items, repeats=3, rng=0)
    plain = [metric.weights(ranks, items.max()).mean() for metric in METRICS]
    assert np.allclose(result.exact, plain)
    seed = cell.seed_sequence(0)
    drawn = draw_sampled_ranks(ranks, items=items, sampled=99, rng=seed, size=(3,))
    methods = ("mle", "wmle")
    alone = estimate(drawn[1], items=items, sampled=99, metrics=METRICS, method=methods)
    for method in methods:
        values = [alone[metric, method].value for metric in METRICS]
        # The reproduction joins sizes of catalogues within four per cent, `estimate` within 0.4.
        assert np.allclose(result.values[method.upper()][1], values, rtol=5e-3)


def test_a_run_leaves_its_tables(finished):
    folder, result = finished
    found = result.tables
    assert len(found["accuracy"]) == 2 * 2 * 5 * 3 * 6
    assert len(found["winners"]) == 2 * 2 * 12 * 6
    assert {row["sampled"] for row in found["sweep"]} == {49, 99, 199, 499, 999}
    assert [row["source"] for row in found["statistics"]] == ["paper", "here"] * 2
    for table, columns in SCHEMA.items():
        with (folder / f"{table}.csv").open(encoding="utf-8", newline="") as file:
            written = list(csv.DictReader(file))
        assert len(written) == len(found[table])
        for text, row in zip(written, found[table], strict=True):
            assert tuple(text) == columns
            assert set(row) == set(columns)
    settings = json.loads((folder / "settings.json").read_text())
    assert (settings["rng"], settings["repeats"]) == (0, 3)
    claims = {row["id"]: row["holds_by_bias"] for row in found["claims"]}
    assert claims["accurate-ml-1m.unseen"] is not None
    assert claims["accurate-yelp"] is None, "a claim without its data is left open"
    ours = {row["id"] for row in found["claims"] if row["claimed_by"] == "us"}
    assert ours == {"numbers-std", "numbers-wmle-ratio"}


def test_errors_are_what_their_names_say(tables):
    for row in tables["accuracy"]:
        assert row["bias"] == pytest.approx(row["mean"] - row["exact"], abs=1e-9)
        spread = row["std"] ** 2 * (row["repeats"] - 1) / row["repeats"]
        assert row["rmse"] ** 2 == pytest.approx(spread + row["bias"] ** 2, rel=1e-6)


def test_printed_values_stand_beside_ours(tables):
    wanted = {"dataset": "ml-1m", "estimator": "MLE", "recommender": "EASE"}
    row, other = (
        next(r for r in tables["accuracy"] if wanted.items() | {("candidates", kind)} <= r.items())
        for kind in ("all", "unseen")
    )
    assert (row["paper_exact"], row["paper_mean"], row["paper_std"]) == (0.03477, 0.03533, 0.00717)
    assert other["paper_mean"] is None


def test_neither_other_data_sets_nor_workers_change_a_number(tables, tmp_path):
    steps = []
    alone = paper.run(
        tmp_path,
        datasets=["pinterest-20"],
        repeats=3,
        workers=2,
        progress=lambda done, total, note: steps.append((done, total)),
    )
    for table in ("accuracy", "winners"):
        expected = [row for row in tables[table] if row["dataset"] == "pinterest-20"]
        assert list(alone.tables[table]) == expected
    assert steps[-1] == (10, 10)


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"datasets": ["ml-1n"]}, InputError, "did you mean ml-1m"),
        ({"repeats": 1}, InputError, "repeats must be an integer of at least 2"),
        ({"rng": -1}, InputError, "rng must be"),
        ({"workers": 0}, InputError, "workers must be"),
        ({}, FileError, "cannot write"),
    ],
)
def test_wrong_arguments_are_refused_before_the_work(tmp_path, arguments, error, said):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(error, match=said):
        paper.run(tmp_path / "thesis.tex", **arguments)


# -- claims -------------------------------------------------------------------------------------


def test_claims_tell_bias_from_rmse():
    errors = {"CLS": (0.5, 0.0), "BV 0.1": (0.3, 0.1), "BV 0.01": (0.2, 0.2)}
    errors |= {"MLE": (0.01, 0.6), "WMLE": (0.05, 0.62), "MES": (-0.02, 0.7)}
    same = {"dataset": "ml-1m", "candidates": "all", "recommender": "EASE", "metric": "Recall"}
    same |= {"exact": 1.0, **dict.fromkeys(("paper_exact", "paper_mean", "paper_std"))}
    rows = [
        same | {"estimator": name, "bias": bias, "std": std, "mean": 1.0 + bias}
        | {"rmse": float(np.hypot(bias, std))}
        for name, (bias, std) in errors.items()
    ]  # fmt: skip
    tables = dict.fromkeys(SCHEMA, ()) | {"accuracy": tuple(rows)}
    verdicts = {row["id"]: row for row in paper.claim_rows(tables)}
    for claim in ("accurate-ml-1m", "cls-worst-ml-1m"):
        found = verdicts[claim]
        assert (found["holds_by_bias"], found["holds_by_rmse"]) == (True, False)
    assert verdicts["variance"]["holds_by_bias"] is True


def test_signs_count_printed_standard_deviations():
    printed = {"std": 0.5, "paper_mean": 0.02, "paper_std": 0.002}
    found = [mean_sign(printed | {"mean": mean}) for mean in (0.0219, 0.0221, 0.0141, 0.0139)]
    assert found == ["=", "~", "~", "≠"]
    assert mean_sign({"paper_mean": None}) == ""


# -- the page -----------------------------------------------------------------------------------


@pytest.fixture
def page(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT / "tools")
    module = importlib.import_module("paper_page")
    for name in ("PAGE", "PICTURE"):
        monkeypatch.setattr(module, name, tmp_path / getattr(module, name).name)
    shutil.copy(ROOT / "docs" / "paper.md", module.PAGE)
    return module


def test_the_page_says_how_near_cells_are(page, finished, monkeypatch, capsys):
    tables = finished[1].tables
    monkeypatch.setattr(page, "reproduced", lambda: tables)
    cells = page.table_of_cells(tables)
    for dataset, printed in (("ml-1m", 90), ("pinterest-20", 75)):
        (row,) = [line for line in cells.splitlines() if line.startswith(f"| {dataset} |")]
        counts = [int(cell) for cell in row.split("|")[2:5]]
        assert sum(counts) == printed
    assert page.main(check=True) == 1, "three samples are not a hundred"
    assert page.main(check=False) == 0
    assert page.main(check=True) == 0
    assert "changed paper.md" in capsys.readouterr().out


def test_claims_on_the_page_are_the_papers(page, tables):
    text = page.table_of_claims(tables)
    assert text.count("\n") == 2 + 16
    assert "vary as printed" not in text
    assert page.own_checks(tables).count("vary as printed") == 1


@pytest.mark.slow
def test_spreads_on_ml_1m_are_the_printed_ones(tmp_path):
    verdicts = {row["id"]: row for row in paper.run(tmp_path, datasets=["ml-1m"]).tables["claims"]}
    assert verdicts["numbers-std"]["holds_by_bias"] is True
    assert verdicts["numbers-wmle-ratio"]["holds_by_bias"] is True
    assert all(name in verdicts["numbers-std"]["detail"] for name in ("EASE", "MultiVAE", "NeuMF"))


def test_numbers_stand_in_the_cells_times_a_thousand(finished, tables):
    text = (finished[0] / "accuracy.md").read_text(encoding="utf-8")
    for row in tables["accuracy"]:
        assert f"{1000 * row['mean']:.2f} ± {1000 * row['std']:.2f}" in text
        assert f"; {1000 * row['rmse']:.2f}" in text
        if row["paper_mean"] is not None:
            assert f"{1000 * row['paper_mean']:.2f} ± {1000 * row['paper_std']:.2f}" in text
    for name in ("accuracy", "winners"):
        latex = (finished[0] / f"{name}.tex").read_text(encoding="utf-8")
        assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 4


def test_every_figure_is_drawn(finished, tables):
    charts = {chart.identity: chart for chart in figure_charts(tables)}
    assert {path.stem for path in finished[0].glob("*.svg")} == set(charts)
    figure = charts["distributions-ml-1m"]
    assert figure.title.startswith("Figure 1: ")
    assert len(figure.views) == 6, "P(R) of three recommenders, and its sum"
    for single, summed in zip(figure.views[:3], figure.views[3:], strict=True):
        assert single.name.removeprefix("P(R)") == summed.name.removeprefix("sum")
        assert single.x == tuple(range(1, 201))
        for one, other in zip(single.series, summed.series, strict=True):
            assert np.allclose(np.cumsum(one.y), other.y)
    sizes = charts["sample-size-ml-1m"]
    assert [view.name for view in sizes.views] == ["EASE", "NeuMF", "itemKNN"]
    assert sizes.views[0].x == (49, 99, 199, 499, 999)


def test_the_page_shows_verdicts_first_and_folds_the_evidence(finished):
    page = as_html(finished[1])
    verdict = page.index("Claims of the paper that hold among all items")
    assert verdict < page.index("On ml-1m, CLS is the worst.") < page.index("<details>")
    before, _, folded = page.partition("<details>")
    assert "CLS is last in" not in before
    assert "CLS is last in" in folded
    tables = 1 + 1 + 4 + 4  # what was found, deviations, accuracy, winners
    assert page.count("<details>") == page.count("</details>") == tables


def test_figures_need_no_library_for_the_tables(finished, monkeypatch):
    monkeypatch.setattr(_report, "_CAN_DRAW", False)
    (_, _), (name, told) = finished[1].view().notes
    assert name == "Figures"
    assert told == "not drawn; install matplotlib with: pip install 'unsample[report]'"


def test_the_command_runs_and_says_where_results_are(run, finished, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(paper, "run", lambda *_, **given: asked.append(given) or finished[1])
    call = ("reproduce", "--dataset", "ml-1m", "--dataset", "pinterest-20", "--repeats", 3)
    code, out, _ = run(*call, "--workers", 1, "--out", tmp_path)
    assert code == 0
    assert "On ml-1m, MLE and MES are among the most or second most accurate." in out
    assert f"Tables: {finished[0]}/*.csv" in out
    assert tuple(asked[0]["datasets"]) == CHOSEN["datasets"]
    page = tmp_path / "page.html"
    plot = tmp_path / "new" / "folder" / "plot.svg"
    content = json.loads(run(*call, "--json", "--html", page, "--plot", plot)[1])
    assert "The paper reproduced" in page.read_text(encoding="utf-8")
    assert b"<svg" in plot.read_bytes()
    assert content["rows"]["accuracy"] == 360
    assert content["settings"]["repeats"] == asked[0]["repeats"] == 3


def test_a_plot_may_go_into_the_folder_of_the_results(run, tmp_path):
    call = ("reproduce", "--dataset=pinterest-20", "--repeats", 2, "--out", tmp_path)
    for _ in range(2):
        code, _, err = run(*call, "--html", tmp_path / "pages" / "page.html")
        assert code == 0, err
    assert (tmp_path / "pages" / "page.html").exists()
    assert (tmp_path / "accuracy.csv").exists()


@pytest.mark.parametrize("name", ["settings.json", "accuracy.csv", "notes/mine.txt"])
def test_files_of_others_are_not_written_over(run, tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text('{"theme": "dark"}')
    code, out, err = run("reproduce", "--dataset=ml-1m", "--out", tmp_path)
    assert (code, out) == (2, "")
    assert "out must be a new or empty folder, or one of an earlier reproduction" in err
    assert (tmp_path / name).read_text() == '{"theme": "dark"}'
    assert len([*tmp_path.iterdir()]) == 1

"""The paper as data, and runs that reproduce it: seeded, resumable, checked."""

import json
import shutil
import zipfile

import numpy as np
import pytest

from unsample.errors import (
    DatasetError,
    FileError,
    InputError,
    MethodError,
    RecommenderError,
    UnresolvedWarning,
)
from unsample.lab.datasets import load_ranks
from unsample.lab.paper import (
    ESTIMATORS,
    RECOMMENDERS,
    SCHEMA,
    Cell,
    Spec,
    _run,
    claim_rows,
    claims,
    deviations,
    exhibits,
    load_results,
    run,
)
from unsample.lab.paper._cells import Ranks, compute_cell, count_repeats

DATASETS = ("ml-1m", "citeulike-a", "pinterest-20", "yelp")
TABLES = tuple(SCHEMA)
SMALL = Spec(
    datasets=("ml-1m",),
    candidates=("all",),
    recommenders=("ease", "als"),
    estimators=(("BV 0.1", "bv"), ("MLE", "mle")),
    repeats=4,
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "whole"
    return folder, run(SMALL, folder)


def _bytes(folder):
    return {name: (folder / f"{name}.csv").read_bytes() for name in TABLES}


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


def test_the_digest_tells_specs_apart():
    assert Spec().digest == Spec.choose().digest
    assert len({Spec(rng=s, repeats=r).digest for s in (0, 1) for r in (10, 20)}) == 4


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


def test_a_cell_agrees_with_estimating_one_repeat_by_itself():
    from unsample import estimate
    from unsample.law import draw_sampled_ranks

    cell = Cell("ml-1m", "unseen", "als", 99)
    bundled = load_ranks("ml-1m", "als", candidates="unseen")
    # Beyond a factor of 1.25, `estimate` has a P(R) for each range of sizes, and the paper has one.
    alike = bundled.items > bundled.items.max() / 1.25
    ranks = Ranks(bundled.ranks[alike], bundled.items[alike])
    spec = Spec(repeats=3, estimators=(("MLE", "mle"), ("WMLE", "wmle")))
    result = compute_cell(spec, cell, ranks)
    most = ranks.items.max()
    plain = [metric.weights(ranks.ranks, most).mean() for metric in spec.columns]
    assert np.allclose(result.exact, plain)
    drawn = draw_sampled_ranks(
        ranks.ranks, items=ranks.items, sampled=99, rng=cell.seed_sequence(0), size=(3,)
    )
    with pytest.warns(UnresolvedWarning):
        alone = estimate(
            drawn[1],
            items=ranks.items,
            sampled=99,
            metrics=spec.columns,
            method=("mle", "wmle"),
            resamples=0,
        )
    for label, method in spec.estimators:
        values = [alone[metric, method].value for metric in spec.columns]
        # Sizes of catalogues are grouped around means that differ a little by repeat.
        assert np.allclose(result.values[label][1], values, rtol=2e-3)


# -- runs ---------------------------------------------------------------------------------------


def test_a_run_leaves_tables_that_load(finished):
    folder, result = finished
    assert len(result.accuracy) == 2 * 3 * 2
    assert len(result.winners) == 12 * 2
    assert {row["sampled"] for row in result.sweep} == {49, 99, 199, 499, 999}
    assert [row["source"] for row in result.statistics] == ["paper", "here"]
    assert result.settings["rng"] == 0
    assert {"id", "text"} == set(result.settings["deviations"][0])
    again = load_results(folder)
    for table in TABLES:
        assert getattr(again, table) == getattr(result, table)


def test_rows_have_the_stated_columns_and_kinds(finished):
    kinds = {"text": str, "integer": int, "real": float, "truth": bool}
    for table, columns in SCHEMA.items():
        for row in getattr(finished[1], table):
            assert list(row) == list(columns)
            for name, kind in columns.items():
                assert row[name] is None or type(row[name]) is kinds[kind]


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
    folder, result = finished
    cells = [np.load(folder / "cells" / f"ml-1m.paper.{r}.99.npz") for r in ("ease", "als")]
    column = [metric.name for metric in SMALL.columns].index("NDCG@10")
    best = np.argmax([cell["exact"][column] for cell in cells])
    named = np.stack([cell["values/MLE"][:, column] for cell in cells]).argmax(axis=0)
    row = next(
        r for r in result.winners if (r["metric"], r["k"], r["estimator"]) == ("NDCG", 10, "MLE")
    )
    assert row["true_winner"] == ("EASE", "ALS")[best]
    assert row["correct"] == (named == best).sum()


def test_the_same_run_gives_the_same_bytes_and_computes_nothing(finished):
    folder, _ = finished
    before = _bytes(folder)
    again = run(SMALL, folder, resume=True)
    assert again.settings["computed"] == 0
    assert _bytes(folder) == before


def test_a_cell_does_not_depend_on_its_company(finished, tmp_path):
    alone = Spec(**{**SMALL.__dict__, "recommenders": ("als",)})
    result = run(alone, tmp_path / "alone")
    whole = [row for row in finished[1].accuracy if row["recommender"] == "ALS"]
    assert list(result.accuracy) == whole
    assert result.winners == ()


def test_workers_change_nothing(finished, tmp_path):
    run(SMALL, tmp_path / "two", workers=2)
    assert _bytes(tmp_path / "two") == _bytes(finished[0])


class _KilledError(Exception):
    pass


@pytest.mark.parametrize("after", [0, 5])
def test_a_run_killed_at_any_cell_resumes_to_the_same_bytes(after, finished, tmp_path, monkeypatch):
    folder = tmp_path / "killed"
    folder.mkdir()
    (folder / ".spec.json.0123456789abcdef.part").write_bytes(b"{")  # killed at its very start
    calls = []

    def dying(*arguments):
        if len(calls) == after:
            raise _KilledError
        calls.append(arguments)
        return compute_cell(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(_run, "compute_cell", dying)
        with pytest.raises(_KilledError):
            run(SMALL, folder)
    steps = []
    report = lambda done, total, note="": steps.append(done)  # noqa: E731
    result = run(SMALL, folder, resume=True, progress=report)
    assert result.settings["computed"] == len(SMALL.cells()) - after
    assert steps == list(range(after, len(SMALL.cells()) + 1))
    assert _bytes(folder) == _bytes(finished[0])


def test_broken_cells_are_computed_again(finished, tmp_path):
    folder = tmp_path / "broken"
    shutil.copytree(finished[0], folder)
    paths = sorted((folder / "cells").glob("*.npz"))
    paths[0].write_bytes(paths[0].read_bytes()[:200])
    paths[1].write_bytes(b"")
    with zipfile.ZipFile(paths[2], "w"):
        pass
    assert run(SMALL, folder).settings["computed"] == 3
    assert _bytes(folder) == _bytes(finished[0])


def test_another_run_is_refused_unless_forced(finished, tmp_path):
    folder = tmp_path / "other"
    shutil.copytree(finished[0], folder)
    other = Spec(**{**SMALL.__dict__, "rng": 1, "recommenders": ("als",)})
    with pytest.raises(FileError, match=r"other settings.*--force"):
        run(other, folder)
    with pytest.raises(FileError, match="other settings"):
        run(other, folder, resume=True)
    assert run(other, folder, force=True).settings["rng"] == 1


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(FileError, match="holds other files"):
        run(SMALL, tmp_path)
    with pytest.raises(FileError, match="must be a folder"):
        run(SMALL, tmp_path / "thesis.tex")
    with pytest.raises(FileError, match="run to resume"):
        run(SMALL, tmp_path / "new", resume=True)
    with pytest.raises(FileError, match="not both"):
        run(SMALL, tmp_path / "new", resume=True, force=True)
    assert (tmp_path / "thesis.tex").read_text() == "precious"


def test_a_damaged_spec_is_refused(finished, tmp_path):
    folder = tmp_path / "damaged"
    shutil.copytree(finished[0], folder)
    (folder / "spec.json").write_text("{")
    with pytest.raises(FileError, match="cannot be read"):
        run(SMALL, folder)


def test_unfinished_and_damaged_results_say_what_to_do(finished, tmp_path):
    with pytest.raises(FileError, match="--resume"):
        load_results(tmp_path)
    folder = tmp_path / "damaged"
    shutil.copytree(finished[0], folder)
    (folder / "accuracy.csv").write_text("dataset,nonsense\n")
    with pytest.raises(FileError, match="columns"):
        load_results(folder)
    text = (finished[0] / "accuracy.csv").read_text()
    (folder / "accuracy.csv").write_text(text[: len(text) - 30])
    with pytest.raises(FileError, match=r"accuracy\.csv"):
        load_results(folder)


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
    tables = dict.fromkeys(TABLES, ()) | {"accuracy": tuple(accuracy)}
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
    assert set(verdicts) == {claim.id for claim in claims()}
    assert all(row["holds_by_bias"] is None and row["detail"] for row in verdicts.values())


@pytest.mark.slow
def test_spreads_on_ml_1m_are_the_printed_ones(tmp_path):
    chosen = Spec(
        datasets=("ml-1m",), candidates=("all",), estimators=tuple(ESTIMATORS.items())[:5]
    )
    result = run(chosen, tmp_path / "run")
    verdicts = {row["id"]: row for row in result.claims}
    assert verdicts["numbers-std"]["holds_by_bias"] is True
    assert verdicts["numbers-wmle-ratio"]["holds_by_bias"] is True
    near = {"EASE", "MultiVAE", "NeuMF"}
    assert all(name in verdicts["numbers-std"]["detail"] for name in near)


# -- the command --------------------------------------------------------------------------------


@pytest.fixture
def command():
    import typer
    from typer.testing import CliRunner

    from unsample.lab.cli import reproduce_command

    app = typer.Typer()
    app.command()(reproduce_command)
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments])


ARGUMENTS = (
    *("--dataset", "ml-1m", "--candidates", "all", "--recommender", "EASE"),
    *("--recommender", "ALS", "--estimator", "BV 0.1", "--estimator", "mle", "--repeats", 4),
)


def test_the_command_runs_and_says_where_results_are(command, finished, tmp_path):
    shutil.copytree(finished[0], tmp_path / "run")  # the same command continues it
    shown = command(*ARGUMENTS, "--out", tmp_path / "run", "--workers", 1)
    assert shown.exit_code == 0, shown.output
    assert str(tmp_path / "run") in shown.output
    assert _bytes(tmp_path / "run") == _bytes(finished[0])
    summary = command(*ARGUMENTS, "--out", tmp_path / "run", "--resume", "--json")
    content = json.loads(summary.stdout)
    assert content["rows"]["accuracy"] == 12
    assert content["settings"]["computed"] == 0


def test_the_command_refuses_unknown_names(command):
    problem = command("--dataset", "ml-2m").exception
    assert isinstance(problem, DatasetError)
    assert problem.exit_code == 2

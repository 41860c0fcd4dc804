"""Plots take axes and return them, and draw the numbers of their results."""

import inspect

import numpy as np
import pytest

import unsample
from tests import pages
from unsample import pages as report
from unsample.errors import InputError

PLOTS = {
    "plot_comparison": "compare",
    "plot_distribution": "methods",
    "plot_estimates": "methods",
    "plot_metric_curve": "methods",
    "plot_places": "compare",
    "plot_plan": "plan",
}


def test_no_plot_escapes_these_tests():
    assert set(PLOTS) == {name for name in report.__all__ if name.startswith("plot_")}


@pytest.mark.parametrize("name", PLOTS)
def test_plots_take_axes_and_return_them(name):
    figure = pytest.importorskip("matplotlib.figure")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    draw = getattr(report, name)
    parameter = inspect.signature(draw).parameters["ax"]
    assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
    assert parameter.default is None
    axes = figure.Figure().subplots()
    assert draw(pages.result(PLOTS[name]), ax=axes) is axes
    assert axes.get_xlabel()
    assert axes.lines or axes.collections
    with pyplot.rc_context({"backend": "agg"}):
        pyplot.switch_backend("agg")
        fresh = draw(pages.result(PLOTS[name]))
        assert fresh is not axes
        pyplot.close(fresh.get_figure(root=True))


@pytest.mark.parametrize("draw", [report.plot_metric_curve, report.plot_estimates])
def test_legends_name_the_ranges(draw):
    figure = pytest.importorskip("matplotlib.figure")
    wide = ["95 % interval (calibrated)", "guaranteed", "bounds"]
    for prior, names in ({}, wide), ({"prior": None}, ["95 % interval", "bounds"]):
        result = unsample.estimate(
            pages.sampled_ranks(), items=400, sampled=30, metrics="Recall@50", **prior
        )
        axes = draw(result, ax=figure.Figure().subplots())
        shown = [text.get_text() for text in axes.get_legend().get_texts()]
        assert sorted(set(shown) & {*wide, *names}) == sorted(names)


def test_plots_draw_the_numbers():
    figure = pytest.importorskip("matplotlib.figure")
    result = pages.result("compare")
    axes = report.plot_comparison(result, metric="NDCG@50", ax=figure.Figure().subplots())
    expected = [one for one in result.differences if one.metric == "NDCG@50"]
    points = [line.get_xdata()[0] for line in axes.lines if line.get_marker() in ("o", "s")]
    assert points == [one.value for one in expected]
    assert len(axes.get_yticklabels()) == len(expected)
    with pytest.raises(InputError, match="one that was compared"):
        report.plot_comparison(result, metric="Recall@3")
    evaluated = pages.result("evaluate")
    axes = report.plot_estimates(evaluated, ax=figure.Figure().subplots())
    assert axes.lines[-1].get_xdata()[0] == evaluated["NDCG@10"].value
    silent = unsample.estimate(
        pages.sampled_ranks(), items=400, sampled=30, metrics="Recall@50", method="naive"
    )
    with pytest.raises(InputError, match="gives P"):
        report.plot_distribution(silent)


def test_places_are_drawn_best_first_with_their_letters():
    figure = pytest.importorskip("matplotlib.figure")
    rng = np.random.default_rng(0)
    near = {name: rng.integers(1, 101, size=2000) for name in ("b", "c")}
    ranks = {"worst": np.full(2000, 100), **near, "best": np.ones(2000, dtype=int)}
    found = unsample.compare(ranks, items=101, sampled=100, replacement=False, metrics="Recall@20")
    axes = report.plot_places(found, ax=figure.Figure().subplots())
    assert axes.get_yticklabels()[0].get_text() == "best"
    assert [text.get_text() for text in axes.texts] == ["a", "b", "b", "c"]
    assert [tuple(line.get_xdata()) for line in axes.lines] == [(1, 1), (2, 3), (2, 3), (4, 4)]

"""The page of a comparison: who is better, by how much, and how sure that is."""

from __future__ import annotations

from dataclasses import replace

from unsample.answers import Estimates
from unsample.answers.comparison import Comparison
from unsample.pages import _words
from unsample.pages._charts import (
    Cell,
    IntervalChart,
    IntervalRow,
    IntervalView,
    Table,
    number,
    words,
)
from unsample.pages._page import Page, Part
from unsample.pages._result_charts import (
    curve_parts,
    interval_chart,
    interval_row,
)
from unsample.pages._text import heading

#: Curves of more models than this are not drawn; each needs linear programs at every K.
_MOST_CURVES = 12


def comparison_page(result: Comparison) -> Page:
    """Return the page of models side by side: the verdicts, then what they rest on."""
    first = next(iter(result.estimates.values()))
    how = "user by user" if result.paired else "unpaired"
    correction = "no correction" if result.correction == "none" else result.correction
    shown = result.excerpt()
    return Page(
        verb="compare",
        title=f"Which of {len(result.models)} models is truly better?",
        subtitle=f"{heading(first)}, compared {how}",
        warnings=result.warnings,
        headline=result.sentences(),
        cards=(),
        parts=(
            _differences_part(shown),
            _standings_part(shown),
            *curve_parts(_first_models(shown), result.level),
        ),
        meanings=(*_words.COMPARISON_MEANINGS, *_words.meanings(first, result.level)),
        assumptions=_words.assumptions(first),
        settings=(
            ("Models", _models_in_words(result, shown)),
            ("Compared", how),
            ("Pairs", result.against),
            *_curves_left_out(shown),
            ("Level", f"{100 * result.level:g} %"),
            ("Correction for many pairs", correction),
            *_words.settings(first),
        ),
    )


def _first_models(result: Comparison) -> dict[str, Estimates]:
    """Return the models whose curves are drawn: more of them no eye can follow."""
    if len(result.models) <= _MOST_CURVES:
        return dict(result.estimates)
    metric = result.standings[0].metric
    rows = [one.model for one in result.standings if one.metric == metric]
    return {name: result.estimates[name] for name in rows[:_MOST_CURVES]}


def _curves_left_out(result: Comparison) -> tuple[tuple[str, str], ...]:
    if len(result.models) <= _MOST_CURVES:
        return ()
    metric = result.standings[0].metric
    return (("Curves", f"those of the {_MOST_CURVES} highest estimates of {metric}"),)


def _models_in_words(result: Comparison, shown: Comparison) -> str:
    names = ", ".join(shown.models)
    if shown is result:
        return names
    return f"{len(result.models):,}; shown here are the highest estimates: {names}"


def _differences_part(result: Comparison) -> Part:
    metrics = dict.fromkeys(one.metric for one in result.differences)
    views = tuple(
        IntervalView(
            metric,
            tuple(
                IntervalRow(
                    f"{one.a} \N{MINUS SIGN} {one.b}",
                    one.value,
                    one.low,
                    one.high,
                    note=str(one),
                    health="sure" if one.winner else "unsure",
                )
                for one in result.differences
                if one.metric == metric
            ),
        )
        for metric in metrics
    )
    chart = IntervalChart(
        identity="differences",
        title="Differences between models",
        caption=(
            f"Each line holds the true difference at {100 * result.level:g} %, chance and the "
            "bias of sampling included. A line that crosses zero leaves open which model is "
            "better."
        ),
        x_label="difference on the full catalogue",
        views=views,
        zero=True,
        sure="told apart",
        unsure="cannot be told apart",
    )
    rows = tuple(
        (
            words(one.metric),
            words(f"{one.a} \N{MINUS SIGN} {one.b}"),
            number(one.value, sign=True),
            number(one.low, sign=True),
            number(one.high, sign=True),
            _chances(one.least, one.most),
            _chance(one.if_alike),
            Cell("<0.001" if one.p_value < 0.001 else f"{one.p_value:.3f}", one.p_value),
            words(one.winner or "cannot tell"),
        )
        for one in result.differences
    )
    columns = (
        "metric",
        "a \N{MINUS SIGN} b",
        "difference",
        "low",
        "high",
        "a better",
        "if alike",
        "p",
        "winner",
    )
    table = Table("difference-table", "All differences", columns, rows)
    return Part("verdicts", "Differences", charts=(chart,), tables=(table,))


def _standings_part(result: Comparison) -> Part:
    metrics = dict.fromkeys(one.metric for one in result.standings)
    views = tuple(IntervalView(metric, tuple(_standing_row(result, metric))) for metric in metrics)
    rows = tuple(
        (
            words(one.metric),
            words(one.model),
            number(one.value),
            number(one.low),
            number(one.high),
            Cell(str(one.place), float(one.place)),
            _chances(one.least, one.most),
            _chance(one.if_alike),
        )
        for one in result.standings
    )
    columns = ("metric", "model", "estimate", "low", "high", "place", "best", "if alike")
    chart = replace(
        interval_chart(views),
        title="Each model by itself",
        caption=(
            "Thick: the interval. Thin: the bounds. Intervals that overlap may still belong to "
            "models that are told apart, for differences are taken user by user."
            if result.paired
            else "Thick: the interval. Thin: the bounds."
        ),
    )
    return Part(
        "standings",
        "Models",
        charts=(chart,),
        tables=(Table("standing-table", "All standings", columns, rows),),
    )


def _standing_row(result: Comparison, metric: str) -> list[IntervalRow]:
    return [
        interval_row(one.model, result.estimates[one.model][metric], result.level)
        for one in result.standings
        if one.metric == metric
    ]


def _chance(value: float) -> Cell:
    return Cell(f"{100 * value:.0f} %", value)


def _chances(least: float, most: float) -> Cell:
    low, high = f"{100 * least:.0f}", f"{100 * most:.0f}"
    return Cell(f"{low} %" if low == high else f"{low} to {high} %", least)

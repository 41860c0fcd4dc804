"""What comparisons of models say: on one data set, and on several."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from unsample.questions.compare.data_sets import LIKE, THESE, Across, MeanStanding
from unsample.questions.compare.differences import Difference
from unsample.questions.compare.models import is_published
from unsample.questions.compare.result import Comparison, Standing
from unsample.questions.estimate.result import Estimates
from unsample.questions.estimate.view import heading, is_exact
from unsample.report import (
    DASH,
    Columns,
    Ends,
    Notes,
    Number,
    Part,
    Table,
    View,
    digits,
    number,
    probability,
)

#: Models whose differences are all shown: more no eye can follow.
_MOST_MODELS = 20


def view_of_comparison(result: Comparison) -> View:
    """Return what is shown of models on one data set."""
    return View(
        verb="compare",
        title=f"Which of {len(result.models)} models is truly better?",
        about=_about(result),
        parts=(
            Part("Models", _standings(result)),
            Part("Differences", _differences(result)),
        ),
        plotted=1,
        verdicts=result.sentences(),
        notes=_notes(result),
        warnings=result.warnings,
        settings=(
            ("Models", ", ".join(result.models)),
            ("Compared", result.pairing),
            ("Level", _sure(result)),
            ("Runs", ", ".join(f"{name} {count}" for name, count in result.runs.items())),
        ),
    )


def _about(result: Comparison) -> tuple[str, ...]:
    """Return by what models are compared; of each model where that comes from a paper."""
    count, held = f"{len(result.models)} models", result.estimates
    first, *others = held.values()
    if _is_mixed(held.values()):
        lines = (f"{name}: {heading(each)}" for name, each in held.items())
        return (f"{count}, compared {result.pairing}", *lines)
    if is_published(first):
        lines = (f"{name}: {'; '.join(each.view().about)}" for name, each in held.items())
        return (f"{count}, compared by printed numbers", *lines)
    runs = sorted({*result.runs.values()})
    if runs != [1]:
        count += f", {' to '.join(map(str, sorted({runs[0], runs[-1]})))} runs of each, a run of"
    else:
        count += ","
    scored = ", ".join(f"{name} {each:,}" for name, each in result.scored.items())
    cost = (f"scores: {scored}; {sum(result.scored.values()):,} in all",) if scored else ()
    return (f"{count} {heading(first, *others)}, compared {result.pairing}", *cost)


def _is_mixed(results: Iterable[Estimates]) -> bool:
    """Return whether some models were ranked in full, and others were not."""
    full = {bool((each.counts.sampled == each.counts.items - 1).all()) for each in results}
    return len(full) > 1


def _notes(result: Comparison) -> Notes:
    told = f"probability of at least {_sure(result)}"
    if {*result.runs.values()} == {1}:
        told += "; one run of each model: variation between trainings is not in it"
    notes = (
        ("places", f"between which each model lies ({_sure(result)}); overlapping ones are tied"),
        ("best", "probability of being the best"),
        ("differ", told),
    )
    if len(result.models) <= _MOST_MODELS:
        return notes
    return ("differences", "from the highest estimate; JSON and to_frame have all"), *notes


def _sure(result: Comparison | Across) -> str:
    return f"{100 * result.level:g} %, corrected for all pairs"


def _standings(result: Comparison) -> Table:
    """Return a row for each model, the highest estimate of each metric first."""
    winners = {metric.name: result.winner(metric) for metric in result.metrics}
    places = {metric.name: result.places(metric) for metric in result.metrics}
    columns: Columns[Standing] = {
        "metric": lambda row: row.metric,
        "model": lambda row: row.model,
        "estimate": lambda row: _standing(row, result, bold=winners[row.metric] == row.model),
        "places": lambda row: _span(places[row.metric][row.model]),
        "best": lambda row: probability(row.probability),
        "source": lambda row: row.source,
    }
    return replace(
        Table.of(result.standings, columns),
        caption="Full-catalogue metrics of models",
        identity="models",
        interval=f"{100 * result.level:g} % interval",
        wider="bounds",
        bold=f"better than every other model ({_sure(result)})",
        details=("bounds", "source"),
        over_metrics="estimate",
    )


def _span(places: tuple[int, int]) -> Number:
    """Return a range of places as a reader writes it: 1, or 2 to 4 with a dash."""
    first, last = places
    text = f"{first}" if first == last else f"{first}{DASH}{last}"
    return Number(text, float(first))


def _standing(row: Standing, result: Comparison, *, bold: bool = False) -> Number:
    """Return the estimate of a model, as `value_of` does, at the level of the comparison."""
    entry = result.estimates[row.model][row.metric]
    if row.source == "bounds":
        return number(row.value, (row.low, row.high), None, "bounds", bold=bold)
    bounds = None if is_exact(entry) else entry.bounds(result.level)
    return number(row.value, (row.low, row.high), bounds, bold=bold)


def _differences(result: Comparison) -> Table:
    """Return the differences of pairs, the higher estimate first, and who differs."""
    rows = [pair if pair.value >= 0 else pair.reversed() for pair in result.differences]
    if len(result.models) > _MOST_MODELS:
        highest = {row.metric: row.model for row in reversed(result.standings)}
        rows = [row for row in rows if highest[row.metric] in (row.a, row.b)]
    columns: Columns[Difference] = {
        "metric": lambda row: row.metric,
        "models": lambda row: f"{row.a} - {row.b}",
        "difference": lambda row: _signed(row, bold=row.winner is not None),
        "probability": lambda row: probability(row.probability),
    }
    return replace(
        Table.of(rows, columns),
        caption="Differences between models",
        identity="differences",
        interval=f"{100 * result.level_of_differences:g} % interval",
        bold=f"differ ({_sure(result)})",
        told="differ",
    )


def _signed(row: Difference, wider: Ends | None = None, *, bold: bool = False) -> Number:
    """Return a difference with its sign, and the digits that its interval needs."""
    text = digits(row.value, max(abs(row.low), abs(row.high)), "+")
    return Number(text, row.value, (row.low, row.high), wider, bold=bold)


# -- several data sets ----------------------------------------------------------------------------


def view_of_means(result: Across) -> View:
    """Return what is shown of models on several data sets."""
    sets = ", ".join(result.comparisons)
    return View(
        verb="compare",
        title=f"Which of {len(result.models)} models is better over {len(result.whole)} data sets?",
        about=(f"{len(result.models)} models on {len(result.comparisons)} data sets ({sets})",),
        parts=(
            Part("Each data set", _cells(result)),
            Part("Means over data sets", _means(result)),
            Part("Differences of means", _mean_differences(result)),
        ),
        verdicts=result.sentences(),
        notes=(
            ("best", f"probability of the highest mean on {THESE}"),
            ("best on", "so many of them, to be expected"),
            ("place", f"the mean place, with its interval on {LIKE}"),
        ),
        warnings=result.warnings,
        settings=(("Means are over", ", ".join(result.whole)), ("Level", _sure(result))),
    )


def _cells(result: Across) -> Table:
    """Return the estimates with their intervals, models below each other, a column a data set."""
    rows = [
        (name, held, row) for name, held in result.comparisons.items() for row in held.standings
    ]
    order = {metric.name: place for place, metric in enumerate(result.metrics)}
    rows.sort(key=lambda each: (order[each[2].metric], result.models.index(each[2].model)))
    columns: Columns[tuple[str, Comparison, Standing]] = {
        "metric": lambda row: row[2].metric,
        "model": lambda row: row[2].model,
        "data set": lambda row: row[0],
        "estimate": lambda row: _bracketed(_standing(row[2], row[1])),
    }
    caption = f"Models on each data set, with {100 * result.level:g} % intervals"
    table = Table.of(rows, columns).pivot("data set", "estimate")
    return replace(table, caption=caption, identity="datasets")


def _bracketed(shown: Number) -> Number:
    """Return a number and its interval in one cell, also on screens."""
    return Number(f"{shown.text}{shown.behind}", shown.value)


def _means(result: Across) -> Table:
    """Return the mean of each model, and its places."""
    winners = {metric.name: result.winner(metric.name) for metric in result.metrics}

    def mean(row: MeanStanding) -> Number:
        ends, like = (row.low, row.high), (row.like_low, row.like_high)
        shown = number(row.value, ends, like, bold=winners[row.metric] == row.model)
        held = (result.comparisons[name].estimates[row.model] for name in result.whole)
        return replace(shown, marks=tuple(each[row.metric].value for each in held))

    def place(row: MeanStanding) -> Number:
        ends = f"{row.place_low:.1f}, {row.place_high:.1f}"
        return Number(f"{row.place:.2f} [{ends}]", row.place)

    columns: Columns[MeanStanding] = {
        "metric": lambda row: row.metric,
        "model": lambda row: row.model,
        "mean": mean,
        "best": lambda row: probability(row.probability),
        "best on": lambda row: Number(f"{row.best_on:.1f}", row.best_on),
        "place": place,
    }
    return replace(
        Table.of(result.standings, columns),
        caption="Means over data sets",
        identity="means",
        interval=THESE,
        wider=LIKE,
        bold=f"the highest mean on {LIKE} ({_sure(result)})",
    )


def _mean_differences(result: Across) -> Table:
    columns: Columns[tuple[Difference, Difference]] = {
        "metric": lambda row: row[0].metric,
        "models": lambda row: f"{row[0].a} - {row[0].b}",
        "difference": lambda row: _signed(
            row[0], (row[1].low, row[1].high), bold=row[1].winner is not None
        ),
        "probability, these": lambda row: probability(row[0].probability),
        "probability, like these": lambda row: probability(row[1].probability),
    }
    return replace(
        Table.of(zip(result.differences, result.like, strict=True), columns),
        caption="Differences of means",
        identity="differences",
        interval=THESE,
        wider=LIKE,
        bold=f"differ on {LIKE} ({_sure(result)})",
        told="differ",
    )

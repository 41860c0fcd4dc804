"""What is shown of comparisons of models: on one data set, and on several."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from unsample import __version__
from unsample.questions.compare.data_sets import LIKE, THESE, Across, MeanStanding
from unsample.questions.compare.differences import Difference
from unsample.questions.compare.models import is_published
from unsample.questions.compare.result import Comparison, Standing
from unsample.questions.estimate.result import BOUNDS, Estimates
from unsample.questions.estimate.view import heading, how_ranked, is_exact
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

#: With more models than this only the differences from the highest estimate are shown.
_MAX_MODELS = 20


def view_of_comparison(result: Comparison) -> View:
    """Return the view of a comparison on one data set."""
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
        sentence=" ".join((*result.sentences(), _origin(result))),
        settings=(
            ("Models", ", ".join(result.models)),
            ("Compared", result.pairing),
            ("Level", _sure(result)),
            ("Runs", ", ".join(f"{name} {count}" for name, count in result.runs.items())),
        ),
    )


def _origin(result: Comparison) -> str:
    """Return how models were compared and from which data, as a sentence for a paper."""
    first, *others = result.estimates.values()
    models = f"{len(result.models)} models were compared with unsample {__version__}"
    if is_published(first):
        return f"{models}, from printed numbers."
    runs = _runs_in_words(result).removesuffix(", a run of").rstrip(",")
    ranked = how_ranked(first, *others)
    if _is_mixed(result.estimates.values()):
        ranked = "ranks among samples of some models, and among all items of others"
    if result.scored:
        ranked += f", by {sum(result.scored.values()):,} scores in all"
    return f"{models}, {result.pairing}{runs}, from {ranked}."


def _about(result: Comparison) -> tuple[str, ...]:
    """Return how models are compared; where they differ in it, also a line for each model."""
    count = f"{len(result.models)} models"
    estimates = result.estimates
    first, *others = estimates.values()
    if _is_mixed(estimates.values()):
        lines = (f"{name}: {heading(of_model)}" for name, of_model in estimates.items())
        return (f"{count}, compared {result.pairing}", *lines)
    if is_published(first):
        abouts = {name: of_model.view().about for name, of_model in estimates.items()}
        lines = (f"{name}: {'; '.join(about)}" for name, about in abouts.items())
        return (f"{count}, compared by printed numbers", *lines)
    models = f"{count}{_runs_in_words(result)} {heading(first, *others)}"
    return (f"{models}, compared {result.pairing}", *_cost(result))


def _runs_in_words(result: Comparison) -> str:
    """Return how many runs each model has, as the words after the number of models."""
    runs = sorted({*result.runs.values()})
    if runs == [1]:
        return ","
    number = f"{runs[0]}" if len(runs) == 1 else f"{runs[0]} to {runs[-1]}"
    return f", {number} runs of each, a run of"


def _cost(result: Comparison) -> tuple[str, ...]:
    """Return how many scores were asked for, if `evaluate` evaluated the models."""
    if not result.scored:
        return ()
    scored = ", ".join(f"{name} {count:,}" for name, count in result.scored.items())
    return (f"scores: {scored}; {sum(result.scored.values()):,} in all",)


def _is_mixed(results: Iterable[Estimates]) -> bool:
    """Return whether some models were ranked in full, and others were not."""
    all_counts = [result.counts for result in results]
    in_full = {bool((counts.sampled == counts.items - 1).all()) for counts in all_counts}
    return len(in_full) > 1


def _notes(result: Comparison) -> Notes:
    """Return what the words of the tables mean."""
    differ = f"probability of at least {_sure(result)}"
    if {*result.runs.values()} == {1}:
        differ += "; one run of each model: variation between trainings is not in it"
    notes = (
        ("places", f"between which each model lies ({_sure(result)}); overlapping ones are tied"),
        ("best", "probability of being the best"),
        ("differ", differ),
    )
    if len(result.models) <= _MAX_MODELS:
        return notes
    return ("differences", "from the highest estimate; JSON and to_frame have all"), *notes


def _sure(result: Comparison | Across) -> str:
    """Return how certain verdicts are."""
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
        keys=("model",),
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
    interval = (row.low, row.high)
    if row.source == BOUNDS:
        return number(row.value, interval, word=BOUNDS, bold=bold)
    bounds = None if is_exact(entry) else entry.bounds(result.level)
    return number(row.value, interval, wider=bounds, bold=bold)


def _differences(result: Comparison) -> Table:
    """Return the differences of pairs, the higher estimate first, and who differs."""
    rows = [pair if pair.value >= 0 else pair.reversed() for pair in result.differences]
    if len(result.models) > _MAX_MODELS:
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
        keys=("models",),
        caption="Differences between models",
        identity="differences",
        interval=f"{100 * result.level_of_differences:g} % interval",
        bold=f"differ ({_sure(result)})",
        told="differ",
    )


def _signed(row: Difference, *, wider: Ends | None = None, bold: bool = False) -> Number:
    """Return a difference with its sign, and the digits that its interval needs."""
    text = digits(row.value, max(abs(row.low), abs(row.high)), sign="+")
    return Number(text, row.value, ends=(row.low, row.high), wider=wider, bold=bold)


# -- several data sets ----------------------------------------------------------------------------


def view_of_means(result: Across) -> View:
    """Return the view of a comparison on several data sets."""
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
        sentence=" ".join((*result.sentences(), _origin_of_means(result))),
    )


def _origin_of_means(result: Across) -> str:
    """Return how models were compared and on which data sets, as a sentence for a paper."""
    models = f"{len(result.models)} models were compared with unsample {__version__}"
    return f"{models} by means over {len(result.whole)} data sets ({', '.join(result.whole)})."


def _cells(result: Across) -> Table:
    """Return the estimates with their intervals, a row for each model, a column a data set."""
    order_of_metrics = [metric.name for metric in result.metrics]
    order_of_models = list(result.models)
    cells = [
        _Cell(data_set, comparison, standing=standing)
        for data_set, comparison in result.comparisons.items()
        for standing in comparison.standings
    ]
    cells.sort(
        key=lambda cell: (
            order_of_metrics.index(cell.standing.metric),
            order_of_models.index(cell.standing.model),
        )
    )
    columns: Columns[_Cell] = {
        "metric": lambda cell: cell.standing.metric,
        "model": lambda cell: cell.standing.model,
        "data set": lambda cell: cell.data_set,
        "estimate": lambda cell: _bracketed(_standing(cell.standing, cell.comparison)),
    }
    table = replace(
        Table.of(cells, columns),
        keys=("model", "data set"),
        caption=f"Models on each data set, with {100 * result.level:g} % intervals",
        identity="datasets",
    )
    return replace(table.pivot("data set", "estimate"), keys=("model",), unpivoted=table)


class _Cell(NamedTuple):
    """A model on a data set."""

    data_set: str
    comparison: Comparison
    standing: Standing


def _bracketed(shown: Number) -> Number:
    """Return a number and its interval in one cell, also on screens."""
    return Number(f"{shown.text}{shown.behind}", shown.value)


def _means(result: Across) -> Table:
    """Return the mean of each model, and its places."""
    winners = {metric.name: result.winner(metric.name) for metric in result.metrics}

    def mean(row: MeanStanding) -> Number:
        shown = number(
            row.value,
            (row.low, row.high),
            wider=(row.like_low, row.like_high),
            bold=winners[row.metric] == row.model,
        )
        on_each = [result.comparisons[name].estimates[row.model] for name in result.whole]
        return replace(shown, marks=tuple(estimates[row.metric].value for estimates in on_each))

    def mean_place(row: MeanStanding) -> Number:
        ends = f"{row.place_low:.1f}, {row.place_high:.1f}"
        return Number(f"{row.place:.2f} [{ends}]", row.place)

    columns: Columns[MeanStanding] = {
        "metric": lambda row: row.metric,
        "model": lambda row: row.model,
        "mean": mean,
        "best": lambda row: probability(row.probability),
        "best on": lambda row: Number(f"{row.best_on:.1f}", row.best_on),
        "place": mean_place,
    }
    return replace(
        Table.of(result.standings, columns),
        keys=("model",),
        caption="Means over data sets",
        identity="means",
        interval=THESE,
        wider=LIKE,
        bold=f"the highest mean on {LIKE} ({_sure(result)})",
    )


class _BothDifferences(NamedTuple):
    """The difference of two means on these data sets, and on data sets like these."""

    these: Difference
    like: Difference


def _mean_differences(result: Across) -> Table:
    """Return the differences of means, and who differs on data sets like these."""

    def difference(row: _BothDifferences) -> Number:
        wider = (row.like.low, row.like.high)
        return _signed(row.these, wider=wider, bold=row.like.winner is not None)

    columns: Columns[_BothDifferences] = {
        "metric": lambda row: row.these.metric,
        "models": lambda row: f"{row.these.a} - {row.these.b}",
        "difference": difference,
        "probability, these": lambda row: probability(row.these.probability),
        "probability, like these": lambda row: probability(row.like.probability),
    }
    return replace(
        Table.of(map(_BothDifferences, result.differences, result.like), columns),
        keys=("models",),
        caption="Differences of means",
        identity="differences",
        interval=THESE,
        wider=LIKE,
        bold=f"differ on {LIKE} ({_sure(result)})",
        told="differ",
    )

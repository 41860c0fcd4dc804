"""What is shown of estimates from printed numbers: of one model, and of a table of models."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from unsample import __version__
from unsample._rounding import rounded, rounded_down
from unsample.questions.estimate.result import BOUNDS
from unsample.questions.estimate.view import (
    heading,
    how_ranked,
    sentence_of,
    value_of,
    view_of_estimates,
)
from unsample.questions.published.leaderboard import Leaderboard, Place
from unsample.questions.published.result import Published
from unsample.report import Cell, Number, Part, Table, View


def view_of_published(result: Published) -> View:
    """Return the view of estimates, with the printed numbers and how much they are too high."""
    whole = view_of_estimates(result)
    ranges = "; ".join(
        f"{number}, from {number.low:.6g} to {number.high:.6g}" for number in result.numbers
    )
    *others, last = map(str, result.numbers)
    printed = f"{', '.join(others)} and {last}" if others else last
    return replace(
        whole,
        verb="published",
        title="From printed numbers to the full catalogue",
        about=(f"from {', '.join(map(str, result.numbers))}", *whole.about),
        verdicts=tuple(_too_high(result)),
        settings=(("Printed, and what rounding leaves open", ranges), *whole.settings),
        sentence=sentence_of(result, data=f"{printed}, as printed for {how_ranked(result)}"),
    )


def _too_high(result: Published) -> Iterable[str]:
    """Return how many times too high printed numbers are, with the limits of each factor.

    The interval is calibrated: it holds for 95 % of data sets like the prior's. The bounds
    hold whatever P(R) is; without an interval, only they are told.
    """
    items = f"{result.counts.catalogues[1]:,}"
    level = result.level
    for printed in result.numbers:
        if printed.name not in result:
            continue
        entry = result[printed.name]
        _, high = entry.interval(level)
        if not 0.0 < 1.2 * high < printed.value:
            continue
        _, upper_bound = entry.bounds(level)
        certain = f"{rounded_down(printed.value / upper_bound)} or more"
        if entry.source == BOUNDS:
            yield f"{printed} is {certain} times as high as on all {items} items, whatever P(R) is."
            continue
        about = rounded(printed.value / entry.value)
        likely = rounded_down(printed.value / high)
        yield (
            f"{printed} is about {about} times as high as on all {items} items ({likely} or "
            f"more at {100 * level:g} %, {certain} whatever P(R) is)."
        )


def view_of_leaderboard(result: Leaderboard) -> View:
    """Return the view of a table of models: each model with its places, the best first."""
    named = [name for name in result.data_sets if name]
    on = f" on {len(named)} data sets" if named else ""
    about = [f"{len(result.models)} models{on}, by printed numbers"]
    for name, models in result.data_sets.items():
        lines = dict.fromkeys(heading(estimates) for estimates in models.values())
        about += [f"{name}: {line}" if name else line for line in lines]
    sure = f"{100 * result.level:g} %, corrected for all pairs"
    origin = f"The estimates were made with unsample {__version__}"
    return View(
        verb="published",
        title=f"What {len(result.models)} models are worth on the full catalogue",
        about=tuple(about),
        parts=(Part("Models", _places(result)),),
        verdicts=result.sentences(),
        sentence=" ".join((*result.sentences(), f"{origin}: {'; '.join(about)}.")),
        notes=(("places", f"between which each model lies ({sure}); overlapping ones are tied"),),
        warnings=result.warnings,
    )


def _places(result: Leaderboard) -> Table:
    """Return a row for each data set, metric and model."""
    columns: dict[str, Callable[[Place], Cell]] = {
        "data set": lambda row: row.data_set,
        "metric": lambda row: row.metric,
        "model": lambda row: row.model,
        "printed": lambda row: Number(row.printed, float(row.printed) if row.printed else None),
        "estimate": lambda row: value_of(row.estimate, result.level, guided=False),
        "places": _span,
    }
    rows = list(result.standings())
    if "" in result.data_sets:
        del columns["data set"]
    if not any(row.printed for row in rows):
        del columns["printed"]
    return replace(
        Table.of(rows, columns),
        keys=tuple(name for name in ("data set", "model", "places") if name in columns),
        caption="Full-catalogue metrics of models, from printed numbers",
        identity="leaderboard",
        interval=f"{100 * result.level:g} % interval",
        wider="bounds",
        details=("bounds",),
    )


def _span(row: Place) -> str:
    """Return the places that a model may have, as 2 or as 2-4."""
    return f"{row.first}" if row.first == row.last else f"{row.first}-{row.last}"

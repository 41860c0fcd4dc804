"""What estimates say: of `estimate`, `exact`, `evaluate` and `published`, and of groups of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from unsample.questions.estimate.curves import curves_chart
from unsample.questions.estimate.result import Estimate, Estimates
from unsample.report import Cell, Notes, Number, Part, Table, View, number

_LIKE = "users like these"
#: What intervals mean, by where they come from.
_MEANINGS = {
    "prior": (
        "interval",
        "holds the true value for {level:g} % of data sets like those the prior was learned from",
    ),
    "mean": ("interval", "that of an unbiased mean over users"),
    "bounds": ("bounds", "hold the true value whatever P(R) is"),
}
_EXACT = ("interval", "how far the values would move with other users like these")
_GUIDED = (
    ("interval", "where a full ranking of these users would land"),
    (_LIKE, "the interval for others"),
)
_Row: TypeAlias = tuple[str, Estimate]


def view_of_estimates(result: Estimates) -> View:
    """Return what is shown of one set of estimates."""
    known = all(map(is_exact, result.entries))
    return View(
        verb="exact" if known else "estimate",
        title=f"{'Exact' if known else 'Full-catalogue'} metrics",
        about=(heading(result),),
        parts=(
            Part("Results", _table({"": result})),
            Part("At every K", drawn=partial(curves_chart, result)),
        ),
        notes=_notes([result]),
        warnings=result.warnings,
    )


def view_of_groups(groups: Mapping[str, Estimates]) -> View:
    """Return what is shown of estimates by name."""
    lines = {name: heading(held) for name, held in groups.items()}
    about = [f"{name}: {line}" for name, line in lines.items()]
    if len({*lines.values()}) == 1:
        about = [f"{len(groups)} groups: {lines.popitem()[1]}"]
    return View(
        verb="estimate",
        title=f"Full-catalogue metrics of {len(groups):,} groups",
        about=tuple(about),
        parts=(Part("Results", _table(groups)),),
        notes=_notes(list(groups.values())),
        warnings=tuple(dict.fromkeys(text for each in groups.values() for text in each.warnings)),
    )


def heading(result: Estimates, *others: Estimates) -> str:
    """Return how many users there are, how many of how many items were ranked, and which.

    Sizes are those of all results, where these are of models that are compared.
    """
    counts = result.counts
    least, greatest = _span(each.counts.catalogues for each in (result, *others))
    fewest, most = _span(each.counts.samples for each in (result, *others))
    what = f"{counts.users:,} user{'s' if counts.users > 1 else ''}"
    if counts.users != counts.total:
        each = "target, other relevant items left out" if result.filtered else "user"
        what = f"{counts.total:,} targets of {what} (metrics for each {each})"
    items, sampled = _range(least, greatest), _range(fewest, most)
    if not counts.replacement and bool((counts.sampled == counts.items - 1).all()):
        return f"{what} ranked among all {items} items"
    if counts.full.any():
        drawn = [each.counts.take(~each.counts.full) for each in (result, *others)]
        fewest, most = _span(each.samples for each in drawn)
        sampled = _range(fewest, most)
        what += f", {int(counts.count[counts.full].sum()):,} ranked in full, the others among"
    else:
        what += ","
    how = "sampled" if counts.replacement else "sampled without replacement"
    if counts.shared is not None:
        unknown = "" if counts.shared.known else " (which item beats which target is not known)"
        how = f"shared by all targets{unknown}"
    stated = f"protocol {result.protocol or 'not stated'}"
    return f"{what} {sampled} of {items} items {how}, {stated}"


def _span(ranges: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return the least and the greatest number of several ranges."""
    lows, highs = zip(*ranges, strict=True)
    return min(lows), max(highs)


def _range(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def is_exact(entry: Estimate) -> bool:
    """Return whether the value is known for these users, so that nothing was estimated."""
    known = entry.known
    return known is not None and known.interval() == (entry.value, entry.value)


def value_of(entry: Estimate, level: float, *, guided: bool) -> Number:
    """Return a value with what is shown beside it.

    Of a guided evaluation, the interval is for these users and the wider one for users like these.
    """
    like = entry.interval(level)
    if guided and is_exact(entry):
        return number(entry.value, None, like, "exact")
    if guided:
        return number(entry.value, entry.interval(level, population=False), like)
    bounds = entry.bounds(level)
    if entry.source == "bounds":
        return number(entry.value, bounds, None, "bounds")
    return number(entry.value, like, None if is_exact(entry) else bounds)


def _level(results: Iterable[Estimates]) -> float:
    """Return the level of the intervals that are shown, which groups have in common."""
    return next(iter(results)).level


def _table(results: Mapping[str, Estimates]) -> Table:
    """Return all estimates, by group where these have names."""
    rows = [(group, entry) for group, held in results.items() for entry in held.entries]
    guided = any(held.guided for held in results.values())
    level = _level(results.values())
    columns: dict[str, Callable[[_Row], Cell]] = {
        "group": lambda row: row[0],
        "metric": lambda row: row[1].metric.name,
        "method": lambda row: row[1].method,
        "estimate": lambda row: value_of(row[1], level, guided=guided),
        "source": lambda row: row[1].source,
    }
    if list(results) == [""]:
        del columns["group"]
    alone = len({entry.method for _, entry in rows}) == 1
    return replace(
        Table.of(rows, columns),
        caption="Full-catalogue metrics",
        identity="metrics",
        interval=f"{100 * level:g} % interval",
        wider=_LIKE if guided else "bounds",
        details=("bounds", "source", *(["method"] if alone else [])),
        over_metrics="estimate",
    )


def _notes(results: Collection[Estimates]) -> Notes:
    """Return what the intervals mean."""
    entries = [entry for result in results for entry in result.entries]
    if any(result.guided for result in results):
        return _GUIDED
    if all(map(is_exact, entries)):
        return (_EXACT,)
    sources = {entry.source for entry in entries}
    if "prior" in sources:
        sources -= {"mean"}
    level = 100.0 * _level(results)
    notes = (_MEANINGS[source] for source in _MEANINGS if source in sources)
    return tuple((word, text.format(level=level)) for word, text in notes)

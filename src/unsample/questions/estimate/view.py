"""What is shown of estimates: of one result, and of several results by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from unsample.counts import RankCounts
from unsample.questions.estimate.curves import curves_chart
from unsample.questions.estimate.result import BOUNDS, Estimate, Estimates
from unsample.report import Cell, Notes, Number, Part, Table, View, number

_LIKE = "users like these"
#: What intervals mean, by the source of an estimate.
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
    """Return the view of one result."""
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
    """Return the view of several results by name."""
    lines = {name: heading(result) for name, result in groups.items()}
    about = [f"{name}: {line}" for name, line in lines.items()]
    if len({*lines.values()}) == 1:
        about = [f"{len(groups)} groups: {lines.popitem()[1]}"]
    return View(
        verb="estimate",
        title=f"Full-catalogue metrics of {len(groups):,} groups",
        about=tuple(about),
        parts=(Part("Results", _table(groups)),),
        notes=_notes(list(groups.values())),
        warnings=tuple(
            dict.fromkeys(text for result in groups.values() for text in result.warnings)
        ),
    )


def heading(result: Estimates, *others: Estimates) -> str:
    """Return how many users there are, how many of how many items were ranked, and which.

    If ``others`` are compared with the result, the numbers of items are ranges over all of them.
    """
    counts = result.counts
    all_counts = [counts, *(other.counts for other in others)]
    items = _range(*_span(some.catalogues for some in all_counts))
    if not counts.replacement and bool((counts.sampled == counts.items - 1).all()):
        return f"{_users(result)} ranked among all {items} items"
    sampled = _range(*_span(some.samples for some in all_counts))
    among = ","
    if counts.full.any():
        in_samples = [some.take(~some.full) for some in all_counts]
        sampled = _range(*_span(some.samples for some in in_samples))
        in_full = int(counts.count[counts.full].sum())
        among = f", {in_full:,} ranked in full, the others among"
    protocol = f"protocol {result.protocol or 'not stated'}"
    how = _how_drawn(counts)
    return f"{_users(result)}{among} {sampled} of {items} items {how}, {protocol}"


def _users(result: Estimates) -> str:
    """Return how many users there are, and how many targets if these are more."""
    counts = result.counts
    users = f"{counts.users:,} user{'s' if counts.users > 1 else ''}"
    if counts.users == counts.total:
        return users
    unit = "target, other relevant items left out" if result.filtered else "user"
    return f"{counts.total:,} targets of {users} (metrics for each {unit})"


def _how_drawn(counts: RankCounts) -> str:
    """Return how items were drawn."""
    if counts.shared is not None:
        unknown = "" if counts.shared.known else " (which item beats which target is not known)"
        return f"shared by all targets{unknown}"
    return "sampled" if counts.replacement else "sampled without replacement"


def _span(ranges: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return the smallest and the largest number of several ranges."""
    lows, highs = zip(*ranges, strict=True)
    return min(lows), max(highs)


def _range(low: int, high: int) -> str:
    """Return a range in words, or the one number that it holds."""
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def is_exact(entry: Estimate) -> bool:
    """Return whether the value is known exactly for these users."""
    return entry.known is not None and entry.known.interval() == (entry.value, entry.value)


def value_of(entry: Estimate, level: float, *, guided: bool) -> Number:
    """Return a value with its interval at a level, and with its bounds.

    Of a guided evaluation, the interval is for these users, and the wider range for users like
    these.
    """
    like = entry.interval(level)
    exact = is_exact(entry)
    if guided and exact:
        return number(entry.value, wider=like, word="exact")
    if guided:
        return number(entry.value, entry.interval(level, population=False), wider=like)
    bounds = entry.bounds(level)
    if entry.source == BOUNDS:
        return number(entry.value, bounds, word=BOUNDS)
    return number(entry.value, like, wider=None if exact else bounds)


def _level(results: Iterable[Estimates]) -> float:
    """Return the level of the intervals that are shown, which groups have in common."""
    return next(iter(results)).level


def _table(results: Mapping[str, Estimates]) -> Table:
    """Return all estimates, by group if these have names."""
    rows = [(group, entry) for group, result in results.items() for entry in result.entries]
    guided = any(result.guided for result in results.values())
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
    details = ["bounds", "source"]
    if len({entry.method for _, entry in rows}) == 1:
        details.append("method")
    return replace(
        Table.of(rows, columns),
        keys=tuple(name for name in ("group", "method") if name in columns),
        caption="Full-catalogue metrics",
        identity="metrics",
        interval=f"{100 * level:g} % interval",
        wider=_LIKE if guided else "bounds",
        details=tuple(details),
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
    # Most intervals come from the prior, so that these words are enough.
    if "prior" in sources:
        sources -= {"mean"}
    level = 100.0 * _level(results)
    notes = (_MEANINGS[source] for source in _MEANINGS if source in sources)
    return tuple((word, text.format(level=level)) for word, text in notes)

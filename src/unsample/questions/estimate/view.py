"""What estimates say: of `estimate`, `exact`, `evaluate` and `published`, and of groups of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from unsample.answers import DEFAULT_LEVEL, Estimate, Estimates, Evaluation, Published
from unsample.show._curves import curves_chart
from unsample.show._sheet import Notes, Part, Sheet, sheet
from unsample.show._table import Cell, Number, Table, number

_INTERVAL = f"{100 * DEFAULT_LEVEL:g} % interval"
_LIKE = "users like these"
#: What intervals mean, by where they come from.
_MEANINGS = {
    "prior": (
        "interval",
        "holds the true value for 95 % of data sets like those that the prior was learned from",
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


@sheet.register
def _(result: Estimates) -> Sheet:
    known = all(map(is_exact, result.entries))
    return Sheet(
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


@sheet.register
def _(result: Published) -> Sheet:
    whole = sheet.dispatch(Estimates)(result)
    ranges = "; ".join(f"{each}, from {each.low:.6g} to {each.high:.6g}" for each in result.numbers)
    return replace(
        whole,
        verb="published",
        title="From printed numbers to the full catalogue",
        about=(f"from {', '.join(map(str, result.numbers))}", *whole.about),
        verdicts=tuple(_too_high(result)),
        settings=(("Printed, and what rounding leaves open", ranges),),
    )


def _too_high(result: Published) -> Iterable[str]:
    """Say how far printed numbers are from those on all items, where that is certain."""
    for printed in result.numbers:
        low, high = result[printed.name].interval() if printed.name in result else (0.0, 0.0)
        if low > 0.0 and printed.value > 1.2 * high:
            times = f"{printed.value / high:.2g}"
            items = f"{result.counts.largest_catalogue:,}"
            yield f"{printed} is at least {times} times as high as on all {items} items."


@sheet.register
def _(result: Evaluation) -> Sheet:
    whole = sheet.dispatch(Estimates)(result)
    settings = (("Design", str(result.design)), ("Seed", str(result.rng)))
    about = (result.cost, *whole.about)
    return replace(whole, verb="evaluate", about=about, settings=settings)


@sheet.register
def _(result: Mapping) -> Sheet:  # type: ignore[type-arg]
    if not result or not all(isinstance(held, Estimates) for held in result.values()):
        return sheet.dispatch(object)(result)  # which refuses it
    groups: dict[str, Estimates] = {str(name): held for name, held in result.items()}
    lines = {name: heading(held) for name, held in groups.items()}
    about = [f"{name}: {line}" for name, line in lines.items()]
    if len({*lines.values()}) == 1:
        about = [f"{len(groups)} groups: {lines.popitem()[1]}"]
    return Sheet(
        verb="estimate",
        title=f"Full-catalogue metrics of {len(groups):,} groups",
        about=tuple(about),
        parts=(Part("Results", _table(groups)),),
        notes=_notes(groups.values()),
        warnings=tuple(dict.fromkeys(text for each in groups.values() for text in each.warnings)),
    )


def heading(result: Estimates) -> str:
    """Return how many users there are, how many of how many items were ranked, and which."""
    counts = result.counts
    what = f"{counts.users:,} user{'s' if counts.users > 1 else ''}"
    if counts.users != counts.total:
        each = "target, other relevant items left out" if result.filtered else "user"
        what = f"{counts.total:,} targets of {what} (metrics for each {each})"
    items, sampled = _range(counts.items), _range(counts.sampled)
    if not counts.replacement and bool((counts.sampled == counts.items - 1).all()):
        return f"{what} ranked among all {items} items"
    how = "sampled" if counts.replacement else "sampled without replacement"
    if counts.shared is not None:
        unknown = "" if counts.shared.known else " (which item beats which target is not known)"
        how = f"shared by all targets{unknown}"
    stated = f"candidates {result.candidates or 'not stated'}"
    return f"{what}, {sampled} of {items} items {how}, {stated}"


def _range(values: Any) -> str:
    low, high = int(values.min()), int(values.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def is_exact(entry: Estimate) -> bool:
    """Return whether the value is known for these users, so that nothing was estimated."""
    return entry.interval(population=False) == (entry.value, entry.value)


def is_guided(result: Estimates) -> bool:
    """Return whether an evaluation knows of these users more than of users like these."""
    return isinstance(result, Evaluation) and result.design.guided


def value_of(entry: Estimate, guided: bool) -> Number:
    """Return a value with its interval and bounds, and a word where one is the other.

    Of a guided evaluation, the interval is for these users and the wider one for users like these.
    """
    if guided and is_exact(entry):
        return number(entry.value, None, entry.interval(), "exact")
    if guided:
        return number(entry.value, entry.interval(population=False), entry.interval())
    if entry.source == "bounds":
        return number(entry.value, entry.bounds(), None, "bounds")
    return number(entry.value, entry.interval(), None if is_exact(entry) else entry.bounds())


def _table(results: Mapping[str, Estimates]) -> Table:
    """Return all estimates, by group where these have names."""
    rows = [(group, entry) for group, held in results.items() for entry in held.entries]
    guided = any(map(is_guided, results.values()))
    columns: dict[str, Callable[[_Row], Cell]] = {
        "group": lambda row: row[0],
        "metric": lambda row: row[1].metric.name,
        "method": lambda row: row[1].method,
        "estimate": lambda row: value_of(row[1], guided),
        "source": lambda row: row[1].source,
    }
    if list(results) == [""]:
        del columns["group"]
    alone = len({entry.method for _, entry in rows}) == 1
    return replace(
        Table.of(rows, columns),
        caption="Full-catalogue metrics",
        identity="metrics",
        interval=_INTERVAL,
        wider=_LIKE if guided else "bounds",
        details=("bounds", "source", *(["method"] if alone else [])),
        over_metrics="estimate",
    )


def _notes(results: Iterable[Estimates]) -> Notes:
    """Return what the intervals mean."""
    entries = [entry for result in results for entry in result.entries]
    if any(map(is_guided, results)):
        return _GUIDED
    if all(map(is_exact, entries)):
        return (_EXACT,)
    sources = {entry.source for entry in entries}
    if "prior" in sources:
        sources -= {"mean"}
    return tuple(note for source, note in _MEANINGS.items() if source in sources)

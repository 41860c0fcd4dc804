"""What is shown of estimates: of one result, and of several results by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from unsample import __version__
from unsample.counts import RankCounts
from unsample.questions.estimate.curves import curves_chart, ranks_chart
from unsample.questions.estimate.result import AUTO, BOUNDS, Estimate, Estimates
from unsample.report import Cell, Notes, Number, Part, Table, View, number

_LIKE = "users like these"
#: Names of methods that a sentence need not name, and of the one that it does not report.
_EXACT_METHOD = "exact"
_GUIDED_METHOD = "guided"
_SAMPLED = "naive"
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
#: What a paper says of a protocol.
_PROTOCOLS = {
    "unseen": "items that a user had seen were no candidates",
    "all": "items that a user had seen were candidates too",
    "repeats": "items that a user had seen were candidates too, and users choose items again",
    "graph": "other relevant items were left out when a target was ranked",
}
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
            Part("P(R)", drawn=partial(ranks_chart, result)),
        ),
        notes=_notes([result]),
        warnings=result.warnings,
        settings=_settings(result),
        sentence=sentence_of(result),
    )


def _settings(result: Estimates) -> Notes:
    """Return what the numbers were made from, as far as the result knows it."""
    counts = result.counts
    items = range_in_words(*counts.catalogues)
    settings = [("Users", f"{counts.users:,}"), ("Targets", f"{counts.total:,}")]
    settings.append(("Items", items))
    if not is_ranked_in_full(counts):
        settings += [
            ("Sampled items", range_in_words(*counts.samples)),
            ("Drawn", _drawing(counts)),
            ("Protocol", result.protocol or "not stated"),
        ]
    settings.append(("Methods", ", ".join(result.methods)))
    settings.append(("Level", f"{100 * result.level:g} %"))
    return tuple(settings)


def sentence_of(result: Estimates, *, data: str = "") -> str:
    """Return estimates, their method and their data, as a sentence for a paper.

    It takes ``auto`` if that was asked for, else the first method that is no sampled metric.

    Parameters
    ----------
    result
        The estimates.
    data
        What they were made from; by default the ranks.

    >>> import unsample
    >>> result = unsample.exact([1, 3, 20], items=100, metrics="Recall@10")
    >>> print(sentence_of(result, data="three ranks").partition(", computed with ")[0])
    Recall@10 is 0.6667 [0.0943, 0.9916] (95 % interval for users like these)
    """
    by_preference = sorted(result.methods, key=lambda name: (name != AUTO, name == _SAMPLED))
    method = by_preference[0]
    entries = [entry for entry in result.entries if entry.method == method]
    exact = all(map(is_exact, entries))
    how = "computed" if exact else "estimated"
    by = "" if method in (_EXACT_METHOD, _GUIDED_METHOD) else f" (method {method})"
    values = _values(entries, level=result.level, guided=result.guided)
    made_from = data or how_ranked(result)
    return f"{values}, {how} with unsample {__version__}{by} from {made_from}."


def _values(entries: Collection[Estimate], *, level: float, guided: bool) -> str:
    """Return estimates with their intervals, as the start of a sentence."""
    numbers = []
    for entry in entries:
        shown = value_of(entry, level, guided=guided)
        numbers.append(f"{entry.metric} is {shown}{shown.behind}")
    *others, last = numbers
    listed = f"{', '.join(others)} and {last}" if others else last
    in_full = all(map(is_exact, entries))
    if guided and in_full:
        return f"{listed} for these users"
    if all(map(is_sampled_metric, entries)):
        return f"{listed} among sampled items"
    kind = "interval" if len(numbers) == 1 else "intervals"
    whose = " for these users" if guided else " for users like these" if in_full else ""
    return f"{listed} ({100 * level:g} % {kind}{whose})"


def how_ranked(result: Estimates, *others: Estimates) -> str:
    """Return whose ranks there are, among which items, and how these were drawn, for a paper.

    >>> import unsample
    >>> ranks = [1 + user**3 // 300_000 for user in range(300)]
    >>> result = unsample.estimate(ranks, items=3706, sampled=99, metrics="AUC", protocol="unseen")
    >>> print(how_ranked(result).partition(";")[0])
    the ranks of 300 users among 99 sampled items of 3,706
    """
    counts = result.counts
    all_counts = [counts, *(other.counts for other in others)]
    items = range_in_words(*_span(some.catalogues for some in all_counts))
    if all(map(is_ranked_in_full, all_counts)):
        return f"the ranks of {users_in_words(result)} among all {items} items"
    in_samples = [some.take(~some.full) if some.full.any() else some for some in all_counts]
    sampled = range_in_words(*_span(some.samples for some in in_samples))
    text = f"the ranks of {users_in_words(result)} among {sampled} sampled items of {items}"
    if counts.full.any():
        text += f" ({int(counts.count[counts.full].sum()):,} of them among all)"
    protocol = _PROTOCOLS.get(result.protocol or "", "the protocol is not stated")
    return f"{text}; sampled items were drawn {_drawing(counts)}; {protocol}"


def is_ranked_in_full(counts: RankCounts) -> bool:
    """Return whether every target was ranked among all items."""
    return not counts.replacement and bool((counts.sampled == counts.items - 1).all())


def _drawing(counts: RankCounts) -> str:
    """Return how sampled items were drawn, for a paper."""
    replacement = "with" if counts.replacement else "without"
    whose = "for each target" if counts.shared is None else "once for all targets"
    return f"{whose}, uniformly at random, {replacement} replacement"


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
    items = range_in_words(*_span(some.catalogues for some in all_counts))
    if is_ranked_in_full(counts):
        return f"{users_in_words(result)} ranked among all {items} items"
    sampled = range_in_words(*_span(some.samples for some in all_counts))
    among = ","
    if counts.full.any():
        in_samples = [some.take(~some.full) for some in all_counts]
        sampled = range_in_words(*_span(some.samples for some in in_samples))
        in_full = int(counts.count[counts.full].sum())
        among = f", {in_full:,} ranked in full, the others among"
    protocol = f"protocol {result.protocol or 'not stated'}"
    how = _how_drawn(counts)
    return f"{users_in_words(result)}{among} {sampled} of {items} items {how}, {protocol}"


def users_in_words(result: Estimates) -> str:
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


def range_in_words(low: int, high: int) -> str:
    """Return a range in words, or the one number that it holds."""
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def is_exact(entry: Estimate) -> bool:
    """Return whether the value is known exactly for these users."""
    return entry.known is not None and entry.known.interval() == (entry.value, entry.value)


def is_sampled_metric(entry: Estimate) -> bool:
    """Return whether the value is the sampled metric itself, and not that of the catalogue."""
    return entry.method == _SAMPLED and not is_exact(entry)


def value_of(entry: Estimate, level: float, *, guided: bool) -> Number:
    """Return a value with its interval at a level, and with its bounds.

    Of a guided evaluation, the interval is for these users, and the wider range for users like
    these. The sampled metric has neither: they are of the full-catalogue metric.

    >>> import unsample
    >>> ranks = [1 + user % 50 for user in range(500)]
    >>> design = {"items": 1000, "sampled": 99, "protocol": "unseen", "metrics": "Recall@10"}
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     result = unsample.estimate(ranks, method=["naive", "auto"], **design)
    >>> naive, auto = [value_of(entry, 0.95, guided=False) for entry in result.entries]
    >>> naive.ends, naive.wider, auto.ends is None
    (None, None, False)
    """
    if is_sampled_metric(entry):
        return number(entry.value)
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
        "source": lambda row: "" if is_sampled_metric(row[1]) else row[1].source,
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
    sources = {entry.source for entry in entries if not is_sampled_metric(entry)}
    # Most intervals come from the prior, so that these words are enough.
    if "prior" in sources:
        sources -= {"mean"}
    level = 100.0 * _level(results)
    notes = (_MEANINGS[source] for source in _MEANINGS if source in sources)
    return tuple((word, text.format(level=level)) for word, text in notes)

"""Read the names of metrics, and suggest the one that was meant where there is no such name."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from typing import Any

from unsample._checks import suggest
from unsample.errors import MetricError
from unsample.metrics._families import REGISTRY
from unsample.metrics._metric import Metric

#: The metrics where none are named.
DEFAULT_METRICS = ("Recall@10", "NDCG@10", "AP@10")
#: Where each user has one target AP@10 is MRR@10, and Recall@50 tells more.
DEFAULT_OF_ONE_TARGET = ("Recall@10", "NDCG@10", "Recall@50")
_METRIC = re.compile(
    r"\s*(?P<family>[A-Za-z][A-Za-z0-9_-]*)\s*(?P<variant>\([^()]*\))?\s*"
    r"(?:@\s*(?P<k>[+-]?[0-9.eE+]+)\s*)?"
)
#: A metric as other libraries and hasty people write it: ndcg10, hit_rate_at_10, recall@k=10.
_LOOSE = re.compile(
    r"\s*(?P<word>[A-Za-z][A-Za-z\s_-]*?)[\s_@-]*(?:(?:at|top|k)[\s_=-]*)*(?P<k>[0-9]*)\s*",
    re.IGNORECASE,
)
#: Words of other libraries, as letters alone.
_OTHER_WORDS = {
    "r": "recall",
    "hitratio": "hr",
    "averageprecision": "ap",
    "meanaverageprecision": "map",
    "meanreciprocalrank": "mrr",
}
#: Every name in lower case -> its family, and the name as it is printed.
_KNOWN = {name.casefold(): (family, name) for family in REGISTRY.values() for name in family.names}


def parse(name: str | Metric) -> Metric:
    """Return the metric of this name, in upper or lower case, or under an alias.

    Raises
    ------
    MetricError
        There is no such metric; the message suggests the one that may be meant.

    >>> parse("ndcg@10"), parse("HitRate@5"), parse("AUC")
    (NDCG@10, HitRate@5, AUC)
    """
    if isinstance(name, Metric):
        return name
    match = _METRIC.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        raise MetricError(
            f"metric must be a name such as NDCG@10 or AUC, got {name!r}; "
            f"{_suggest(name) or 'known families: ' + ', '.join(REGISTRY)}"
        )
    variant = re.sub(r"[\s'\"]", "", match["variant"] or "")
    asked = (match["family"] + ("" if variant == "()" else variant)).casefold()
    if asked not in _KNOWN:
        near = _suggest(name) or suggest(asked, [label for _, label in _KNOWN.values()])
        raise MetricError(
            f"metric must be one of {', '.join(REGISTRY)} (with or without @K), got {name!r}"
            + (f"; {near}" if near else "")
        )
    family, label = _KNOWN[asked]
    k: Any = match["k"]
    with contextlib.suppress(ValueError):  # the metric refuses it, with the text as given
        k = k and int(k)
    return Metric(family, k, label=label)


def parse_all(names: str | Metric | Iterable[str | Metric]) -> tuple[Metric, ...]:
    """Return the metrics of these names, each name once, in the order given.

    >>> parse_all("NDCG@10, AP(norm=min)@5")
    (NDCG@10, AP(norm=min)@5)
    """
    single: list[str | Metric] = []
    for name in [names] if isinstance(names, str | Metric) else names:
        if isinstance(name, str):
            # Commas inside brackets belong to a name.
            single += re.split(r",(?![^()]*\))", name)
        else:
            single.append(name)
    metrics = tuple(dict.fromkeys(parse(name) for name in single))
    if not metrics:
        raise MetricError("metrics must name at least one metric, got none; try NDCG@10")
    return metrics


def find_metric(name: Any, metrics: Iterable[Metric], *, several: bool = False) -> Metric | None:
    """Return the metric that has this name, or else the same metric under another name.

    If users have ``several`` relevant items, fewer names mean the same metric.

    >>> find_metric("HR@10", parse_all("NDCG@10, Recall@10"))
    Recall@10
    >>> find_metric("HR@10", parse_all("NDCG@10, Recall@10"), several=True) is None
    True
    """
    choices = tuple(metrics)
    for metric in choices:
        if metric.name == str(name):
            return metric
    try:
        wanted = parse(name)
    except MetricError:
        return None
    return next((metric for metric in choices if metric.same_as(wanted, several=several)), None)


def _suggest(name: object) -> str:
    """Return ``did you mean NDCG@10?`` for ndcg10, ndcg_at_10, ndgc@10, NDCG@k=10 and the like."""
    match = _LOOSE.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        return ""
    word = re.sub(r"[^a-z]", "", match["word"].casefold())
    word = _OTHER_WORDS.get(word, word)
    near = suggest(word, [label for _, label in _KNOWN.values()])
    return f"{near[:-1]}@{match['k']}?" if near and match["k"] else near

"""Read the names of metrics, and suggest the one that was meant where there is no such name."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Mapping
from typing import Any

from unsample._checks import check_integer, suggest
from unsample.errors import MetricError

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


def read_metric(name: object, families: Mapping[str, Collection[str]]) -> tuple[str, str, Any]:
    """Return the family of a metric, the name that was asked for, and its K as it was given.

    ``families`` holds the known families, each with all its names.

    >>> read_metric("hits@10", {"HR": ("HR", "Hits")})
    ('HR', 'Hits', 10)
    """
    match = _METRIC.fullmatch(name) if isinstance(name, str) else None
    known = {label.casefold(): (each, label) for each in families for label in families[each]}
    if match is None:
        raise MetricError(
            f"metric must be a name such as NDCG@10 or AUC, got {name!r}; "
            f"{_suggest_metric(name, known) or 'known families: ' + ', '.join(families)}"
        )
    variant = re.sub(r"[\s'\"]", "", match["variant"] or "")
    asked = (match["family"] + ("" if variant == "()" else variant)).casefold()
    if asked not in known:
        near = _suggest_metric(name, known) or suggest(
            asked, [label for _, label in known.values()]
        )
        raise MetricError(
            f"metric must be one of {', '.join(families)} (with or without @K), got {name!r}"
            + (f"; {near}" if near else "")
        )
    k: Any = match["k"]
    with contextlib.suppress(ValueError):  # refused later, with the text as given
        k = k and int(k)
    return (*known[asked], k)


def split_metrics(names: str) -> list[str]:
    """Return the names in a list with commas; those inside brackets belong to a name.

    >>> split_metrics("NDCG@10, AP(norm=min)@5")
    ['NDCG@10', 'AP(norm=min)@5']
    """
    return [name.strip() for name in re.split(r",(?![^()]*\))", names)]


def _suggest_metric(name: object, known: Mapping[str, tuple[str, str]]) -> str:
    """Return ``did you mean NDCG@10?`` for ndcg10, ndcg_at_10, ndgc@10, NDCG@k=10 and the like."""
    match = _LOOSE.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        return ""
    word = re.sub(r"[^a-z]", "", match["word"].casefold())
    word = _OTHER_WORDS.get(word, word)
    near = suggest(word, [label for _, label in known.values()])
    return f"{near[:-1]}@{match['k']}?" if near and match["k"] else near


def check_cutoff(label: str, k: object, *, whole: bool) -> int | None:
    """Return K, or None for all items; a metric over the ``whole`` list must not have a K."""
    if k is None:
        return None
    if whole:
        raise MetricError(f"K of {label} must be left out, got {k!r}: it looks at all items")
    hint = f"write {label}@10, or {label} for all items"
    return check_integer(f"K of {label}", k, minimum=1, hint=hint, error=MetricError)

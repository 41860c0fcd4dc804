"""Top-K metrics as values: a name, a cutoff K, and a weight w(R) for each rank.

A metric of a set of users is the mean of w(R_u) over their targets' global ranks. With one
relevant item for each user AP equals MRR, and the ideal DCG is 1.

>>> metric = parse("hr@10")
>>> metric, metric.weights([1, 10, 11], items=100).tolist()
(HR@10, [1.0, 1.0, 0.0])

A metric prints as it was asked for, whatever the case, and its name parses back to it. Aliases are
other names of one family: HR@10 and Recall@10 are two metrics in a table, and the same number.

>>> metric == Recall @ 10, metric.same_as(Recall @ 10)
(False, True)

A metric without ``@K`` looks at all items. Add your own with `custom`, and `register` it to make
its name parse.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, check_integer, suggest
from unsample.errors import MetricError

__all__ = [
    "AP",
    "AUC",
    "NDCG",
    "REGISTRY",
    "Metric",
    "MetricFamily",
    "Precision",
    "Recall",
    "custom",
    "parse",
    "parse_all",
    "register",
]

#: w(R) given float ranks, the number of items, and K (the number of items where there is no K).
Kernel: TypeAlias = Callable[[FloatArray, float, float], FloatArray]

_NAME = re.compile(r"\s*(?P<family>[A-Za-z][A-Za-z0-9_-]*)\s*(?:@\s*(?P<k>[+-]?[0-9.eE+]+)\s*)?")
_FAMILY_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class MetricFamily:
    """A metric before its K is chosen: ``NDCG @ 10`` or ``NDCG()`` makes a `Metric`."""

    name: str
    kernel: Kernel = field(repr=False, compare=False)
    aliases: tuple[str, ...] = field(default=(), compare=False)
    summary: str = field(default="", repr=False, compare=False)
    #: Whether w(R) depends on the number of items even with a K (AUC does).
    uses_items: bool = field(default=False, repr=False, compare=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the name and the aliases."""
        return (self.name, *self.aliases)

    def __call__(self, k: int | None = None) -> Metric:
        """Return the metric at K, or over all items."""
        return Metric(self, k)

    def __matmul__(self, k: int) -> Metric:
        return Metric(self, k)


@dataclass(frozen=True)
class Metric:
    """A metric at a cutoff, under one of its family's names: ``weights`` is all that it does."""

    family: MetricFamily
    k: int | None = None
    #: The name of the family that was asked for; by default its own.
    label: str = ""

    def __post_init__(self) -> None:
        label = self.label or self.family.name
        if label not in self.family.names:
            raise MetricError(f"label must be one of {', '.join(self.family.names)}, got {label!r}")
        object.__setattr__(self, "label", label)
        if self.k is not None:
            hint = f"write {label}@10, or {label} for all items"
            k = check_integer(f"K of {label}", self.k, minimum=1, hint=hint, error=MetricError)
            object.__setattr__(self, "k", k)

    @property
    def name(self) -> str:
        """Return the name that parses back to this metric."""
        return self.label if self.k is None else f"{self.label}@{self.k}"

    def same_as(self, other: Metric) -> bool:
        """Return whether the other metric is the same number, whatever it is called."""
        return (self.family, self.k) == (other.family, other.k)

    def cutoff(self, items: int) -> int:
        """Return the last rank that counts in a catalogue of this size."""
        return items if self.k is None else min(self.k, items)

    def weights(self, ranks: npt.ArrayLike, items: int) -> FloatArray:
        """Return w(R) for global ranks, zero beyond K."""
        values = np.asarray(ranks, dtype=np.float64)
        inside = values <= self.cutoff(items)
        return np.where(inside, self.uncut(values, items), 0.0)

    def uncut(self, ranks: FloatArray, items: int) -> FloatArray:
        """Return the weight without the cutoff, as smooth in R as the kernel is."""
        k = float(items if self.k is None else self.k)
        values = np.asarray(self.family.kernel(ranks, float(items), k), dtype=np.float64)
        return np.broadcast_to(values, ranks.shape)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name


def parse(name: str | Metric) -> Metric:
    """Return the metric of this name, in any case and with any alias."""
    if isinstance(name, Metric):
        return name
    match = _NAME.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        raise MetricError(
            f"metric must be a name such as NDCG@10 or AUC, got {name!r}; "
            f"known families: {', '.join(REGISTRY)}"
        )
    known = _by_name()
    if match["family"].casefold() not in known:
        near = suggest(match["family"], [label for _, label in known.values()])
        raise MetricError(
            f"metric must be one of {', '.join(REGISTRY)} (with or without @K), got {name!r}"
            + (f"; {near}" if near else "")
        )
    family, label = known[match["family"].casefold()]
    k: Any = match["k"]
    with contextlib.suppress(ValueError):  # Metric refuses what is not a whole number, as written
        k = k and int(k)
    return Metric(family, k, label)


def parse_all(names: str | Metric | Iterable[str | Metric]) -> tuple[Metric, ...]:
    """Return the metrics of these names, each name once, in the order given."""
    if isinstance(names, str | Metric):
        names = [names]
    metrics = tuple(dict.fromkeys(parse(name) for name in names))
    if not metrics:
        raise MetricError("metrics must name at least one metric, got none; try NDCG@10")
    return metrics


def custom(
    name: str, weight: Callable[[FloatArray], FloatArray], *, summary: str = ""
) -> MetricFamily:
    """Return a family with your own weight function of the rank.

    ``weight`` takes a float array of ranks (fractional ones too: bins are averaged at them) and
    returns finite weights of the same shape. It should be smooth between cutoffs.

    >>> decayed = custom("Decayed", lambda rank: 0.9 ** (rank - 1))
    >>> (decayed @ 5).weights([1, 2, 9], items=100).round(2).tolist()
    [1.0, 0.9, 0.0]
    """
    if not isinstance(name, str) or not _FAMILY_NAME.fullmatch(name):
        raise MetricError(
            f"name must be letters, digits, - and _, starting with a letter, got {name!r}"
        )

    def kernel(ranks: FloatArray, items: float, k: float) -> FloatArray:
        values = np.asarray(weight(ranks), dtype=np.float64)
        if values.shape not in ((), ranks.shape) or not np.isfinite(values).all():
            raise MetricError(
                f"weight of {name} must return finite values of shape {ranks.shape}, got shape "
                f"{values.shape} with {int((~np.isfinite(values)).sum())} values not finite"
            )
        return values

    return MetricFamily(name, kernel, summary=summary or "custom weights")


def register(family: MetricFamily) -> MetricFamily:
    """Make a family's name and aliases parse; a name that is taken is refused."""
    taken = _by_name()
    for name in family.names:
        if name.casefold() in taken:
            raise MetricError(
                f"name must be new, got {name!r}, which {taken[name.casefold()][0].name} has"
            )
    REGISTRY[family.name] = family
    return family


def _by_name() -> dict[str, tuple[MetricFamily, str]]:
    """Return every family under all its names, whatever their case, and how a name is written."""
    return {
        name.casefold(): (family, name) for family in REGISTRY.values() for name in family.names
    }


Recall = MetricFamily(
    "Recall",
    lambda ranks, items, k: np.ones_like(ranks),
    aliases=("HR", "Hit", "Hits", "HitRate"),
    summary="1 if R <= K",
)
Precision = MetricFamily(
    "Precision",
    lambda ranks, items, k: np.full_like(ranks, 1.0 / k),
    aliases=("Prec",),
    summary="1/K if R <= K",
)
NDCG = MetricFamily(
    "NDCG",
    lambda ranks, items, k: 1.0 / np.log2(ranks + 1.0),
    summary="1/log2(R + 1) if R <= K",
)
AP = MetricFamily(
    "AP",
    lambda ranks, items, k: 1.0 / ranks,
    aliases=("MRR", "MAP", "RR"),
    summary="1/R if R <= K",
)
AUC = MetricFamily(
    "AUC",
    lambda ranks, items, k: (items - ranks) / (items - 1.0),
    summary="(N - R)/(N - 1) if R <= K",
    uses_items=True,
)

REGISTRY: dict[str, MetricFamily] = {
    family.name: family for family in (Recall, Precision, NDCG, AP, AUC)
}

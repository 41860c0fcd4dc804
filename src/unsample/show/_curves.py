"""What a result says at every K and in every range of ranks, and the charts of it.

Pages and plots draw these numbers; neither computes its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from statistics import NormalDist

import numpy as np

from unsample._checks import FloatArray, IntArray, check_level
from unsample.answers import DEFAULT_LEVEL, Estimate, Estimates, Published
from unsample.bounds import Bounds
from unsample.metrics import Metric, MetricFamily, Recall
from unsample.show._charts import Band, Guide, LineChart, LineView, Role, Series, style

#: With more results than this, intervals on top of each other hide more than they show.
_FEW = 3
#: Every K costs time for its limits, once for each result.
_POINTS, _POINTS_OF_SEVERAL = 24, 14
#: The method whose curve is that of the posterior.
AUTO = "auto"


@dataclass(frozen=True, eq=False)
class Curve:
    """A number for each K or range of ranks: by each method, and what the data allow."""

    values: Mapping[str, FloatArray]
    #: Rows (low, high) of ``"bounds"`` and ``"interval"``, as far as there are any.
    limits: Mapping[Role, FloatArray]


def ladder(largest: int, *, also: Iterable[int] = (), points: int = _POINTS) -> IntArray:
    """Return K from 1 to ``largest`` in equal ratios, and those in ``also`` up to there."""
    steps = np.geomspace(1, largest, points).round().astype(np.int64).tolist()
    return np.array(sorted({*steps, *(k for k in also if k <= largest)}), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class AtManyK:
    """A result asked about many K at once, for preparing it may cost more than asking."""

    result: Estimates
    ks: IntArray
    level: float = DEFAULT_LEVEL
    #: Whether bounds are asked for beside an interval.
    wider: bool = True

    @cached_property
    def entry(self) -> Estimate:
        """Return what knows the curve: the metric that weighs all relevant items alike, if any."""
        entries = self.result.entries
        learned = [entry for entry in entries if entry.posterior is not None] or entries
        alike = [entry for entry in learned if entry.metric.family.weighs_alike]
        return (alike or learned)[0]

    @cached_property
    def known(self) -> bool:
        """Return whether the ranks are full ones."""
        return bool(self.result.counts.known.all())

    @cached_property
    def _bounds(self) -> Bounds:
        return Bounds.of(self.entry.counts, self.ks.tolist())

    def curve(self, family: MetricFamily) -> Curve:
        """Return the metric@K at each K."""
        metrics = [family @ int(k) for k in self.ks]
        values = {
            name: self.entry.counts.scale * np.array([held.expect(each) for each in metrics])
            for name, held in self.result.distributions.items()
        }
        if self.known:
            return Curve(values, self._chance(metrics, values))
        limits, middle = self._limits(metrics)
        if AUTO in values and middle is not None:
            values[AUTO] = middle
        if isinstance(self.result, Published) and "interval" in limits:
            # As in tables: where half the interval exceeds the value, the range says more.
            vague = np.diff(limits["interval"])[:, 0] > 2.0 * values[AUTO]
            values[AUTO] = np.where(vague, np.nan, values[AUTO])
        return Curve(values, limits)

    def mean_probability(self) -> Curve:
        """Return the mean of P(R) over the ranks up to the first K, and from each K to the next.

        P(R) of a single rank is more than a sample can tell; the share of targets in a range of
        ranks is a metric like any other, with an interval and bounds.
        """
        ends = np.concatenate([[0], self.ks])
        shares = {name: np.diff(held.cdf(ends)) for name, held in self.result.distributions.items()}
        ranges = [_share(low + 1, high) for low, high in pairwise(ends.tolist())]
        limits = self._chance(ranges, shares) if self.known else self._limits(ranges)[0]
        widths = np.diff(ends)
        return Curve(
            {name: held / widths for name, held in shares.items()},
            {role: held / widths[:, None] for role, held in limits.items()},
        )

    def _chance(
        self, metrics: list[Metric], means: Mapping[str, FloatArray]
    ) -> dict[Role, FloatArray]:
        """Return how far chance may move means over full ranks."""
        targets = self.result.counts.effective
        if len(means) != 1 or targets < 2:
            return {}
        ((name, mean),) = means.items()
        learned = self.result.distributions[name]
        scale = self.entry.counts.scale
        squares = scale**2 * np.array([learned.expect(_squared(metric)) for metric in metrics])
        spread = np.sqrt(np.maximum(squares - mean**2, 0.0) / targets)
        reach = NormalDist().inv_cdf((1.0 + self.level) / 2.0) * spread
        return {"interval": np.stack([np.maximum(mean - reach, 0.0), mean + reach], axis=1)}

    def _limits(self, metrics: list[Metric]) -> tuple[dict[Role, FloatArray], FloatArray | None]:
        """Return what the data allow, and what the posterior takes for the value."""
        posterior = self.entry.posterior
        if posterior is None or self.entry.source != "prior":
            return {"bounds": self._of_bounds(metrics)}, None
        laws = [posterior.law(metric) for metric in metrics]
        ends = np.array([law.interval(level=self.level) for law in laws])
        values = np.array([law.value() for law in laws])
        if not self.wider:
            return {"interval": ends}, values
        bounds = self._of_bounds(metrics)
        least, most = bounds.T
        return (
            {"bounds": bounds, "interval": np.clip(ends.T, least, most).T},
            np.clip(values, least, most),
        )

    def _of_bounds(self, metrics: list[Metric]) -> FloatArray:
        if isinstance(self.result, Published):
            return np.array([self.result.paper.bounds(each, self.level) for each in metrics])
        return np.array([self._bounds.of_metric(each, self.level) for each in metrics])


def _share(low: int, high: int) -> Metric:
    """Return the share of targets with a rank in low..high, as a metric."""
    return MetricFamily("Share", lambda ranks, items, k: (ranks >= low).astype(np.float64)) @ high


def _squared(metric: Metric) -> Metric:
    """Return the metric whose weights are the squares of this one's."""
    kernel = metric.family.kernel
    return Metric(MetricFamily("Square", lambda *given: kernel(*given) ** 2), metric.k)


@dataclass(frozen=True, eq=False)
class Curves:
    """Results by name on the same K, as views of charts; a single result has no name."""

    held: Mapping[str, AtManyK]
    ks: IntArray

    @classmethod
    def of(
        cls, results: Mapping[str, Estimates], level: float, *, largest: int | None = None
    ) -> Curves:
        """Prepare the results up to ``largest``, or each up to the size of its own catalogue."""
        items = {name: result.counts.largest_catalogue for name, result in results.items()}
        end = min(largest or math.inf, max(items.values()))
        asked = [metric.k for result in results.values() for metric in result.metrics if metric.k]
        points = _POINTS if len(results) == 1 else _POINTS_OF_SEVERAL
        ks = ladder(int(end), also=asked, points=points)
        check_level(level)
        held = {
            name: AtManyK(result, ks[ks <= items[name]], level, len(results) == 1)
            for name, result in results.items()
        }
        return cls(held, ks)

    def charts(self) -> tuple[LineChart, ...]:
        """Return metrics@K and P(R), as far as they are known; Recall is the sum of P(R)."""
        results = [held.result for held in self.held.values()]
        learned = any(result.distributions for result in results)
        if not learned and all(
            entry.source == "mean" for each in results for entry in each.entries
        ):
            return ()
        metrics = [metric for result in results for metric in result.metrics]
        families = {m.family.single or m.family.name: m.family for m in metrics if m.k is not None}
        if any(result.counts.several for result in results):
            # P(R) is that of a user's items all alike: other metrics weigh them differently.
            families = {name: each for name, each in families.items() if each.weighs_alike}
        if learned or not families:
            families.setdefault(Recall.name, Recall)
        at_k = self.metrics(*families.values())
        return (at_k, self.probabilities()) if learned else (at_k,)

    def metrics(self, *families: MetricFamily) -> LineChart:
        """Return the chart of metrics@K, a view for each family."""
        views = tuple(map(self._at_every_k, families))
        return LineChart(
            identity="metrics-at-k",
            title="Metric@K at every K",
            caption=self._explained({band.role for view in views for band in view.bands}),
            x_label="K",
            views=views,
            shown=self._shown,
        )

    def probabilities(self) -> LineChart:
        """Return the chart of P(R), in ranges of ranks."""
        curves = {name: held.mean_probability() for name, held in self.held.items()}
        starts = [1, *(self.ks[:-1] + 1).tolist()]
        labels = (
            f"R = {low:,}" if low == high else f"R = {low:,} to {high:,}"
            for low, high in zip(starts, self.ks.tolist(), strict=True)
        )
        ends = (*starts, int(self.ks[-1]) + 1)
        return LineChart(
            identity="probabilities",
            title="Learned P(R)",
            caption=(
                "The mean of P(R) over ranges of ranks. A sample tells the share of targets in a "
                "range of ranks, not that of a single rank."
            ),
            x_label="rank R",
            views=(self._view("all ranks", "P(R)", ends, tuple(labels), curves),),
            log_y=True,
            steps=True,
            shown=self._shown,
        )

    def _at_every_k(self, family: MetricFamily) -> LineView:
        curves = {name: held.curve(family) for name, held in self.held.items()}
        places, labels = tuple(self.ks.tolist()), tuple(f"K = {k:,}" for k in self.ks)
        view = self._view(family.name, f"{family.name}@K", places, labels, curves)
        points = self._asked(family, first=len(view.series))
        return replace(view, series=(*view.series, *points))

    def _view(
        self,
        name: str,
        y_label: str,
        x: tuple[float, ...],
        labels: tuple[str, ...],
        curves: Mapping[str, Curve],
    ) -> LineView:
        series: list[Series] = []
        bands: list[Band] = []
        for result, curve in curves.items():
            # Interval and bounds belong to the metric: methods of the same data share them.
            colour = style(len(series)) if len(curve.values) == 1 else None
            before = f"{result}, " if result else ""
            named = limit_names(self.held[result].level)
            for method, values in curve.values.items():
                label = _series_name(result, method, len(curve.values))
                series.append(Series(label, style(len(series)), self._padded(values)))
            for role, limits in curve.limits.items():
                low, high = map(self._padded, limits.T)
                bands.append(Band(role, before + named[role], low, high, colour))
        return LineView(name, y_label, x, labels, tuple(series), tuple(bands), self._guides)

    def _asked(self, family: MetricFamily, first: int) -> list[Series]:
        """Return values of methods that know no P(R), at the K they were asked for."""
        named: dict[str, dict[int, float]] = {}
        for name, held in self.held.items():
            for entry in held.result.entries:
                if entry.method in held.result.distributions or entry.metric.family != family:
                    continue
                label = _series_name(name, entry.method, len(held.result.methods))
                named.setdefault(label, {})[entry.metric.k or 0] = entry.value
        return [
            Series(
                label,
                style(first + place),
                np.array([values.get(k, np.nan) for k in self.ks.tolist()]),
                marked=True,
            )
            for place, (label, values) in enumerate(named.items())
        ]

    def _explained(self, roles: set[Role]) -> str:
        if all(held.known for held in self.held.values()):
            return "The curve is exact; the band says how far it would move with other users."
        text = "The curve is the estimate"
        text += ", the band its interval." if "interval" in roles else "."
        if "bounds" in roles:
            text += " The lightest band are the bounds, which hold whatever P(R) is."
        if not self._guides:
            return text
        return (
            f"{text} Left of the dotted line less than one sampled item falls into the top K on "
            "average."
        )

    @cached_property
    def _guides(self) -> tuple[Guide, ...]:
        sampled = (held.result.counts for held in self.held.values() if not held.known)
        edges = {round(counts.blind_rank, 1) for counts in sampled}
        return tuple(
            Guide("x", edge, f"N/n = {edge:,.0f}") for edge in edges if 1 < edge < self.ks[-1]
        )

    @property
    def _shown(self) -> tuple[str, ...]:
        if len(self.held) == 1:  # bounds of several results would hide each other
            return ("interval", "bounds")
        return ("interval",) if len(self.held) <= _FEW else ()

    def _padded(self, values: FloatArray) -> FloatArray:
        """Return values at every K, NaN beyond the catalogue they belong to."""
        return np.concatenate([values, np.full(len(self.ks) - len(values), np.nan)])


def _series_name(name: str, method: str, methods: int) -> str:
    if not name:
        return method
    return name if methods == 1 else f"{name}, {method}"


def limit_names(level: float) -> dict[Role, str]:
    """Return how legends call the limits."""
    return {"bounds": "bounds", "interval": f"{100 * level:g} % interval"}

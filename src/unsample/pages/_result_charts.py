"""Charts of one or several estimates: metrics at every K, and the learned P(R)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from unsample._checks import FloatArray, IntArray
from unsample.answers import Estimate, Estimates
from unsample.confidence import blind_rank
from unsample.metrics import MetricFamily, Recall
from unsample.pages._charts import (
    Band,
    Guide,
    IntervalChart,
    IntervalRow,
    IntervalView,
    LineChart,
    LineSeries,
    LineView,
    Numbers,
    as_numbers,
)
from unsample.pages._known import Curve, Known, families_of, ladder
from unsample.pages._page import Part

__all__ = ["STYLE_ORDER", "Curves", "curve_parts", "interval_chart", "interval_row"]

#: With more models than this, intervals on top of each other hide more than they show.
_FEW = 3
#: Every K costs time for its limits, once for each result.
_POINTS, _POINTS_OF_SEVERAL = 24, 14
#: Styles of the page in the order in which curves take them, the most distinct first.
STYLE_ORDER = (4, 6, 5, 2, 3, 1, 0)


@dataclass(frozen=True, eq=False)
class Curves:
    """Estimates by name, asked about one ladder of K; a single one has no name."""

    known: Mapping[str, Known]
    ks: IntArray
    level: float
    #: Views that were made: the metrics@K and the cumulative distribution share that of Recall.
    _views: dict[MetricFamily, LineView] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, results: Mapping[str, Estimates], level: float) -> Curves:
        """Prepare the results, each up to the size of its own catalogue."""
        items = {name: one.counts.largest_catalogue for name, one in results.items()}
        asked = {
            metric.k for one in results.values() for metric in one.metrics if metric.k is not None
        }
        points = _POINTS if len(results) == 1 else _POINTS_OF_SEVERAL
        ks = ladder(max(items.values()), also=asked, points=points)
        known = {name: Known.of(one, ks[ks <= items[name]], level) for name, one in results.items()}
        return cls(known, ks, level)

    def charts(self) -> tuple[LineChart, ...]:
        """Return metrics@K, the cumulative distribution, and P(R), where there is one."""
        some = [one for one in self.known.values() if one.result.distributions or one.certainty]
        if not some:
            return ()
        if not any(one.result.distributions for one in some):
            return (self._metrics(),)
        return self._metrics(), self._cumulative(), self._probabilities()

    def _metrics(self) -> LineChart:
        metrics = [metric for one in self.known.values() for metric in one.result.metrics]
        return LineChart(
            identity="metrics-at-k",
            title="Metric@K at every K",
            caption=self._explained(),
            x_label="K",
            views=tuple(self._view(family) for family in families_of(metrics)),
            shown=self._shown(),
        )

    def _explained(self) -> str:
        if all(one.certainty is None for one in self.known.values()):
            return "The curve is exact; the band says how far it would move with other users."
        bounds = ", the lighter one the bounds, which hold whatever P(R) is" if self._alone else ""
        text = f"The curve is the estimate, the darker band its interval{bounds}."
        if not self._guides():
            return text
        return (
            f"{text} Left of the dotted line less than one sampled item falls into the top K on "
            "average."
        )

    def _cumulative(self) -> LineChart:
        view = self._view(Recall)
        return LineChart(
            identity="cumulative",
            title="Share of targets at rank R or better",
            caption="The cumulative distribution of P(R), which is Recall@R.",
            x_label="rank R",
            views=(
                LineView(
                    "all ranks",
                    "share of targets",
                    view.x,
                    tuple(f"R \N{LESS-THAN OR EQUAL TO} {k:,}" for k in self.ks),
                    tuple(one for one in view.series if not one.marked),
                    view.bands,
                    view.guides,
                ),
            ),
            shown=self._shown(),
        )

    def _probabilities(self) -> LineChart:
        curves = {
            name: one.mean_probability(bounds=self._alone) for name, one in self.known.items()
        }
        starts = [1, *(self.ks[:-1] + 1).tolist()]
        return LineChart(
            identity="probabilities",
            title="Learned P(R)",
            caption=(
                "The mean of P(R) over ranges of ranks. A sample tells the share of targets in a "
                "range of ranks, not that of a single rank."
            ),
            x_label="rank R",
            views=(
                LineView(
                    "all ranks",
                    "P(R)",
                    (*(float(start) for start in starts), float(self.ks[-1] + 1)),
                    tuple(
                        f"R = {low:,}" if low == high else f"R = {low:,} to {high:,}"
                        for low, high in zip(starts, self.ks.tolist(), strict=True)
                    ),
                    self._series(curves),
                    self._bands(curves),
                    self._guides(),
                ),
            ),
            log_y=True,
            steps=True,
            shown=self._shown(),
        )

    def _view(self, family: MetricFamily) -> LineView:
        if family not in self._views:
            self._views[family] = self._new_view(family)
        return self._views[family]

    def _new_view(self, family: MetricFamily) -> LineView:
        curves = {name: one.curve(family, bounds=self._alone) for name, one in self.known.items()}
        learned = self._series(curves)
        return LineView(
            family.name,
            f"{family.name}@K",
            tuple(self.ks.astype(float).tolist()),
            tuple(f"K = {k:,}" for k in self.ks),
            (*learned, *self._asked(family, first=len(learned))),
            self._bands(curves),
            self._guides(),
        )

    def _series(self, curves: Mapping[str, Curve]) -> tuple[LineSeries, ...]:
        named = [
            (_series_name(name, method, len(curve.values)), values)
            for name, curve in curves.items()
            for method, values in curve.values.items()
        ]
        return tuple(
            LineSeries(name, _style(place), self._padded(values))
            for place, (name, values) in enumerate(named)
        )

    def _asked(self, family: MetricFamily, first: int) -> tuple[LineSeries, ...]:
        """Return values of methods that know no P(R), at the K they were asked for."""
        named: dict[str, dict[int, float]] = {}
        for name, one in self.known.items():
            silent = [m for m in one.result.methods if m not in one.result.distributions]
            for entry in one.result.entries:
                if entry.method in silent and entry.metric.family == family and entry.metric.k:
                    label = _series_name(name, entry.method, len(one.result.methods))
                    named.setdefault(label, {})[entry.metric.k] = entry.value
        return tuple(
            LineSeries(
                label,
                _style(first + place),
                as_numbers([values.get(k) for k in self.ks.tolist()]),
                marked=True,
            )
            for place, (label, values) in enumerate(named.items())
        )

    def _bands(self, curves: Mapping[str, Curve]) -> tuple[Band, ...]:
        bands = []
        place = 0
        for name, curve in curves.items():
            # Interval and bounds belong to the metric: methods of the same data share them.
            style = _style(place) if len(curve.values) == 1 else None
            place += len(curve.values)
            prefix = f"{name}, " if name else ""
            for role, title, limits in (
                ("bounds", "bounds", curve.bounds),
                ("interval", f"{self.level:.0%} interval".replace("%", " %"), curve.interval),
            ):
                if limits is not None:
                    low, high = (self._padded(side) for side in limits.T)
                    bands.append(Band(role, prefix + title, low, high, style))  # type: ignore[arg-type]
        return tuple(bands)

    def _guides(self) -> tuple[Guide, ...]:
        edges = {
            round(blind_rank(one.result.counts), 1)
            for one in self.known.values()
            if one.certainty is not None
        }
        return tuple(
            Guide("x", edge, f"N/n = {edge:,.0f}") for edge in edges if 1 < edge < self.ks[-1]
        )

    def _shown(self) -> tuple[str, ...]:
        if self._alone:
            return ("interval", "bounds")
        return ("interval",) if len(self.known) <= _FEW else ()

    @property
    def _alone(self) -> bool:
        """Return whether there is one result: bounds of several would hide each other."""
        return len(self.known) == 1

    def _padded(self, values: FloatArray) -> Numbers:
        """Return values at every K, None beyond the catalogue they belong to."""
        missing = len(self.ks) - len(values)
        return as_numbers(np.concatenate([values, np.full(missing, np.nan)]))


def interval_row(
    label: str, entry: Estimate, level: float, *, truth: float = float("nan")
) -> IntervalRow:
    """Return an estimate with its interval and bounds, as a row of a chart."""
    low, high = entry.interval(level)
    bounds = entry.bounds(level) if entry.certainty is not None else (float("nan"),) * 2
    note = "" if entry.resolved else "not resolved by the sample"
    if not entry.credible:
        note = "; ".join(filter(None, [note, "value outside its interval"]))
    if entry.clipped:
        note = "; ".join(filter(None, [note, "value clipped into the metric's range"]))
    sure = entry.resolved and entry.credible and not entry.clipped
    return IntervalRow(
        label, entry.value, low, high, *bounds, truth, note, "sure" if sure else "unsure"
    )


def _series_name(name: str, method: str, methods: int) -> str:
    if not name:
        return method
    return name if methods == 1 else f"{name}, {method}"


def _style(place: int) -> int:
    return STYLE_ORDER[place % len(STYLE_ORDER)]


def interval_chart(views: tuple[IntervalView, ...]) -> IntervalChart:
    """Return the chart of estimates with their intervals and bounds."""
    return IntervalChart(
        identity="intervals",
        title="Estimates with intervals and bounds",
        caption="Thick: the interval. Thin: the bounds, which hold whatever P(R) is.",
        x_label="metric on the full catalogue",
        views=views,
    )


def curve_parts(results: Mapping[str, Estimates], level: float) -> tuple[Part, ...]:
    """Return the parts of a page with metrics at every K and with P(R), where these are known."""
    charts = Curves.of(results, level).charts()
    if not charts:
        return ()
    at_k = Part("curves", "At every K", charts=charts[:1])
    if len(charts) == 1:
        return (at_k,)
    return at_k, Part("ranks", "Where the targets stand", charts=charts[1:])

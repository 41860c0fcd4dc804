"""Small charts as SVG text: no library, no script, colours and dashes from the page's style.

Colours are CSS classes (``s0``, ``s1``, …), so that one drawing serves light and dark pages. Each
class has a dash pattern and each series a marker of its own: nothing is told by colour alone.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unsample._checks import FloatArray

__all__ = ["STYLES", "Bars", "Drawing", "Series", "bar_chart", "line_chart", "sample"]

#: Styles in the page's CSS; further series begin again with the first.
STYLES = 7
_WIDTH, _HEIGHT = 400, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 12, 30, 42
#: Points nearer than this to the line through their neighbours cannot be seen, in pixels.
_INVISIBLE = 0.25


@dataclass(frozen=True)
class Drawing:
    """Markup that is already escaped; templates put it into the page as it is."""

    markup: str

    def __html__(self) -> str:
        return self.markup


@dataclass(frozen=True, eq=False)
class Series:
    """One curve; ``filled`` draws the area below it, for what the others are compared with."""

    label: str
    style: int
    x: FloatArray
    y: FloatArray
    filled: bool = False
    marked: bool = False


@dataclass(frozen=True)
class Bars:
    """One line of a bar chart: a solid bar and an outlined one, each with its value in words."""

    label: str
    style: int
    solid: float
    outlined: float
    solid_text: str
    outlined_text: str


@dataclass(frozen=True)
class Scale:
    """A map from values to pixels, linear or logarithmic."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def at(self, values: FloatArray) -> FloatArray:
        """Return pixels of values."""
        low, high = self.low, self.high
        if self.log:
            values, low, high = np.log(values), math.log(low), math.log(high)
        pixels: FloatArray = self.start + (values - low) / (high - low) * (self.stop - self.start)
        return pixels

    def ticks(self) -> list[float]:
        """Return round values inside the scale."""
        return _log_ticks(self.low, self.high) if self.log else _ticks(self.low, self.high)


def line_chart(
    *,
    identity: str,
    title: str,
    description: str,
    x_label: str,
    y_label: str,
    series: Sequence[Series],
    log: bool = False,
    x_ticks: Sequence[float] = (),
    y_percent: bool = False,
    y_shared: FloatArray | None = None,
) -> Drawing:
    """Return a chart of curves; with ``log``, both axes are logarithmic and zeros are left out.

    The vertical axis also has room for ``y_shared``, so that panels can be compared.
    """
    curves = [_positive(one) for one in series] if log else list(series)
    xs = np.concatenate([np.array([]), *(one.x for one in curves)])
    shared = np.array([]) if y_shared is None else y_shared
    ys = np.concatenate([shared, *(one.y for one in curves)])
    x_scale = Scale(*_limits(xs, log, tight=not log), _LEFT, _WIDTH - _RIGHT, log)
    y_scale = Scale(*_limits(ys, log, tight=False), _HEIGHT - _BOTTOM, _TOP, log)
    parts = [
        _y_axis(y_scale, y_label, percent=y_percent),
        _x_axis(x_scale, x_label, list(x_ticks) or x_scale.ticks()),
        *(_curve(one, x_scale, y_scale) for one in curves if len(one.x)),
    ]
    return _figure(identity, title, description, _HEIGHT, parts)


def bar_chart(
    *, identity: str, title: str, description: str, x_label: str, bars: Sequence[Bars]
) -> Drawing:
    """Return horizontal bars, two for each label, from zero."""
    row, left = 34, 70
    height = _TOP + row * len(bars) + _BOTTOM
    highest = max((max(bar.solid, bar.outlined) for bar in bars), default=1.0)
    # Room on the right for the longest number beside the longest bar.
    scale = Scale(0.0, highest or 1.0, left, _WIDTH - 62)
    parts = [_x_axis(scale, x_label, scale.ticks(), bottom=height - _BOTTOM, as_percent=True)]
    for index, bar in enumerate(bars):
        top = _TOP + row * index
        parts.append(_text(bar.label, left - 6, top + 20, "end"))
        parts += _bar(scale, top + 4, bar.solid, bar.solid_text, f"bar s{bar.style % STYLES}")
        parts += _bar(
            scale, top + 17, bar.outlined, bar.outlined_text, f"bar hollow s{bar.style % STYLES}"
        )
    return _figure(identity, title, description, height, parts)


def sample(style: int, *, filled: bool = False, marked: bool = False) -> Drawing:
    """Return the short line that stands for a series in a legend."""
    name = f"s{style % STYLES}"
    if filled:
        shape = _element("path", {"class": f"area {name}", "d": "M1 2H35V10H1Z"})
    else:
        shape = _element("path", {"class": f"line {name}", "d": "M1 6H35"})
    marker = [_marker(style, 18, 6)] if marked else []
    box = {"class": "sample", "viewBox": "0 0 36 12", "width": "36", "height": "12"}
    return _element("svg", {**box, "aria-hidden": "true"}, shape, *marker)


def _figure(
    identity: str, title: str, description: str, height: float, parts: Sequence[Drawing]
) -> Drawing:
    names = f"{identity}-title {identity}-desc"
    return _element(
        "svg",
        {
            "class": "chart",
            "viewBox": f"0 0 {_WIDTH} {_number(height)}",
            "role": "img",
            "aria-labelledby": names,
        },
        _element("title", {"id": f"{identity}-title"}, title),
        _element("desc", {"id": f"{identity}-desc"}, description),
        _element("text", {"class": "title", "x": _LEFT, "y": 17}, title),
        *parts,
    )


def _curve(series: Series, x_scale: Scale, y_scale: Scale) -> Drawing:
    x, y = x_scale.at(series.x), y_scale.at(series.y)
    if not series.marked:  # a marker shows each point, on a straight line too
        x, y = _simplified(x, y)
    path = _path(x, y)
    name = f"s{series.style % STYLES}"
    tip = _element("title", {}, series.label)
    if series.filled:
        base = _number(float(y_scale.at(np.array([max(0.0, y_scale.low)]))[0]))
        path += f"V{base}H{_number(float(x[0]))}Z"
        return _element("path", {"class": f"area {name}", "d": path}, tip)
    line = _element("path", {"class": f"line {name}", "d": path}, tip)
    if not series.marked:
        return line
    marks = [_marker(series.style, px, py) for px, py in zip(x, y, strict=True)]
    return Drawing(line.markup + "".join(mark.markup for mark in marks))


def _bar(scale: Scale, top: float, value: float, text: str, name: str) -> list[Drawing]:
    end = float(scale.at(np.array([value]))[0])
    # A hair's breadth stays visible, so that zero is not taken for missing.
    right, left = max(end, scale.start + 0.5), _number(scale.start)
    path = f"M{left} {_number(top)}H{_number(right)}v10H{left}z"
    return [_element("path", {"class": name, "d": path}), _text(text, end + 4, top + 9, "start")]


def _x_axis(
    scale: Scale,
    label: str,
    ticks: Sequence[float],
    *,
    bottom: float = _HEIGHT - _BOTTOM,
    as_percent: bool = False,
) -> Drawing:
    parts = []
    for tick in ticks:
        x = float(scale.at(np.array([tick]))[0])
        parts.append(_line("grid", x, _TOP, x, bottom))
        parts.append(_text(_tick_text(tick, as_percent), x, bottom + 15, "middle"))
    parts.append(_line("axis", scale.start, bottom, scale.stop, bottom))
    parts.append(_text(label, (scale.start + scale.stop) / 2, bottom + 33, "middle"))
    return Drawing("".join(part.markup for part in parts))


def _y_axis(scale: Scale, label: str, *, percent: bool) -> Drawing:
    parts = []
    for tick in scale.ticks():
        y = float(scale.at(np.array([tick]))[0])
        parts.append(_line("grid", _LEFT, y, _WIDTH - _RIGHT, y))
        parts.append(_text(_tick_text(tick, percent), _LEFT - 5, y + 4, "end"))
    parts.append(_line("axis", _LEFT, _TOP, _LEFT, _HEIGHT - _BOTTOM))
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    turned = {"class": "label", "transform": f"translate(12 {middle:g}) rotate(-90)"}
    parts.append(_element("text", {**turned, "text-anchor": "middle"}, label))
    return Drawing("".join(part.markup for part in parts))


def _marker(style: int, x: float, y: float) -> Drawing:
    """Return a marker whose shape goes with the style."""
    shapes = (
        "m-3-3h6v6h-6z",
        "m0-4l4 7h-8z",
        "m0-4l4 4-4 4-4-4z",
        "m-3-3l6 6m0-6l-6 6",
        "m-4 0h8m-4-4v8",
        "m0 4l4-7h-8z",
        "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0",
    )
    path = f"M{_number(x)} {_number(y)}{shapes[style % STYLES]}"
    return _element("path", {"class": f"mark s{style % STYLES}", "d": path})


def _line(name: str, x1: float, y1: float, x2: float, y2: float) -> Drawing:
    path = f"M{_number(x1)} {_number(y1)}L{_number(x2)} {_number(y2)}"
    return _element("path", {"class": name, "d": path})


def _text(text: str, x: float, y: float, anchor: str) -> Drawing:
    return _element("text", {"class": "label", "x": x, "y": y, "text-anchor": anchor}, text)


def _element(tag: str, attributes: Mapping[str, str | float], *children: Drawing | str) -> Drawing:
    """Return an element; text and attribute values are escaped here and nowhere else."""
    written = "".join(
        f' {name}="{html.escape(value if isinstance(value, str) else _number(value))}"'
        for name, value in attributes.items()
    )
    inner = "".join(
        child.markup if isinstance(child, Drawing) else html.escape(child) for child in children
    )
    return Drawing(f"<{tag}{written}>{inner}</{tag}>")


def _path(x: FloatArray, y: FloatArray) -> str:
    return "M" + "L".join(f"{_number(a)} {_number(b)}" for a, b in zip(x, y, strict=True))


def _number(value: float) -> str:
    """Return a tenth of a pixel, without needless zeros."""
    return f"{value:.1f}".rstrip("0").rstrip(".") if value else "0"


def _simplified(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the corners that can be seen (Douglas and Peucker): most curves need a few dozen."""
    kept = {0, len(x) - 1}
    spans = [(0, len(x) - 1)]
    while spans:
        first, last = spans.pop()
        if last - first < 2:
            continue
        across, along = x[last] - x[first], y[last] - y[first]
        inside = slice(first + 1, last)
        off = np.abs(along * (x[inside] - x[first]) - across * (y[inside] - y[first]))
        furthest = int(np.argmax(off))
        if off[furthest] > _INVISIBLE * math.hypot(across, along):
            middle = first + 1 + furthest
            kept.add(middle)
            spans += [(first, middle), (middle, last)]
    chosen = sorted(kept)
    return x[chosen], y[chosen]


def _positive(series: Series) -> Series:
    shown = (series.x > 0) & (series.y > 0)
    return Series(
        label=series.label,
        style=series.style,
        x=series.x[shown],
        y=series.y[shown],
        filled=series.filled,
        marked=series.marked,
    )


def _limits(values: FloatArray, log: bool, *, tight: bool) -> tuple[float, float]:
    """Return the ends of an axis: zero belongs to a linear one, a margin to a logarithmic one."""
    known = values[np.isfinite(values)]
    if not len(known):
        return (1.0, 10.0) if log else (0.0, 1.0)
    low, high = float(known.min()), float(known.max())
    if log:
        margin = max((high / low) ** 0.06, 1.1)
        return low / margin, high * margin
    if not tight:
        low, high = min(0.0, low), high + 0.04 * (high - min(0.0, low))
    return (low, high) if high > low else (low, low + 1.0)


def _ticks(low: float, high: float) -> list[float]:
    """Return four to eight multiples of 1, 2 or 5 times a power of ten."""
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def _log_ticks(low: float, high: float) -> list[float]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1, 2, 5) if high / low < 300 else (1,)
    ticks = [factor * 10.0**power for power in powers for factor in factors]
    return [tick for tick in ticks if low <= tick <= high]


def _tick_text(value: float, percent: bool) -> str:
    if percent:
        return f"{100 * value:.4g} %"
    text = f"{value:.4g}"
    return text.replace("-", "−")  # noqa: RUF001

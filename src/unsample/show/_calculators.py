"""The calculators of the web page: what was typed comes in as text, an answer goes out as text.

The page asks and draws. Whatever is computed, put into words or refused is decided here, so that
it is the same as that of the command.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from unsample import metrics as _metrics
from unsample._checks import LARGEST_CATALOGUE, check_choice, check_integer, check_real
from unsample.answers import (
    DEFAULT_METRICS,
    Comparison,
    Estimate,
    Estimates,
    Plan,
    Published,
    compare,
    estimate,
    plan,
    published,
)
from unsample.errors import (
    ContradictionError,
    FileError,
    InputError,
    MetricError,
    MissingExtraError,
    RankError,
    UnsampleError,
    UnsampleWarning,
)
from unsample.estimators import CANDIDATES
from unsample.show._charts import (
    DESIGNS,
    Chart,
    IntervalRow,
    IntervalView,
    estimates_chart,
    spec,
)
from unsample.show._comparison import differences_chart
from unsample.show._html import as_html
from unsample.show._plan import plan_chart
from unsample.show._sheet import is_exact, number, point_of

Answer: TypeAlias = Published | Plan | Estimates | Comparison
#: What people put between thousands.
_THOUSANDS = re.compile(r"[,_'\s\u00a0\u2009\u202f]")
#: Users that a plan has numbers for: in a browser, what 32 bits can address.
_MOST = min(LARGEST_CATALOGUE, sys.maxsize // 8)
_DECIMAL = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+", re.ASCII)
#: A printed number is called too high only beyond this.
_HIGHER = 1.2


@dataclass(frozen=True)
class Shown:
    """An answer in words and in one picture, and the command that gives the same."""

    result: Answer
    sentences: tuple[str, ...]
    chart: Chart
    command: tuple[str, ...]
    #: What stands below the picture: a title, and terms, each with a figure and its meaning.
    about: str = ""
    terms: tuple[tuple[str, str, str], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return what the page draws."""
        return {
            "sentences": self.sentences,
            "about": self.about,
            "terms": self.terms,
            "chart": spec(self.chart),
            "command": shlex.join(self.command),
            "warnings": self.result.warnings,
        }


class Fields:
    """What was typed, by field; a field that is wrong says so under its own name."""

    def __init__(self, typed: Mapping[str, str], files: Iterable[str] = ()) -> None:
        self._typed = {name: text.strip() for name, text in typed.items()}
        self.files = tuple(files)

    def text(self, name: str) -> str | None:
        """Return a text, None where there is none."""
        return self._typed.get(name) or None

    def needed(self, name: str, hint: str) -> str:
        """Return a text that must be there."""
        found = self.text(name)
        if found is None:
            raise InputError(f"{name} must be given: {hint}")
        return found

    def whole(
        self, name: str, hint: str, *, minimum: int = 1, maximum: int = LARGEST_CATALOGUE
    ) -> int:
        """Return a whole number, which may have marks between its thousands."""
        text = _THOUSANDS.sub("", self.needed(name, hint))
        # The check refuses what is not a number.
        value = int(text) if re.fullmatch(r"-?[0-9]{1,18}", text, re.ASCII) else self._typed[name]
        return check_integer(name, value, minimum=minimum, maximum=maximum, hint=hint)

    def maybe_whole(self, name: str, hint: str) -> int | None:
        """Return a whole number, None where there is none."""
        return None if self.text(name) is None else self.whole(name, hint)

    def share(self, name: str, hint: str) -> float | None:
        """Return a share such as 0.05 or 5 %, None where there is none."""
        text = self.text(name)
        if text is None:
            return None
        digits = text.removesuffix("%").rstrip()
        unit = 1.0 if digits == text else 100.0
        value = float(digits) / unit if _DECIMAL.fullmatch(digits) else text
        return check_real(name, value, low=0.0, high=1.0, open_low=True, open_high=True, hint=hint)

    def real(self, name: str, hint: str) -> float | None:
        """Return a positive number, None where there is none."""
        text = self.text(name)
        if text is None:
            return None
        value = float(text) if _DECIMAL.fullmatch(text) else text
        return check_real(name, value, low=0.0, open_low=True, hint=hint)

    def metrics(self) -> tuple[str, ...]:
        """Return names of metrics, separated by commas or spaces outside of brackets."""
        found = _parts(self.text("metrics") or "", ",; \t\n")
        return tuple(metric.name for metric in _metrics.parse_all(found)) if found else ()

    def candidates(self) -> str | None:
        """Return what is stated about the candidates."""
        stated = self.text("candidates")
        return None if stated is None else check_choice("candidates", stated, CANDIDATES)

    def numbers(self) -> tuple[dict[str, str], bool]:
        """Return what a paper prints, such as ``HR@10 = 0.71, NDCG@10 = 0.41``, and if in %."""
        numbers: dict[str, str] = {}
        percents = set()
        typed = self.needed("numbers", "what the paper prints, such as HR@10 = 0.71")
        for part in _parts(typed, ",;\n"):
            plain = part.removesuffix("%").rstrip()
            # The value is the last word: a name may hold a sign of equality, as NDCG(gain=exp)@10.
            value = re.split(r"[=:\s]", plain)[-1]
            name = plain.removesuffix(value).rstrip("=: \t")
            if not name or not value or len(name.split()) > 1:
                raise InputError(
                    f"numbers must be such as HR@10 = 0.71, NDCG@10 = 0.41, got {part!r}"
                )
            if name in numbers:
                raise InputError(f"numbers must give each metric once, got {name} twice")
            numbers[name] = value
            percents.add(plain != part)
        if len(percents) > 1:
            raise InputError("numbers must all have a % sign or none, got some with and some not")
        return numbers, percents == {True}


def _parts(text: str, marks: str) -> list[str]:
    """Return what stands between any of the marks, which mean nothing inside brackets."""
    parts, inside = [""], 0
    for letter in text:
        inside += (letter == "(") - (letter == ")")
        if letter in marks and inside <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


_ITEMS = "how many items a full ranking would have, such as 3706"
_SAMPLED = "how many items each target was ranked against, such as 99"


def _published(fields: Fields) -> Shown:
    """Answer what a printed number means."""
    numbers, percent = fields.numbers()
    given: dict[str, Any] = {
        "sampled": fields.whole("sampled", _SAMPLED),
        "items": fields.whole("items", _ITEMS, minimum=2),
        "users": fields.whole("users", "how many users the numbers are means over, such as 6040"),
        "candidates": fields.candidates(),
    }
    wanted = fields.metrics() or tuple(_metrics.parse(name).name for name in numbers)
    result = published(numbers, metrics=wanted, percent=percent, **given)
    chart = estimates_chart({"": result})
    (view,) = chart.views
    rows = [replace(row, label=f"{row.label}, all items") for row in view.rows]
    for printed in reversed(result.numbers):
        # Beside what it stands for, if that was asked for.
        names = [entry.metric.name for entry in result.entries]
        at = names.index(printed.name) if printed.name in names else 0
        rows.insert(at, _printed_row(printed.name, printed.value, (printed.low, printed.high)))
    chart = replace(
        chart,
        title="As printed, and on the full catalogue",
        x_label="metric",
        views=(IntervalView("all", tuple(rows)),),
        sure="as printed, or interval",
    )
    entry = result.entries[0]
    values = {held.name: held.value for held in result.numbers}
    command = ["published", *_options(given, wanted), *["--percent"] * percent]
    command += [f"{name}={value}" for name, value in numbers.items()]
    return Shown(
        result,
        _meant(entry, result, values.get(entry.metric.name)),
        chart,
        tuple(command),
        f"How sure is {entry.metric}?",
        _limits(entry),
    )


def _printed_row(name: str, value: float, limits: tuple[float, float]) -> IntervalRow:
    note = "as printed; the line is what rounding hides"
    return IntervalRow(f"{name}, as printed", value, limits, note=note)


def _meant(entry: Estimate, result: Published, printed: float | None) -> tuple[str, ...]:
    """Return what a printed number stands for, in a sentence or three."""
    law, name = result.paper.law, entry.metric.name
    _, high = entry.interval()
    whole = f"on all {law.items:,} items {name} is {_about(entry)}"
    text = f"{whole[:1].upper()}{whole[1:]}."
    if printed is not None:
        shown = next(str(each) for each in result.numbers if each.name == name)
        text = f"{shown} was measured against {law.sampled:,} sampled items; {whole}."
    sentences = [text]
    if printed is not None and entry.value > 0.0 and printed > _HIGHER * high:
        times = f"{printed / high:.2g}"
        sentences.append(f"Read as a full-catalogue number, it is at least {times} times too high.")
    return tuple(sentences)


def _about(entry: Estimate) -> str:
    """Return a value with its interval, or the range alone where that says more."""
    low, high = (str(number(end)) for end in entry.interval())
    name = "bounds" if entry.source == "bounds" else "a 95 % interval"
    if math.isnan(point_of(entry)):
        return f"between {low} and {high}"
    sure = "" if math.isnan(entry.interval()[0]) else f", with {name} from {low} to {high}"
    return f"about {number(entry.value)}{sure}"


def _limits(entry: Estimate) -> tuple[tuple[str, str, str], ...]:
    """Return both ends of each range of a value, and what that range assumes."""
    if is_exact(entry):
        return ()
    found = [("bounds", "whatever P(R) is, the shares of ranks", entry.bounds())]
    if entry.source != "bounds":
        like = "right for 95 % of data sets like those that the prior was learned from"
        found.insert(0, ("95 % interval", like, entry.interval()))
    return tuple(
        (name, f"{number(low)} to {number(high)}", text) for name, text, (low, high) in found
    )


def _plan(fields: Fields) -> Shown:
    """Answer how to evaluate."""
    asked = fields.metrics()
    given: dict[str, Any] = {
        "items": fields.whole("items", _ITEMS, minimum=2),
        "users": fields.whole("users", "how many users to evaluate, such as 6040", maximum=_MOST),
        "budget": fields.maybe_whole("budget", "how many scores may be asked for in total"),
        "error": fields.share("error", "half the width of the interval sought, such as 5 %"),
        "recall": fields.share("recall", "a guess of Recall@K on the full catalogue"),
        "odds": fields.real("odds", "how good a guide there is; 1 is none at all"),
        "difference": fields.text("difference"),
    }
    given = {name: value for name, value in given.items() if value is not None}
    result = plan(metrics=asked or "NDCG@10", **given)
    command = ("plan", *_options(given, asked))
    names = {each.name for each in result.outcomes}
    terms = tuple((name, "", text) for name, text in DESIGNS.items() if name in names)
    chart = plan_chart(result)
    return Shown(result, (result.recommendation,), chart, command, "What the designs do", terms)


def _ranks(fields: Fields) -> Shown:
    """Answer what ranks say, and which model is better."""
    if not fields.files:
        raise FileError("files must be at least one table of ranks: drop it, or choose it")
    given: dict[str, Any] = {
        "items": fields.maybe_whole("items", _ITEMS),
        "sampled": fields.maybe_whole("sampled", _SAMPLED),
    }
    by, candidates = fields.text("by"), fields.candidates()
    asked = fields.metrics()
    design = _options({**given, "candidates": candidates}, asked)
    given |= {"metrics": asked or DEFAULT_METRICS, "candidates": candidates}
    if by is None and len(fields.files) == 1:
        (file,) = fields.files
        result = estimate(file, **given)
        entry = result.entries[0]
        sentences = tuple(
            f"{each.metric} on the full catalogue is {_about(each)}." for each in result.entries
        )
        chart = estimates_chart({"": result})
        command = ("estimate", file, *design)
        about = f"How sure is {entry.metric}?"
        return Shown(result, sentences, chart, command, about, _limits(entry))
    comparison = compare(list(fields.files), by=by, **given)
    named = () if by is None else ("--by", by)
    command = ("compare", *fields.files, *named, *design)
    return Shown(comparison, comparison.sentences(), differences_chart(comparison), command)


def _options(given: Mapping[str, Any], metrics: Iterable[str]) -> tuple[str, ...]:
    """Return what was given as options of the command."""
    known = {f"--{name}": str(value) for name, value in given.items() if value is not None}
    pairs = (*known.items(), *(("-m", name) for name in metrics))
    return tuple(word for pair in pairs for word in pair)


#: Each calculator, and its fields in the order of the page.
CALCULATORS: Mapping[str, tuple[Callable[[Fields], Shown], tuple[str, ...]]] = {
    "published": (
        _published,
        ("numbers", "sampled", "items", "users", "candidates", "metrics"),
    ),
    "plan": (
        _plan,
        ("items", "users", "metrics", "error", "difference", "budget", "recall", "odds"),
    ),
    "ranks": (_ranks, ("files", "items", "sampled", "metrics", "candidates", "by")),
}


class Calculator:
    """Answers one question after the other; texts in and texts out, as a page sends them."""

    def __init__(self) -> None:
        self._shown: Shown | None = None

    def answer(self, text: str) -> str:
        """Return the answer to a question, or what is wrong with which field, as JSON.

        A question is ``{"calculator": name, "fields": {name: text}, "files": [path]}``.
        """
        question = json.loads(text)
        calculate, fields = CALCULATORS[question["calculator"]]
        typed = {name: str(value) for name, value in question["fields"].items()}
        self._shown = None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UnsampleWarning)  # the answer holds them
                self._shown = calculate(Fields(typed, question.get("files", ())))
                return json.dumps({"answer": self._shown.to_dict()}, allow_nan=False)
        except UnsampleError as problem:
            field = _field(problem, fields, typed)
            return json.dumps({"error": {"message": str(problem), "field": field}})

    def report(self) -> str:
        """Return the page that the command makes of the last answer."""
        assert self._shown is not None
        return as_html(self._shown.result)

    def numbers(self) -> str:
        """Return the JSON that the command prints of the last answer."""
        assert self._shown is not None
        return self._shown.result.to_json()


def _field(problem: UnsampleError, fields: tuple[str, ...], typed: Mapping[str, str]) -> str:
    """Return the field that a message is about: messages begin with the argument."""
    first = re.split(r"\W", str(problem), maxsplit=1)[0]
    if first in fields:
        return first
    if isinstance(problem, ContradictionError):
        return "numbers"
    if isinstance(problem, FileError | RankError | MissingExtraError) and "files" in fields:
        return "files"
    if isinstance(problem, MetricError) and typed.get("metrics"):
        return "metrics"
    return fields[0]

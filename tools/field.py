"""Check `unsample.published` against full rankings that others printed, and write the page of it.

``python tools/field.py`` reads docs/field/results.csv and docs/field/sources.csv, and writes the
tables of docs/field.md and its picture; ``--check`` says whether they are what is found now.
"""

from __future__ import annotations

import csv
import itertools
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from page_tables import as_table, write_page, write_picture

import unsample
from unsample.errors import UnsampleWarning
from unsample.posterior import Prior, shipped

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "field"
PAGE = ROOT / "docs" / "field.md"
PICTURE = ROOT / "docs" / "pictures" / "field.svg"
TEAL = "#12938b"
ORANGE = "#d9822b"
GREY = "#8fa5a3"
RED = "#b3261e"

#: The metric of the picture.
SHOWN = "HR@10"
#: The metrics by which models of a table are put in order: the first that several have.
ORDERS = ("NDCG@10", "HR@10")
METRICS = ("HR@5", "HR@10", "HR@20", "NDCG@5", "NDCG@10", "NDCG@20")
#: How many models wide a data set is in the picture, at least: its name needs room.
LEAST_PLACES = 5
#: How names of data sets and sources stand above the picture.
_ABOVE = {"ha": "center", "va": "bottom", "fontsize": 8.5}
#: Three models that are equal on the sample and far apart on the catalogue.
EQUAL = ("SASRec BCE 200ep seed42", "SASRec CE", "SASRec RecBole dropout 0.2, rescored")


def prior_for(dataset: str) -> Prior:
    """Return the prior by which printed numbers on a data set of the corpus are read.

    ``dataset`` is the column ``prior`` of sources.csv: the name of the same data set in the corpus
    that the shipped prior was learned from, or an empty text. Its family is left out.
    """
    return Prior.shipped(without=dataset) if dataset else shipped()


@dataclass(frozen=True)
class Source:
    """Where results were printed, and how they were evaluated on one data set."""

    source: str
    dataset: str
    users: int
    items: int
    seen: float
    sampled: int
    negatives: str
    ties: str
    runs: str
    prior: str
    address: str

    @property
    def title(self) -> str:
        """Return the words by which the page names it."""
        return f"{self.source}, {self.dataset}"

    @property
    def candidates(self) -> int:
        """Return how many items a full ranking of unseen items has."""
        return round(self.items - self.seen)


@dataclass(frozen=True)
class Model:
    """What is printed of one model: sampled metrics, and the same of a full ranking."""

    name: str
    sampled: Mapping[str, str]
    full: Mapping[str, str]


@dataclass(frozen=True)
class Pair:
    """A full metric that was printed, beside its estimate from the printed sampled metrics."""

    source: Source
    model: str
    metric: str
    #: The sampled metric of the same name, if it is printed.
    sampled: float | None
    full: float
    estimate: float
    low: float
    high: float

    @property
    def is_held(self) -> bool:
        """Return whether the interval holds the printed number of the full ranking."""
        return self.low <= self.full <= self.high

    @property
    def half_width(self) -> float:
        """Return half the interval's width, as a share of the estimate."""
        return (self.high - self.low) / 2 / self.estimate


@dataclass(frozen=True)
class Board:
    """The models of one source on one data set, estimated and compared."""

    source: Source
    models: Sequence[Model]

    @property
    def ordered_by(self) -> str:
        """Return the metric by which models are put in order, empty if there is one model."""
        for metric in ORDERS:
            if sum(metric in model.sampled for model in self.models) > 1:
                return metric
        return ""

    @property
    def ranked(self) -> list[Model]:
        """Return the models in the order of the printed table, if there are several."""
        metric = self.ordered_by
        printed = [model for model in self.models if metric in model.sampled]
        return sorted(printed, key=lambda model: -float(model.sampled[metric]))

    @cached_property
    def leaderboard(self) -> unsample.Leaderboard:
        """Return the full-catalogue leaderboard from all sampled numbers that are printed."""
        return read_numbers(self.source, {model.name: model.sampled for model in self.models})

    @cached_property
    def pairs(self) -> list[Pair]:
        """Return each full metric that is printed, beside its estimate."""
        return [
            self._pair(model, metric, float(printed))
            for model in self.models
            for metric, printed in model.full.items()
        ]

    def _pair(self, model: Model, metric: str, full: float) -> Pair:
        estimate = self.leaderboard.published(model.name)[metric]
        low, high = estimate.interval()
        sampled = model.sampled.get(metric)
        return Pair(
            source=self.source,
            model=model.name,
            metric=metric,
            sampled=None if sampled is None else float(sampled),
            full=full,
            estimate=estimate.value,
            low=low,
            high=high,
        )


def read_numbers(source: Source, models: Mapping[str, Mapping[str, str]]) -> unsample.Leaderboard:
    """Return what printed sampled metrics of models tell of the full catalogue."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnsampleWarning)
        return unsample.published(
            models,
            items=source.candidates,
            sampled=source.sampled,
            users=source.users,
            protocol="unseen",
            metrics=METRICS,
            prior=prior_for(source.prior),
        )


# -- the table of results --------------------------------------------------------------------------


def read_boards(folder: Path = FOLDER) -> list[Board]:
    """Return the models of each source and data set, in the order of the files."""
    sources = [_source_of(row) for row in _rows(folder / "sources.csv")]
    models: dict[tuple[str, str], list[Model]] = {
        (source.source, source.dataset): [] for source in sources
    }
    for row in _rows(folder / "results.csv"):
        key = row["source"], row["dataset"]
        if key not in models:
            raise SystemExit(f"sources.csv has no line for {key[0]} on {key[1]}; add one")
        model = Model(row["model"], numbers_in(row["sampled"]), numbers_in(row["full"]))
        models[key].append(model)
    return [Board(source, models[source.source, source.dataset]) for source in sources]


def numbers_in(text: str) -> dict[str, str]:
    """Return the metrics in a cell with their digits.

    >>> numbers_in("HR@10=0.0690 NDCG@10=0.41")
    {'HR@10': '0.0690', 'NDCG@10': '0.41'}
    """
    found = [number.partition("=") for number in text.split()]
    return {metric: value for metric, _, value in found}


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _source_of(row: Mapping[str, str]) -> Source:
    whole = {name: int(row[name]) for name in ("users", "items", "sampled")}
    return Source(**{**row, **whole, "seen": float(row["seen"])})


# -- intervals beside full rankings ----------------------------------------------------------------


def _times_too_high(pairs: Sequence[Pair]) -> str:
    """Return the median of sampled over full metrics, empty where no sampled one is printed."""
    ratios = [pair.sampled / pair.full for pair in pairs if pair.sampled is not None]
    return f"{median(ratios):.1f}" if ratios else ""


def _held(pairs: Sequence[Pair]) -> str:
    return _share(sum(pair.is_held for pair in pairs), len(pairs))


#: What is shown of many pairs, by the name of its column.
COLUMNS: dict[str, Callable[[Sequence[Pair]], str]] = {
    "numbers": lambda pairs: str(len(pairs)),
    "held": _held,
    "half-width": lambda pairs: f"{median(pair.half_width for pair in pairs):.2f}",
    "estimate / full": lambda pairs: f"{median(pair.estimate / pair.full for pair in pairs):.2f}",
    "sampled / full": _times_too_high,
}


def _share(part: int, whole: int) -> str:
    """Return a count with its share.

    >>> _share(1, 3)
    '1 (33 %)'
    """
    return f"{part} ({100 * part / whole:.0f} %)"


def summary(boards: Sequence[Board]) -> str:
    """Return the first sentences of the page."""
    pairs = [pair for board in boards for pair in board.pairs]
    models = {(pair.source, pair.model) for pair in pairs}
    unbiased = [pair for pair in pairs if not pair.source.ties]
    shown = [pair for pair in unbiased if pair.metric == SHOWN]
    ratio = median(pair.estimate / pair.full for pair in shown)
    return (
        f"**{len(models)} models of others, {len(pairs)} numbers of full rankings: the 95 % "
        f"intervals hold {_held(pairs)}. Without one source, whose code breaks ties for the "
        f"target, they hold {_held(unbiased)} of {len(unbiased)}.** There the sampled {SHOWN} is "
        f"{_times_too_high(shown)} times the full one in the median model, and the estimate "
        f"{ratio:.2f} times. Nothing in `unsample` was chosen by these numbers.\n"
    )


def table_of_sources(boards: Sequence[Board]) -> str:
    """Return a row for each source and data set, and one for each source with several."""
    rows = []
    for name, group in itertools.groupby(boards, lambda board: board.source.source):
        of_source = list(group)
        rows += [_row_of_source(board.source.title, [board]) for board in of_source]
        if len(of_source) > 1:
            rows.append(_row_of_source(f"**{name}, all**", of_source))
    rows.append(_row_of_source("**all**", boards))
    return as_table(("source, data set", "models", *COLUMNS, "left out of the prior"), rows)


def _row_of_source(title: str, boards: Sequence[Board]) -> list[str]:
    pairs = [pair for board in boards for pair in board.pairs]
    models = {(pair.source, pair.model) for pair in pairs}
    known = {"yes" if board.source.prior else "no" for board in boards}
    cells = [column(pairs) for column in COLUMNS.values()]
    return [title, str(len(models)), *cells, ", ".join(sorted(known))]


def table_of_metrics(boards: Sequence[Board]) -> str:
    """Return a row for each metric and kind of full ranking."""
    pairs = [pair for board in boards for pair in board.pairs]
    rows = []
    for kind in sorted({kind_of(pair.source) for pair in pairs}):
        for metric in METRICS:
            chosen = [
                pair for pair in pairs if pair.metric == metric and kind_of(pair.source) == kind
            ]
            if chosen:
                cells = [column(chosen) for column in COLUMNS.values()]
                rows.append([metric, kind, *cells])
    return as_table(("metric", "the full ranking is of", *COLUMNS), rows)


def kind_of(source: Source) -> str:
    """Return what a full ranking is of, and whether the sampled ranks are what they should be."""
    runs = "the same run" if source.runs == "same" else "trained again"
    return f"{runs}, ties {source.ties}" if source.ties else runs


def table_of_misses(boards: Sequence[Board]) -> str:
    """Return each printed number that its interval does not hold."""
    missed = [pair for board in boards for pair in board.pairs if not pair.is_held]
    rows = [
        [
            pair.source.title,
            pair.model,
            pair.metric,
            f"{pair.full:.4f}",
            f"{pair.estimate:.4f}",
            f"{pair.low:.4f} .. {pair.high:.4f}",
            "above" if pair.full > pair.high else "below",
        ]
        for pair in missed
    ]
    names = ("source, data set", "model", "metric", "full", "estimate", "interval", "full lies")
    return as_table(names, rows)


def table_of_equals(boards: Sequence[Board]) -> str:
    """Return models that are equal on the sample, read from one number and from two."""
    board = next(board for board in boards if {*EQUAL} <= {model.name for model in board.models})
    models = {model.name: model for model in board.models if model.name in EQUAL}
    alone = read_numbers(
        board.source, {name: {SHOWN: model.sampled[SHOWN]} for name, model in models.items()}
    )
    rows = [
        [
            name,
            model.sampled["HR@10"],
            model.sampled["NDCG@10"],
            model.full["HR@10"],
            _with_interval(alone.published(name)[SHOWN]),
            _with_interval(board.leaderboard.published(name)[SHOWN]),
        ]
        for name, model in models.items()
    ]
    names = ("model", "sampled HR@10", "sampled NDCG@10", "full HR@10")
    return as_table((*names, "ours, from HR@10 alone", "ours, from both"), rows)


def _with_interval(estimate: unsample.Estimate, digits: int = 3) -> str:
    low, high = estimate.interval()
    return f"{estimate.value:.{digits}f} in {low:.{digits}f} .. {high:.{digits}f}"


def picture(boards: Sequence[Board]) -> Figure:
    """Draw each model: sampled, ours with its interval, and full, on one axis."""
    figure = Figure(figsize=(14, 6.6), layout="constrained")
    ax = figure.subplots()
    start = 0
    ticks = []
    for name, group in itertools.groupby(boards, lambda board: board.source.source):
        first = start
        for board in group:
            pairs = [pair for pair in board.pairs if pair.metric == SHOWN]
            by_value = sorted(pairs, key=lambda pair: pair.full)
            width = max(len(by_value), LEAST_PLACES)
            margin = (width - len(by_value)) / 2
            place = start + margin + np.arange(len(by_value))
            _draw_pairs(ax, place, pairs=by_value)
            middle = start + (width - 1) / 2
            ax.text(middle, 1.08, s=board.source.dataset.replace(" ", "\n"), **_ABOVE)
            ticks += [
                (at, _shortened(pair.model)) for at, pair in zip(place, by_value, strict=True)
            ]
            start += width + 1
            ax.axvline(start - 1, color=GREY, lw=0.6, alpha=0.6)
        ax.text((first + start - 2) / 2, 1.85, s=name, fontweight="bold", **_ABOVE)
    ax.set(yscale="log", xlim=(-1, start - 1), ylim=(0.002, 1), ylabel=SHOWN)
    ax.set_yticks([0.003, 0.01, 0.03, 0.1, 0.3, 1.0], ["0.003", "0.01", "0.03", "0.1", "0.3", "1"])
    ax.set_xticks(*zip(*ticks, strict=True), rotation=90, fontsize=8)
    ax.grid(axis="y", lw=0.4, alpha=0.5)
    ax.spines[["top", "right"]].set_visible(False)
    handles, labels = ax.get_legend_handles_labels()
    known = dict(zip(labels, handles, strict=True))
    figure.legend(
        known.values(), known.keys(), loc="outside lower center", ncol=4, frameon=False, fontsize=9
    )
    return figure


def _draw_pairs(ax: Axes, place: np.ndarray, *, pairs: Sequence[Pair]) -> None:
    estimate = np.array([pair.estimate for pair in pairs])
    ends = np.array([[pair.low, pair.high] for pair in pairs]).T
    sampled = np.array([pair.sampled for pair in pairs])
    full = np.array([pair.full for pair in pairs])
    held = np.array([pair.is_held for pair in pairs])
    ax.plot(place, sampled, marker="o", ls="", color=GREY, ms=5, label="printed, sampled")
    for chosen, colour, label in (
        (held, ORANGE, "printed, full ranking"),
        (~held, RED, "the same, missed"),
    ):
        beside = place[chosen] + 0.12
        ax.plot(
            beside, full[chosen], marker="D", ls="", color=colour, ms=4.5, zorder=3, label=label
        )
    ax.errorbar(
        place - 0.12,
        estimate,
        yerr=np.abs(ends - estimate),
        fmt="_",
        color=TEAL,
        ms=5,
        lw=1.6,
        capsize=2,
        label="unsample, 95 % interval",
    )


def _shortened(name: str) -> str:
    """Return a model's name as it stands below a picture.

    >>> _shortened("SASRec BCE popularity negatives in training")
    'SASRec BCE popularity…'
    """
    return name if len(name) <= 24 else f"{name[:24].rpartition(' ')[0].rstrip(',(')}…"


# -- the gallery -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """Two models of a printed table, the better by the sampled metric first."""

    better: str
    worse: str
    #: The model that is better on the full catalogue, or None if the numbers do not tell.
    winner: str | None
    #: The one that was better in the full ranking that was printed; None without one.
    truth: str | None

    @property
    def verdict(self) -> str:
        """Return what becomes of the claim on the full catalogue."""
        if self.winner is None:
            return "open"
        return "survives" if self.winner == self.better else "reversed"


def claims_of(board: Board) -> list[Claim]:
    """Return all pairs of models that differ by the printed sampled metric."""
    metric = board.ordered_by
    found = []
    for one, other in itertools.combinations(board.ranked, 2):
        if float(one.sampled[metric]) > float(other.sampled[metric]):
            comparison = board.leaderboard.comparison()
            claim = Claim(
                better=one.name,
                worse=other.name,
                winner=comparison.difference(one.name, other.name, metric=metric).winner,
                truth=_better_in_full(one, other, metric=metric),
            )
            found.append(claim)
    return found


def _better_in_full(one: Model, other: Model, *, metric: str) -> str | None:
    if metric not in one.full or metric not in other.full:
        return None
    first, second = (float(model.full[metric]) for model in (one, other))
    if first == second:
        return None
    return one.name if first > second else other.name


def table_of_claims(boards: Sequence[Board]) -> str:
    """Return what becomes of the claims of each printed table."""
    rows = []
    for board in boards:
        if not board.ranked:
            continue
        claims = claims_of(board)
        verdicts = [claim.verdict for claim in claims]
        decided = [claim for claim in claims if claim.winner and claim.truth]
        right = sum(claim.winner == claim.truth for claim in decided)
        first = board.ranked[0]
        of_first = [claim.verdict for claim in claims if claim.better == first.name]
        row = [
            board.source.title,
            board.ordered_by,
            str(len(board.ranked)),
            first.name,
            f"{of_first.count('survives')} of {len(of_first)}",
            str(len(claims)),
            str(verdicts.count("survives")),
            str(verdicts.count("open")),
            str(verdicts.count("reversed")),
            f"{right} of {len(decided)}" if decided else "",
        ]
        rows.append(row)
    names = ("table", "by", "models", "printed winner", "beats surely", "claims")
    verdict_names = ("survive", "open", "reversed", "verdicts that the full ranking confirms")
    return as_table((*names, *verdict_names), rows)


def reversals(boards: Sequence[Board]) -> str:
    """Return each reversed claim as a line of a list, with the full ranking where it is printed."""
    lines = []
    for board in boards:
        models = {model.name: model for model in board.models}
        metric = board.ordered_by
        for claim in claims_of(board):
            if claim.verdict == "reversed":
                better = models[claim.better]
                worse = models[claim.worse]
                sampled = f"{better.sampled[metric]} against {worse.sampled[metric]}"
                full = "not printed"
                if claim.truth:
                    full = f"{better.full[metric]} against {worse.full[metric]}"
                lines.append(
                    f"* {board.source.title}: {claim.better} has the higher sampled {metric} than "
                    f"{claim.worse} ({sampled}), and surely the lower one on the full catalogue. "
                    f"The full ranking: {full}.\n"
                )
    return "".join(lines) or "No claim is reversed.\n"


def places_of_boards(boards: Sequence[Board]) -> str:
    """Return each printed table again, by its full-catalogue estimates, folded."""
    names = ("model", "sampled", "estimate", "95 % interval", "place", "place as printed")
    parts = []
    for board in boards:
        if board.ranked:
            title = f"{board.source.title}, by {board.ordered_by}"
            table = as_table(names, _rows_of_places(board))
            parts.append(f"<details>\n<summary>{title}</summary>\n\n{table}\n</details>\n")
    return "\n".join(parts)


def _rows_of_places(board: Board) -> list[list[str]]:
    """Return a row for each model that has a place in the printed table."""
    metric = board.ordered_by
    printed = {model.name: model.sampled[metric] for model in board.ranked}
    in_order = sorted(printed.values(), key=float, reverse=True)
    rows = []
    for place in board.leaderboard.standings():
        if place.metric == metric and place.model in printed:
            low, high = place.estimate.interval()
            one = place.first == place.last
            row = [
                place.model,
                printed[place.model],
                f"{place.estimate.value:.4f}",
                f"{low:.4f} .. {high:.4f}",
                str(place.first) if one else f"{place.first}-{place.last}",
                str(in_order.index(printed[place.model]) + 1),
            ]
            rows.append(row)
    return rows


# -- the page --------------------------------------------------------------------------------------


def table_of_addresses(boards: Iterable[Board]) -> str:
    """Return where each number was printed, and how items were drawn."""
    rows = []
    for board in boards:
        source = board.source
        link = re.sub(r"^(\S+)", r"[\1](https://\1)", source.address)
        runs = "the same run" if source.runs == "same" else "trained again"
        drawn = f"{source.negatives}; ties {source.ties}" if source.ties else source.negatives
        sizes = [f"{source.users:,}", f"{source.candidates:,}", str(source.sampled)]
        known = source.prior or "no"
        rows.append([source.title, *sizes, drawn, runs, known, link])
    names = ("source, data set", "users", "candidates", "sampled", "negatives")
    return as_table((*names, "full ranking", "left out of the prior", "printed in"), rows)


def tables(boards: Sequence[Board]) -> dict[str, str]:
    """Return all tables of the page by their names."""
    return {
        "field-summary": summary(boards),
        "field-sources": table_of_sources(boards),
        "field-metrics": table_of_metrics(boards),
        "field-misses": table_of_misses(boards),
        "field-equals": table_of_equals(boards),
        "field-claims": table_of_claims(boards),
        "field-reversals": reversals(boards),
        "field-places": places_of_boards(boards),
        "field-addresses": table_of_addresses(boards),
    }


def main(*, check: bool) -> int:
    """Write the page and its picture, or say whether they are as found now."""
    boards = read_boards()
    same = [
        write_page(PAGE, tables(boards), check=check),
        write_picture(
            PICTURE,
            picture([b for b in boards if b.pairs]),
            title="Models of others",
            text=(
                "Models of others in groups by data set, on a logarithmic axis of HR@10: the "
                "sampled metric far above, below it the intervals of unsample and, in most of "
                "them, the metric of the full ranking."
            ),
            check=check,
        ),
    ]
    return 0 if all(same) or not check else 1


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))

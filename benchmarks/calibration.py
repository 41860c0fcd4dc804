"""How well the cloud holds on what it was not learned from: ``benchmarks/calibration.py``.

Families of data sets and kinds of models are left out at once: a rank set is judged by a prior that
was learned without any data set of its family and without any model of its kind. A sample is drawn
from its ranks, and what the cloud says is compared with the exact metrics of the same users, those
that are 0 too. The prior's error is multiplied by a factor that is chosen by the other families
alone, on all numbers of sampled items together: a (99/n)^b for each kind. Tables show the default
intervals, for users like these, and differences of models, which are taken as independent, for rank
sets have no users.

Rank sets are those of the corpus, of ``further_ranks.npz`` (ten more kinds of models, on the same
data sets and on ten more) and of ``own_first_ranks.npz`` (four models that put a user's own items
first, made by ``benchmarks/own_first.py``). Where own items are among the candidates, the number of
them is given, as `estimate` takes it with ``seen=``; ``--unknown`` leaves it out. ``--users`` thins
the users of each rank set. ``--write FILE`` learns from all and saves the prior with its factors,
and beside it the priors without each family.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from unsample._files import ARCHIVE_ENDINGS, check_ending, check_writable, write_atomically
from unsample.counts import RankCounts
from unsample.lab.corpus import Corpus, RankSet, load_corpus
from unsample.likelihood import CondensedCells
from unsample.metrics import parse_all
from unsample.posterior import (
    PROTOCOLS,
    Cloud,
    FixedNumbers,
    Gaussian,
    History,
    Prior,
    joint_draws,
    shipped,
)
from unsample.posterior._cloud import Fitted
from unsample.posterior._components import PUSHED
from unsample.posterior._without import save_without
from unsample.sampling import draw_sampled_ranks
from unsample.uncertainty import FromDraws

FURTHER = tuple(
    Path(__file__).with_name(name) for name in ("further_ranks.npz", "own_first_ranks.npz")
)
METRICS = parse_all(["NDCG@10", "Recall@10", "MRR@100", "Recall@1", "Recall@100"])
#: What factors are chosen by, and what differences are judged by.
SINGLE, PAIRED = (0, 1, 2, 3), (0, 1, 2)
#: The factors that are tried, and the numbers of sampled items.
FACTORS = (0.3, 0.45, 0.65, 1.0, 1.5, 2.2)
SAMPLED = (20, 99, 499)
#: Draws of a cloud here; more move the ends by a percent.
NUMBERS = FixedNumbers(draws=2048)
#: Kinds of models that are left out together, and into how many parts families are cut.
MODELS = (
    "pop popularity recent freq",
    "knn itemknn selfknn userknn transe rotate",
    "ease half-ease svd als ridge",
    "rp3 walk selfwalk gfcf lightgcn complex distmult",
    "bpr neumf tower vae multivae rescal",
    "markov decay gru sasrec mlp",
)
GROUP = {name: at for at, names in enumerate(MODELS) for name in names.split()}
PARTS = 12
LEVEL, PAIR_LEVEL = 0.95, 0.9
#: An interval score adds this for each unit by which the truth is missed.
PENALTY = 2.0 / (1.0 - LEVEL)


@dataclass(frozen=True, eq=False)
class Judged:
    """Rank sets, or pairs of them: what was said under each factor, and what is true.

    Arrays have the shape (rows, factors, metrics); ``truth`` has (rows, metrics). ``above`` is the
    probability that a difference is above 0, and NaN of single rank sets. Differences are the same
    under all factors.
    """

    kind: np.ndarray
    family: np.ndarray
    sampled: np.ndarray
    pair: np.ndarray
    truth: np.ndarray
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    above: np.ndarray

    @classmethod
    def join(cls, parts: Sequence[Judged]) -> Judged:
        names = cls.__dataclass_fields__
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def take(self, rows: np.ndarray) -> Judged:
        return Judged(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def holds(self) -> np.ndarray:
        truth = self.truth[:, None, :]
        return (self.low <= truth) & (truth <= self.high)

    def at_factor(self, factor: float) -> Judged:
        """Return what was said under the nearest factor that was tried."""
        index = int(np.argmin(np.abs(np.log(np.array(FACTORS) / factor))))
        some = ("value", "low", "high", "above")
        return replace(self, **{name: getattr(self, name)[:, [index]] for name in some})


@dataclass(frozen=True, eq=False)
class Past:
    """Rank sets, what they are to learning, and what each tells."""

    sets: tuple[RankSet, ...]
    histories: tuple[History, ...]
    evidence: tuple[Gaussian, ...]

    @classmethod
    @cache
    def of(cls, datasets: tuple[str, ...] = ()) -> Past:
        """Take the complete rank sets, of all data sets or of some; families share their weight."""
        found = [*load_corpus(), *(each for path in FURTHER for each in Corpus.load(path))]
        sets = [e for e in found if not e.partial and (not datasets or e.dataset in datasets)]
        of_family: dict[tuple[str, str], set[str]] = {}
        for each in sets:
            of_family.setdefault((each.kind, each.family), set()).add(each.dataset)
        histories = tuple(
            History(
                grid=one.grid,
                counts=one.counts,
                dataset=one.dataset,
                kind=one.kind,
                weight=1.0 / len(of_family[one.kind, one.family]),
            )
            for one in sets
        )
        return cls(tuple(sets), histories, tuple(each.evidence() for each in histories))

    def learned(
        self, part: int | None = None, group: int | None = None, family: str | None = None
    ) -> Prior:
        """Return the prior without a part of the families, a group of models, or one family."""
        kept = [
            at
            for at, each in enumerate(self.sets)
            if (part is None or self.part_of(each.family) != part)
            and (group is None or GROUP[each.model] != group)
            and each.family != family
        ]
        evidence = [self.evidence[at] for at in kept]
        return Prior.fit([self.histories[at] for at in kept], evidence=evidence)

    def part_of(self, family: str) -> int:
        names = sorted({each.family for each in self.sets})
        return np.random.default_rng(1).permutation(names).tolist().index(family) % PARTS

    def judged(self) -> Iterator[list[RankSet]]:
        """Yield the models of each data set, those of the corpus and the others apart."""
        shipped = {id(each) for each in load_corpus()}
        groups: dict[tuple[str, str, bool], list[RankSet]] = {}
        for each in self.sets:
            place = each.dataset, each.kind, id(each) in shipped
            groups.setdefault(place, []).append(each)
        yield from groups.values()


def sampled_counts(ranks: np.ndarray, one: RankSet, sampled: int, seed: int) -> RankCounts:
    """Draw a sample for each of the ranks of a rank set, and count its ranks."""
    name = "/".join((one.dataset, one.model, one.kind, str(sampled)))
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    size = min(sampled, one.items - 1)
    drawn = draw_sampled_ranks(ranks, items=one.items, sampled=size, rng=rng)
    return RankCounts.from_ranks(drawn, items=one.items, sampled=size)


def some_ranks(one: RankSet, users: int | None, seed: int) -> np.ndarray:
    """Return the ranks of a rank set, or those of so many users at random."""
    ranks = one.ranks()
    if users is None or users >= len(ranks):
        return ranks
    name = "/".join((one.dataset, one.model, one.kind, str(users)))
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    return rng.choice(ranks, users, replace=False)


def fold(part: int, group: int, chosen: argparse.Namespace) -> list[Judged]:
    """Judge the rank sets of some families by some kinds of models."""
    found: list[Judged] = []
    past = Past.of(tuple(chosen.datasets))
    prior: Prior | None = None
    for sets in past.judged():
        own = [at for at, each in enumerate(sets) if GROUP[each.model] == group]
        if past.part_of(sets[0].family) != part or not own:
            continue
        prior = prior or past.learned(part=part, group=group)
        found += [judged(sets, own, prior, sampled, chosen) for sampled in chosen.sampled]
    return found


def widened(fitted: Fitted, factor: float) -> Fitted:
    """Return a fit whose prior errs by a factor more."""
    by = np.sqrt(factor)
    fits = tuple(replace(fit, component=fit.component.widened(by)) for fit in fitted.components)
    return replace(fitted, components=fits)


def judged(
    sets: Sequence[RankSet],
    own: Sequence[int],
    prior: Prior,
    sampled: int,
    chosen: argparse.Namespace,
) -> Judged:
    """Return what is said of some of the models, and of pairs whose first is one of them.

    The truth is that of all users; samples are those of the users that are left.
    """
    kind = sets[0].kind
    if kind == "all" and not chosen.unknown:
        prior = replace(prior, seen=sets[0].seen)
    fitted = []
    for one in sets:
        ranks = some_ranks(one, chosen.users, chosen.seed)
        cells = CondensedCells.of(sampled_counts(ranks, one, sampled, chosen.seed))
        fitted.append(Fitted.of(cells, prior, protocol=kind))
    exact = np.array(
        [
            [float(metric.weights(one.ranks(), one.items).mean()) for metric in METRICS]
            for one in sets
        ]
    )
    pairs = [(a, b) for a, b in combinations(range(len(sets)), 2) if a in own]
    rows = len(own) + len(pairs)
    said = np.full((4, rows, len(FACTORS), len(METRICS)), np.nan)
    for column, factor in enumerate(FACTORS):
        for row, at in enumerate(own):
            cloud = Cloud.of_fitted(widened(fitted[at], factor), NUMBERS)
            for index, metric in enumerate(METRICS):
                one = cloud.metric(metric)
                said[:3, row, column, index] = (one.value, *one.interval(LEVEL))
    if pairs:
        shipped_kind = shipped().learned[kind]
        factor = shipped_kind.factors[0] * shipped_kind.widening(sampled) ** 2
        differences = differences_of(fitted, pairs, factor)
        said[:, len(own) :] = differences[:, :, None, :]
    truth = np.concatenate([exact[list(own)], *(exact[[a]] - exact[[b]] for a, b in pairs)])
    return Judged(
        kind=np.full(rows, kind),
        family=np.full(rows, sets[0].family),
        sampled=np.full(rows, sampled),
        pair=np.arange(rows) >= len(own),
        truth=truth,
        value=said[0],
        low=said[1],
        high=said[2],
        above=said[3],
    )


def differences_of(
    fitted: Sequence[Fitted], pairs: Sequence[tuple[int, int]], factor: float
) -> np.ndarray:
    """Return value, ends and probability of each difference under one factor (4 x pairs x metrics).

    Differences do not decide on factors: they are those of the shipped prior.
    """
    clouds = {
        str(at): Cloud.of_fitted(widened(each, factor), NUMBERS) for at, each in enumerate(fitted)
    }
    both = joint_draws(clouds, METRICS, numbers=NUMBERS)
    said = np.empty((4, len(pairs), len(METRICS)))
    for index, metric in enumerate(METRICS):
        values = np.array([cloud.metric(metric).value for cloud in clouds.values()])
        draws = both[metric.name]
        draws = draws * (values / np.maximum(np.median(draws, axis=0), 1e-300))
        for row, (a, b) in enumerate(pairs):
            difference = FromDraws.of(draws[:, a] - draws[:, b])
            ends = difference.interval(PAIR_LEVEL)
            middle = values[a] - values[b]
            said[:, row, index] = (middle, *ends, difference.probability_above(0.0))
    return said


# -- factors --------------------------------------------------------------------------------------


def by_family(lines: Judged, held: np.ndarray) -> np.ndarray:
    """Return a mean over families of shares that hold (rows x factors)."""
    families = np.unique(lines.family)
    return np.mean([held[lines.family == each].mean(axis=0) for each in families], axis=0)


def choose(lines: Judged) -> tuple[float, float]:
    """Return a and b of the factor a (99/n)^b with which intervals of 95 % hold in 95 %.

    At each n, the least factor at which they do, on a line between those that were tried. A true
    value of 0 lies outside every interval for users like these: it counts in the tables, and does
    not choose factors.
    """
    logs = []
    for sampled in np.unique(lines.sampled):
        some = lines.take(lines.sampled == sampled)
        positive = (some.truth > 0.0)[:, None, SINGLE]
        held = (some.holds()[:, :, SINGLE] & positive).sum(axis=2) / positive.sum(axis=2)
        shares = by_family(some, held)
        rising = np.maximum.accumulate(shares)
        logs.append((np.log(99.0 / sampled), np.interp(LEVEL, rising, np.log(FACTORS))))
    x, y = np.array(logs).T
    if len(x) == 1:
        return float(np.exp(y[0])), 0.0
    slope = max(float(np.polyfit(x, y, 1)[0]), 0.0)
    return float(np.exp(np.mean(y - slope * x))), slope


# -- tables ---------------------------------------------------------------------------------------


def figure(singles: Judged, pairs: Judged, metric: int) -> dict[str, object]:
    """Return how intervals of one metric hold at one n, and how verdicts on two models do.

    ``reached`` is how far the truth is from the value, as a share of the way to the end on its
    side. The interval score is the width, plus a penalty for a miss, over the value.
    """
    truth, value = singles.truth[:, metric], singles.value[:, 0, metric]
    low, high = singles.low[:, 0, metric], singles.high[:, 0, metric]
    way = np.where(truth < value, value - low, high - value)
    reached = np.abs(truth - value) / np.maximum(way, 1e-300)
    missed = np.maximum(low - truth, 0.0) + np.maximum(truth - high, 0.0)
    score = (high - low + PENALTY * missed) / np.maximum((truth + value) / 2.0, 1e-4)
    above, difference = pairs.above[:, 0, metric], pairs.truth[:, metric]
    called = np.abs(above - 0.5) >= LEVEL - 0.5
    right = (above > 0.5) == (difference > 0.0)
    positive = truth > 0.0
    errors = np.abs(np.log(value[positive] / truth[positive]))
    held = pairs.holds()[:, 0, metric] if len(pairs.kind) else np.zeros(0)
    return {
        "kind": str(singles.kind[0]),
        "metric": METRICS[metric].name,
        "sampled": int(singles.sampled[0]),
        "zeros": int((~positive).sum()),
        "error": float(np.median(errors)),
        "half-width": float(np.median((high - low) / 2.0 / np.maximum(value, 1e-12))),
        "score": float(np.mean(np.minimum(score, 20.0))),
        "below": float((truth < low).mean()),
        "above": float((truth > high).mean()),
        "reached": reached.round(4).tolist(),
        "pairs": len(pairs.kind),
        "pairs held": float(held.mean()) if len(held) else float("nan"),
        "called": int(called.sum()),
        "right": int((called & right).sum()),
    }


def words(found: dict) -> str:
    """Return a figure as a row of the printed table."""
    called, pairs = found["called"], found["pairs"]
    verdicts = f"{called / pairs:.0%}, {found['right'] / called:.1%}" if called else "-"
    return (
        f"  {found['sampled']:4} {found['metric']:12} {len(found['reached']):5} sets"
        f"  error {found['error']:.3f}  half-width {found['half-width']:.2f}"
        f"  score {found['score']:.2f}"
        f"  holds {np.mean(np.array(found['reached']) <= 1):.1%}"
        f" (truth below {found['below']:.1%}, above {found['above']:.1%}; {found['zeros']} zeros)"
        f"  differences hold {found['pairs held']:.1%}  pairs called, right {verdicts}"
    )


def print_tables(lines: Judged) -> tuple[dict[str, tuple[float, float]], list[dict[str, object]]]:
    """Print, by kind, what factors of other families give; return those of all, and the figures."""
    result, figures = {}, []
    for kind in [each for each in PROTOCOLS if (lines.kind == each).any()]:
        some = lines.take(lines.kind == kind)
        singles, pairs = some.take(~some.pair), some.take(some.pair)
        result[kind] = choose(singles)
        print(f"\n{kind}: factor {result[kind][0]:.2f} (99/n)^{result[kind][1]:.2f}")
        families = np.unique(singles.family)
        nested = {}
        for each in families:
            others = singles.take(singles.family != each)
            nested[str(each)] = choose(others if len(others.kind) else singles)
        spans = np.array(list(nested.values()))
        print(f"  without a family {spans[:, 0].min():.2f} .. {spans[:, 0].max():.2f}")
        for sampled in np.unique(singles.sampled):
            parts = [
                Judged.join(
                    [
                        group.take((group.family == family) & (group.sampled == sampled)).at_factor(
                            a * (99.0 / sampled) ** b
                        )
                        for family, (a, b) in nested.items()
                    ]
                )
                for group in (singles, pairs)
            ]
            for metric in range(len(METRICS)):
                figures.append(figure(*parts, metric))
                print(words(figures[-1]))
    return result, figures


def as_table(figures: Sequence[Mapping[str, Any]]) -> str:
    """Return the figures as a table in Markdown: a row for each kind and number of items."""
    columns = [
        "protocol",
        "sampled items",
        "rank sets",
        "intervals hold NDCG@10, Recall@10, MRR@100, Recall@1",
        "NDCG@10 below, above",
        "half-width",
        "interval score",
        "median error",
        "differences hold",
        "pairs called, right",
    ]
    rows = [columns, ["---", *["---:"] * (len(columns) - 1)]]
    groups: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for each in figures:
        groups.setdefault((each["kind"], each["sampled"]), []).append(each)
    for (kind, sampled), group in groups.items():
        ndcg, *_ = group
        holds = [100 * np.mean(np.array(each["reached"]) <= 1) for each in group[:4]]
        zeros = group[3]["zeros"]
        sets = f"{len(ndcg['reached'])}" + (f" ({zeros} without a hit at rank 1)" if zeros else "")
        verdicts = "-"
        if ndcg["called"]:
            right = 100 * ndcg["right"] / ndcg["called"]
            verdicts = f"{100 * ndcg['called'] / ndcg['pairs']:.0f} %, {right:.1f} %"
        rows.append(
            [
                kind,
                str(sampled),
                sets,
                ", ".join(f"{share:.0f}" for share in holds) + " %",
                f"{100 * ndcg['below']:.1f}, {100 * ndcg['above']:.1f} %",
                f"{ndcg['half-width']:.2f}",
                f"{ndcg['score']:.2f}",
                f"{100 * ndcg['error']:.0f} %",
                f"{100 * ndcg['pairs held']:.0f} %",
                verdicts,
            ]
        )
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def write(path: Path, past: Past, factors: Mapping[str, tuple[float, float]]) -> None:
    """Learn from all rank sets, and without each family, and save both files of priors."""
    # Both kinds of the protocol "all" are judged together.
    of_kinds = {**factors, **({PUSHED: factors["all"]} if "all" in factors else {})}

    def prior(family: str | None = None) -> Prior:
        sets = [each for each in past.sets if each.family != family]
        data_sets = {each.dataset for each in sets}
        note = f"learned from {len(sets)} rank sets on {len(data_sets)} data sets"
        if family is not None:
            note += f", without {family}"
        return past.learned(family=family).calibrated(
            {kind: (a, a) for kind, (a, _) in of_kinds.items()},
            powers={kind: b for kind, (_, b) in of_kinds.items()},
            note=note,
        )

    whole = prior()
    whole.save(path)
    family_of = {each.dataset: each.family for each in past.sets}
    partial = [each for each in load_corpus() if each.partial]
    family_of |= {
        each.dataset: each.family for each in partial if each.family in {*family_of.values()}
    }
    save_without(
        path.with_stem(f"{path.stem}_without"),
        whole,
        {family: prior(family) for family in sorted({*family_of.values()})},
        family_of=family_of,
        never=tuple({each.dataset for each in partial} - {*family_of}),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sampled", type=int, nargs="+", default=list(SAMPLED))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--users", type=int, help="so many of each rank set, at random")
    parser.add_argument("--unknown", action="store_true", help="own items are not counted")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--parts", type=int, nargs="+", default=list(range(PARTS)))
    parser.add_argument("--groups", type=int, nargs="+", default=list(range(len(MODELS))))
    parser.add_argument("--datasets", nargs="+", default=[], help="these alone, instead of all")
    parser.add_argument("--json", type=Path, help="where to write the figures of the tables")
    parser.add_argument("--table", type=Path, help="where to write them as a table in Markdown")
    parser.add_argument("--write", type=Path, help="learn from all with these factors, and save")
    chosen = parser.parse_args(arguments)
    for name, path, endings in (
        ("--json", chosen.json, (".json",)),
        ("--write", chosen.write, ARCHIVE_ENDINGS),
    ):
        if path is not None:
            check_ending(name, path, endings)
            check_writable(path)
    jobs = [(part, group) for part in chosen.parts for group in chosen.groups]
    lines: list[Judged] = []
    with ProcessPoolExecutor(chosen.workers) as pool:
        for found in pool.map(fold, *zip(*jobs, strict=True), [chosen] * len(jobs)):
            lines += found
            print(".", end="", file=sys.stderr, flush=True)
    factors, figures = print_tables(Judged.join(lines))
    if chosen.json is not None:
        text = json.dumps(figures).encode()
        write_atomically(chosen.json, lambda file: file.write(text))
    if chosen.table is not None:
        chosen.table.parent.mkdir(parents=True, exist_ok=True)
        chosen.table.write_text(as_table(figures), encoding="utf-8")
    if chosen.write is not None:
        write(chosen.write, Past.of(tuple(chosen.datasets)), factors)


if __name__ == "__main__":
    main()

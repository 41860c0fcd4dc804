"""How well the posterior holds on what it was not learned from: ``benchmarks/calibration.py``.

Families of data sets and kinds of models are left out at once: a rank set is judged by a prior that
was learned without any data set of its family and without any model of its kind. A sample is drawn
from its ranks, and the posterior is compared with the exact metrics of the same users. Both factors
are chosen by the other families alone, on these users' intervals and on differences of models, and
printed beside what all families give. Tables show the default intervals, for users like these.

Rank sets are those of the bank and ``further_ranks.npz`` (ten more kinds of models, on the same
data sets and on ten more). They have no users, so models are taken as independent. ``--write FILE``
learns from all.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields
from functools import cache, partial
from itertools import combinations
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.special import stdtrit

from unsample.evidence import RankCounts
from unsample.lab.bank import Bank, RankSet, load_bank
from unsample.law import draw_sampled_ranks
from unsample.metrics import parse_all
from unsample.prior import KINDS, Gaussian, History, Posterior, Prior
from unsample.prior._law import CAUTION, t_law

FURTHER = Path(__file__).with_name("further_ranks.npz")
METRICS = parse_all(
    ["NDCG@10", "Recall@10", "MRR@100", "Recall@1", "NDCG@5", "NDCG@20", "NDCG@50", "Recall@1000"]
)
#: What factors are chosen by.
SINGLE, PAIRED = (0, 1, 2, 3, 4, 5, 6), (0, 1, 2)
#: Kinds of models that are left out together, and into how many parts families are cut.
MODELS = (
    "pop popularity recent freq",
    "knn itemknn userknn transe rotate",
    "ease half-ease svd als",
    "rp3 walk gfcf lightgcn complex distmult",
    "bpr neumf tower vae multivae rescal",
    "markov decay gru sasrec mlp",
)
GROUP = {name: at for at, names in enumerate(MODELS) for name in names.split()}
PARTS = 12
#: Factors grow by (1 + this / families^2)^2.
FEW = 2.0


@dataclass(frozen=True, eq=False)
class Lines:
    """Errors of the logarithms of rank sets, or of differences of two of them (rows x metrics).

    ``common`` and ``own`` are the prior's parts of the squared scale with factors of 1, ``like``
    and ``these`` the users' parts, for users like these and for these users.
    """

    kind: np.ndarray
    family: np.ndarray
    model: np.ndarray
    pair: np.ndarray
    said: np.ndarray
    error: np.ndarray
    common: np.ndarray
    own: np.ndarray
    like: np.ndarray
    these: np.ndarray

    @classmethod
    def join(cls, parts: Sequence[Lines]) -> Lines:
        names = [each.name for each in fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def take(self, rows: np.ndarray) -> Lines:
        return Lines(*(getattr(self, each.name)[rows] for each in fields(self)))

    def law(self, factors: np.ndarray, users: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return scale and freedom under factors (rows x 2)."""
        prior = factors[:, :1] * self.common + factors[:, 1:] * self.own
        return t_law(prior, np.where(self.pair[:, None], CAUTION, 1.0) * users)


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
        found = [*load_bank(), *Bank.load(FURTHER)]
        sets = [e for e in found if not e.partial and (not datasets or e.dataset in datasets)]
        of_family: dict[tuple[str, str], set[str]] = {}
        for each in sets:
            of_family.setdefault((each.kind, each.family), set()).add(each.dataset)
        histories = tuple(
            History(e.grid, e.counts, e.dataset, e.kind, 1.0 / len(of_family[e.kind, e.family]))
            for e in sets
        )
        return cls(tuple(sets), histories, tuple(each.evidence() for each in histories))

    def learned(self, part: int | None, group: int | None) -> Prior:
        """Return the prior without a part of the families and a group of models."""
        kept = [
            at
            for at, each in enumerate(self.sets)
            if (part is None or self.part_of(each.family) != part)
            and (group is None or GROUP[each.model] != group)
        ]
        evidence = [self.evidence[at] for at in kept]
        return Prior.fit([self.histories[at] for at in kept], evidence=evidence)

    def part_of(self, family: str) -> int:
        names = sorted({each.family for each in self.sets})
        return np.random.default_rng(1).permutation(names).tolist().index(family) % PARTS

    def judged(self) -> Iterator[list[RankSet]]:
        """Yield the models of each data set, those of the bank and the others apart."""
        shipped = {id(each) for each in load_bank()}
        groups: dict[tuple[str, str, bool], list[RankSet]] = {}
        for each in self.sets:
            place = each.dataset, each.kind, id(each) in shipped
            groups.setdefault(place, []).append(each)
        yield from groups.values()


def sampled_counts(one: RankSet, sampled: int, seed: int) -> RankCounts:
    """Draw a sample for each target of a rank set, and count its ranks."""
    name = "/".join((one.dataset, one.model, one.kind, str(sampled)))
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    size = min(sampled, one.items - 1)
    drawn = draw_sampled_ranks(one.ranks(), items=one.items, sampled=size, rng=rng)
    return RankCounts.from_ranks(drawn, items=one.items, sampled=size)


def fold(part: int, group: int, chosen: argparse.Namespace) -> list[Lines]:
    """Judge the rank sets of some families by some kinds of models."""
    lines: list[Lines] = []
    past = Past.of(tuple(chosen.datasets))
    prior: Prior | None = None
    for sets in past.judged():
        own = [at for at, each in enumerate(sets) if GROUP[each.model] == group]
        if past.part_of(sets[0].family) != part or not own:
            continue
        prior = prior or past.learned(part, group)
        counts = {
            str(at): sampled_counts(one, chosen.sampled, chosen.seed) for at, one in enumerate(sets)
        }
        found = Posterior.of(counts, prior, kind=sets[0].kind)
        truth = [
            [float(metric.weights(one.ranks(), one.items).mean()) for metric in METRICS]
            for one in sets
        ]
        lines.append(compared(found, sets, np.array(truth), own))
    return lines


def compared(
    found: Posterior, sets: Sequence[RankSet], truth: np.ndarray, own: Sequence[int]
) -> Lines:
    """Return the errors of some of the models, and of pairs whose first is one of them."""
    like = [found.law(metric) for metric in METRICS]
    these = [found.law(metric, population=False) for metric in METRICS]
    eye = np.eye(len(sets))
    two = [(a, b) for a, b in combinations(range(len(sets)), 2) if a in own]
    scales = np.array([*eye[list(own)], *(eye[a] - eye[b] for a, b in two)])
    names = [each.model for each in sets]
    said = scales @ np.stack([law.mean for law in like], axis=1)
    # What is zero has no logarithm.
    logs = np.log(np.maximum(truth, 1e-300))
    exact = np.where(np.abs(scales) @ (truth <= 0) > 0, np.nan, scales @ logs)

    def squares(matrices: Sequence[np.ndarray]) -> np.ndarray:
        return np.stack([((scales @ each) * scales).sum(axis=1) for each in matrices], axis=1)

    rows = len(scales)
    return Lines(
        np.full(rows, sets[0].kind),
        np.full(rows, sets[0].family),
        np.array([*(names[a] for a in own), *(f"{names[a]} - {names[b]}" for a, b in two)]),
        np.arange(rows) >= len(own),
        said,
        said - exact,
        squares([law.common for law in like]),
        squares([np.diag(law.own) for law in like]),
        squares([law.users for law in like]),
        squares([law.users for law in these]),
    )


# -- factors --------------------------------------------------------------------------------------


def holds(lines: Lines, metrics: Sequence[int], factors: tuple[float, float]) -> float:
    """Return the share of these users' 95 % intervals that hold; families weigh the same."""
    scale, freedom = lines.law(np.tile(factors, (len(lines.kind), 1)), lines.these)
    inside = np.abs(lines.error) <= stdtrit(freedom, 0.975) * scale
    chosen = np.isfinite(lines.error)[:, metrics]
    shares = []
    for family in np.unique(lines.family):
        own = chosen & (lines.family == family)[:, None]
        shares += [float(inside[:, metrics][own].mean())] if own.any() else []
    return float(np.mean(shares))


def choose(lines: Lines) -> tuple[float, float]:
    """Return the factors (data sets, models) with which intervals of 95 % hold in 95 %.

    Of kinds with few families errors may be larger than those that were seen.
    """
    single, pairs = lines.take(~lines.pair), lines.take(lines.pair)
    common, own = 0.5, 0.5
    for _ in range(3):
        if len(pairs.kind):
            own = least(partial(_share, pairs, PAIRED, common, 1))
        common = least(partial(_share, single, SINGLE, own, 0))
    few = (1.0 + FEW / len(np.unique(lines.family)) ** 2) ** 2
    return few * common, few * own


def _share(lines: Lines, metrics: Sequence[int], other: float, place: int, tried: float) -> float:
    return holds(lines, metrics, (other, tried) if place else (tried, other))


def least(share: Callable[[float], float]) -> float:
    """Return the least factor with which a share is 95 %."""
    low, high = 0.02, 16.0
    for _ in range(14):
        middle = float(np.sqrt(low * high))
        low, high = (middle, high) if share(middle) < 0.95 else (low, middle)
    return float(np.sqrt(low * high))


def in_common(lines: Lines, factors: tuple[float, float]) -> str:
    """Return the share of the prior's variance that errors have in common over data sets.

    It is the mean product of two errors of a model (or of the difference of two models) on data
    sets of two families, in units of the law's scale and at most three of them, over what the
    prior's part would give. Models on fewer than five families are left out, others weigh the same;
    the standard error comes from leaving out each in turn.
    """
    prior = np.maximum(factors[0] * lines.common + factors[1] * lines.own, 0.0) * (5.0 / 3.0)
    total = prior + lines.like
    errors, parts = np.clip(lines.error / np.sqrt(total), -3.0, 3.0), np.sqrt(prior / total)
    found = []
    for model in np.unique(lines.model):
        own = lines.model == model
        family = lines.family[own]
        apart = family[:, None] != family[None, :]
        if len(np.unique(family)) < 5:
            continue
        sums = []
        for metric in PAIRED:
            kept = apart & np.isfinite(np.outer(errors[own, metric], errors[own, metric]))
            sides = (np.outer(each[own, metric], each[own, metric]) for each in (errors, parts))
            sums.append([side[kept].mean() for side in sides])
        found.append(np.mean(sums, axis=0))
    if not found:
        return "too few families"
    whole, each = np.sum(found, axis=0), np.array(found)
    others = (whole[0] - each[:, 0]) / (whole[1] - each[:, 1])
    error = np.sqrt((len(each) - 1) * np.var(others))
    return f"{whole[0] / whole[1]:.2f} +- {error:.2f} (of {len(each)})"


# -- tables ---------------------------------------------------------------------------------------


def figure(lines: Lines, factors: np.ndarray, metric: int) -> dict[str, object]:
    """Return how intervals of one metric hold, and how verdicts on two models do.

    ``reached`` is the size of each error as a share of the interval's reach, both of the logarithm.
    """
    known = np.isfinite(lines.error[:, metric])
    scale, freedom = (each[:, metric] for each in lines.law(factors, lines.like))
    error, said = lines.error[:, metric], lines.said[:, metric]
    single, pairs = known & ~lines.pair, known & lines.pair
    reach = stdtrit(freedom, 0.975) * scale
    called = pairs & (np.abs(said) > stdtrit(freedom, 0.95) * scale)
    return {
        "kind": str(lines.kind[0]),
        "metric": METRICS[metric].name,
        "error": float(np.median(np.abs(error[single]))),
        "half-width": float(np.median(np.sinh(reach[single]))),
        "reached": (np.abs(error) / reach)[single].round(4).tolist(),
        "pairs": int(pairs.sum()),
        "called": int(called.sum()),
        "right": int((said * (said - error) > 0)[called].sum()),
    }


def words(found: dict) -> str:
    """Return a figure as a row of the printed table."""
    called, pairs = found["called"], found["pairs"]
    verdicts = f"{called / pairs:.0%}, {found['right'] / called:.1%}" if called else "-"
    return (
        f"  {found['metric']:12} {len(found['reached']):5} sets  error {found['error']:.3f}"
        f"  half-width {found['half-width']:.2f}"
        f"  holds {np.mean(np.array(found['reached']) <= 1):.1%}  pairs called, right {verdicts}"
    )


def print_tables(lines: Lines) -> tuple[dict[str, tuple[float, float]], list[dict[str, object]]]:
    """Print, by kind, what factors of other families give; return those of all, and the figures."""
    result, figures = {}, []
    for kind in [each for each in KINDS if (lines.kind == each).any()]:
        some = lines.take(lines.kind == kind)
        names = np.unique(some.family)
        apart = [some.take(some.family != each) for each in names]
        nested = np.array([choose(each if len(each.kind) else some) for each in apart])
        result[kind] = choose(some)
        spans = [f"{each.min():.2f}..{each.max():.2f}" for each in nested.T]
        print(
            f"\n{kind}: factors {result[kind][0]:.2f} (data sets; without a family {spans[0]}), "
            f"{result[kind][1]:.2f} (models; {spans[1]})"
        )
        for what, lines_of in (("models", some.take(~some.pair)), ("pairs", some.take(some.pair))):
            print(f"  in common over data sets, {what}: {in_common(lines_of, result[kind])}")
        for metric in range(len(METRICS)):
            figures.append(figure(some, nested[np.searchsorted(names, some.family)], metric))
            print(words(figures[-1]))
    return result, figures


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sampled", type=int, default=99)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--parts", type=int, nargs="+", default=list(range(PARTS)))
    parser.add_argument("--groups", type=int, nargs="+", default=list(range(len(MODELS))))
    parser.add_argument("--datasets", nargs="+", default=[], help="these alone, instead of all")
    parser.add_argument("--json", type=Path, help="where to write the figures of the tables")
    parser.add_argument("--write", type=Path, help="learn from all with these factors, and save")
    chosen = parser.parse_args(arguments)
    jobs = [(part, group) for part in chosen.parts for group in chosen.groups]
    lines: list[Lines] = []
    with ProcessPoolExecutor(chosen.workers) as pool:
        for found in pool.map(fold, *zip(*jobs, strict=True), [chosen] * len(jobs)):
            lines += found
            print(".", end="", file=sys.stderr, flush=True)
    factors, figures = print_tables(Lines.join(lines))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(figures), encoding="utf-8")
    if chosen.write is not None:
        past = Past.of(tuple(chosen.datasets))
        data_sets = {each.dataset for each in past.sets}
        note = f"learned from {len(past.sets)} rank sets on {len(data_sets)} data sets"
        past.learned(None, None).calibrated(factors, note=note).save(chosen.write)


if __name__ == "__main__":
    main()

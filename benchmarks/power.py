"""Is the power that `plan(compare=...)` predicts the power that evaluations have?

``python benchmarks/power.py [draws] [design or data set ...]`` plans comparisons of two models
on three data sets from their full ranks, and evaluates real users, drawn with replacement, as
planned. Each power has its standard error.
``python benchmarks/power.py correlations`` prints how alike pairs of recommenders are, and
``python benchmarks/power.py rankings`` the power of full rankings alone, from very many draws.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from dataclasses import dataclass

import numpy as np

from unsample import metrics
from unsample.answers._pair import Pair
from unsample.answers._planner import Asked
from unsample.answers._power import Powers
from unsample.designs import Design, Findings
from unsample.errors import UnsampleWarning
from unsample.lab.datasets import ExactRanks, load_ranks

METRIC = metrics.parse("NDCG@10")
RECOMMENDERS = ("ease", "multivae", "neumf", "itemknn", "als")
DATASETS = ("ml-1m", "pinterest-20", "citeulike-a", "yelp")
#: Two models of each data set, how good a guide is, and what a design may spend on each target and
#: model, so that its power is neither none nor sure.
SETTINGS = {
    "ml-1m": ("ease", "itemknn", 19.0, {"fixed": 300, "guided": 50}),
    "citeulike-a": ("ease", "itemknn", 6.0, {"fixed": 2000, "guided": 500}),
    "pinterest-20": ("ease", "neumf", 19.0, {"fixed": 300, "guided": 60}),
}
#: Designs that are run on a part of the users: so many standard errors is the difference then.
DEVIATE = 2.5


def correlations() -> None:
    """Print the correlation of each pair of recommenders, and the median of all."""
    found = []
    for dataset in DATASETS:
        held = {name: load_ranks(dataset, name, candidates="unseen") for name in RECOMMENDERS}
        items = max(int(each.items.max()) for each in held.values())
        for a, b in itertools.combinations(held, 2):
            full = {name: held[name].ranks for name in (a, b)}
            found.append(Pair.of(full, items, METRIC, "unseen").correlation)
            print(f"{dataset:13s} {a:9s} {b:9s} {found[-1]:.2f}", flush=True)
    low, middle, high = np.quantile(found, [0.1, 0.5, 0.9])
    print(f"median {middle:.2f}, 80 % of pairs in {low:.2f} .. {high:.2f}")


@dataclass(frozen=True, eq=False, kw_only=True)
class RealPowers(Powers):
    """How often designs tell two models apart on real users, drawn with replacement."""

    held: tuple[ExactRanks, ...]

    def _found(
        self, label: str, design: Design, pair: Pair, users: int, part: int, number: int
    ) -> list[Findings]:
        rng = np.random.default_rng([7, number])
        chosen, shuffle = rng.integers(self.asked.users, size=users), rng.permutation(users)
        return [
            design.simulate(
                each.ranks[chosen],
                items=each.items[chosen],
                rng=rng,
                budget=None if design.exact else part,
                metrics=METRIC,
                shuffle=shuffle,
                odds=self.asked.odds or 1.0,
            )
            for each in self.held
        ]


def rankings(draws: int = 3000) -> None:
    """Print the power of full rankings of some users: of models drawn as planned, and real ones."""
    rng = np.random.default_rng(0)
    for dataset, (a, b, _, _) in SETTINGS.items():
        held = [load_ranks(dataset, name, candidates="unseen") for name in (a, b)]
        items, users = int(max(each.items.max() for each in held)), len(held[0].ranks)
        pair = Pair.of({a: held[0].ranks, b: held[1].ranks}, items, METRIC, "unseen")
        some = round((DEVIATE * pair.spread / pair.difference) ** 2)
        real = METRIC.weights(held[0].ranks, items) - METRIC.weights(held[1].ranks, items)
        won = np.zeros(2)
        for _ in range(draws):
            drawn = [METRIC.weights(each, items) for each in pair.draw(some, rng)]
            for place, apart in enumerate(
                (drawn[0] - drawn[1], real[rng.integers(users, size=some)])
            ):
                # What `compare` does with known ranks, without its other work.
                deviate = apart.mean() / (apart.std(ddof=1) / some**0.5)
                won[place] += np.sign(real.mean()) * deviate > 1.96
        planned, observed = won / draws
        print(
            f"{dataset:13s} {some:6,d} users  planned {planned:.3f}  real {observed:.3f}",
            flush=True,
        )


def main(draws: int, chosen: list[str]) -> None:
    """Print predicted and observed powers side by side."""
    print("data set      design         scores  predicted    observed", flush=True)
    datasets = [each for each in SETTINGS if each in chosen] or list(SETTINGS)
    designs = [each for each in chosen if each not in SETTINGS]
    for dataset in datasets:
        a, b, odds, each_target = SETTINGS[dataset]
        held = tuple(load_ranks(dataset, name, candidates="unseen") for name in (a, b))
        items, users = int(max(each.items.max() for each in held)), len(held[0].ranks)
        pair = Pair.of({a: held[0].ranks, b: held[1].ranks}, items, METRIC, "unseen")
        asked = Asked(items, METRIC, users, odds=odds)
        given = (asked, pair, 0.95, 0.8, "unseen", 99, draws, (3,))
        deviate = pair.difference / pair.spread * users**0.5
        some = min(round(users * (DEVIATE / deviate) ** 2), users)
        budgets = {"exact": 2 * items * some, "certified": 4 * 99 * some}
        budgets |= {label: 2 * size * users for label, size in each_target.items()}
        for label, budget in budgets.items():
            if designs and label not in designs:
                continue
            # The verdicts of both are those of `compare` (tests/test_power.py).
            found = [
                powers.trial(label, budget, pair, 0.0)
                for powers in (Powers(*given), RealPowers(*given, held=held))
            ]
            shown = " ".join(f"{each.power:5.2f} ±{each.error:.2f}" for each in found)
            print(f"{dataset:13s} {label:9s} {budget:11,d} {shown}", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", UnsampleWarning)
    if sys.argv[1:] == ["correlations"]:
        correlations()
    elif sys.argv[1:] == ["rankings"]:
        rankings()
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 100, sys.argv[2:])

"""What a history of one's own gives: `Prior.learn` against the prior of other data sets.

python benchmarks/history.py [--past 1 3 6]

Families of data sets are left out of the prior, with the shipped factors. Each model of a data set
is then estimated from 99 sampled items twice: by this prior alone, and after `Prior.learn` from the
full ranks of some other models of the same data set, of other kinds than the model itself. Printed
are the median half-width, as a share of the value, and how many 95 % intervals of users like these
hold the metric of these users; families weigh the same.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from calibration import GROUP, PROTOCOLS, Past, sampled_counts

from unsample.lab.corpus import RankSet
from unsample.metrics import parse_all
from unsample.posterior import Cloud, Prior, shipped

METRICS = parse_all(["NDCG@10", "Recall@10", "MRR@100", "Recall@1"])
SAMPLED = 99
#: Kind, family, number of past models, then by metric: half-width and whether the interval holds.
Row = tuple[str, str, int, np.ndarray, np.ndarray]


def rows(corpus: Past, part: int, past: Sequence[int]) -> Iterator[Row]:
    """Judge the models of some families, with no past models and with each number of them."""
    factors = {kind: each.factors for kind, each in shipped().learned.items()}
    powers = {kind: each.power for kind, each in shipped().learned.items()}
    base = corpus.learned(part, None).calibrated(factors, powers=powers)
    for sets in corpus.judged():
        if corpus.part_of(sets[0].family) != part:
            continue
        for at, one in enumerate(sets):
            others = [n for n, each in enumerate(sets) if GROUP[each.model] != GROUP[one.model]]
            others = np.random.default_rng([1, at]).permutation(others).tolist()
            if len(others) < max(past):
                continue
            for size in (0, *past):
                prior = base
                if size:
                    chosen = others[:size]
                    sizes = [sets[n].items for n in chosen]
                    known = [sets[n].ranks() for n in chosen]
                    prior = Prior.learn(known, items=sizes, protocol=one.kind, base=base)
                found = judge(one, prior)
                if found is not None:
                    yield one.kind, one.family, size, *found


def judge(one: RankSet, prior: Prior) -> tuple[np.ndarray, np.ndarray] | None:
    """Return half-widths and which intervals hold; None where nothing is hit."""
    counts = sampled_counts(one.ranks(), one, SAMPLED, 0)
    cloud = Cloud.of(counts, replace(prior, seen=one.seen), protocol=one.kind)
    truth = np.array([float(each.weights(one.ranks(), one.items).mean()) for each in METRICS])
    if not truth.all():
        return None
    found = [cloud.metric(each) for each in METRICS]
    low, high = np.array([each.interval() for each in found]).T
    values = np.array([each.value for each in found])
    return (high - low) / 2.0 / values, (low <= truth) & (truth <= high)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--past", type=int, nargs="+", default=[1, 3, 6])
    parser.add_argument("--datasets", nargs="+", default=[], help="these alone, instead of all")
    chosen = parser.parse_args(arguments)
    corpus = Past.of(tuple(chosen.datasets))
    parts = sorted({corpus.part_of(each.family) for each in corpus.sets})
    found = [each for part in parts for each in rows(corpus, part, chosen.past)]
    names = " / ".join(each.name for each in METRICS)
    print(f"| kind | past models | rank sets | half-width of NDCG@10 | {names} hold |")
    print("| --- | --- | --- | --- | --- |")
    for kind in PROTOCOLS:
        for size in (0, *chosen.past):
            some = [each for each in found if each[0] == kind and each[2] == size]
            if not some:
                continue
            half = np.median([each[3][0] for each in some])
            families = np.array([each[1] for each in some])
            held = np.array([each[4] for each in some])
            share = np.mean([held[families == each].mean(axis=0) for each in set(families)], axis=0)
            holds = " / ".join(f"{100 * each:.1f}" for each in share)
            print(f"| {kind} | {size} | {len(some)} | {half:.2f} | {holds} % |")


if __name__ == "__main__":
    main()

"""Numbers of methods, posteriors, bounds and means, as they were: none may change without notice.

Slow references elsewhere say that the numbers are right. These say that they stay, to six digits,
for every constant and every step behind them. `UNSAMPLE_GOLDEN=write` writes them anew; then the
changelog says which changed, and why.
"""

import json
import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import unsample
from unsample.bounds import Bounds, DirectMean, MeanError
from unsample.counts import ItemCounts, ModelCounts, RankCounts, Targets
from unsample.estimators import REGISTRY, parse
from unsample.likelihood import Observed
from unsample.metrics import AP, AUC, MR, NDCG, Recall, parse_all
from unsample.posterior import Cloud, History, Prior, joint_draws, shipped
from unsample.questions.estimate.ask import estimate_counts
from unsample.sampling import SamplingModel
from unsample.uncertainty import holm

GOLDEN = Path(__file__).with_name("golden.json")
METRICS = parse_all(["Recall@1", "NDCG@5", "AP@20", "Recall@100", "MRR", "AUC"])
#: The mapping of cutoffs is left out: it knows one design, and recall alone.
METHODS = (
    *(name for name in REGISTRY if name != "recall_map"),
    "bv(gamma=0.01)",
    "bv(prior=mle)",
    "bv(prior=mes)",
    "mn(prior=mes)",
)
ITEMS = 1200


def _histogram(sampled, targets, spread, dip=0):
    """Return counts of sampled ranks whose global ranks are like those of a recommender."""
    place = (np.arange(targets) + 0.5) / targets
    ranks = np.clip(np.exp(spread * -np.log1p(-place)) + dip, 1, ITEMS)
    expected = (
        SamplingModel(ITEMS, sampled).pmf(np.arange(1, sampled + 2)[:, None], ranks).sum(axis=1)
    )
    return np.rint(expected + 0.3 * np.sin(np.arange(sampled + 1)))


def _one_design():
    return RankCounts.from_histogram(_histogram(40, 900, 1.6), SamplingModel(ITEMS, 40))


def _items_kept():
    return RankCounts.from_histogram(_histogram(40, 900, 1.4, dip=25), SamplingModel(ITEMS, 40))


def _several_designs():
    """Return ranks of two sample sizes and two catalogues, some of them known."""
    parts = [
        RankCounts.from_histogram(
            _histogram(sampled, targets, 1.3), SamplingModel(items, sampled, replacement=False)
        )
        for items, sampled, targets in ((ITEMS, 40, 500), (ITEMS, 15, 200), (900, 40, 120))
    ]
    known = RankCounts.from_ranks([1, 2, 2, 9, 40, 333, 600], items=600, sampled=599,
                                  replacement=False)  # fmt: skip
    return RankCounts.merge([known, *parts])


def _by_method(method, make, *, tilts=(1.0,)):
    """Return the values of a method for the counts, tilted in each of these ways."""
    counts = make()
    both = np.stack([counts.weight * np.linspace(tilt, 2.0 - tilt, len(counts)) for tilt in tilts])
    observed = Observed.prepare(counts, histograms=both, cutoffs=(1, 5, 20, 100))
    return np.asarray(parse(method).evaluate(observed, METRICS).values).tolist()


def _automatic(make, candidates):
    """Return the values of `auto`, whose numbers follow the prior, and all their limits."""
    result = estimate_counts(make(), metrics=METRICS, protocol=candidates)
    rows = [(entry.value, *entry.interval(), *entry.bounds()) for entry in result.entries]
    return np.transpose(rows).tolist()


# -- posterior, bounds and means ------------------------------------------------------------------

#: Two catalogues beside the small one of the cases above.
SAMPLED, USERS = 40, 300


def _ranks(spread, shift=0.0, size=USERS, items=ITEMS):
    """Return global and sampled ranks that look drawn, and are the same on every machine."""
    place = (np.arange(1, size + 1) * 0.618034 + shift) % 1.0
    full = np.clip(np.exp(spread * -np.log1p(-place)), 1, items).astype(np.int64)
    probability = (np.arange(1, size + 1) * 0.7548777 + shift) % 1.0
    drawn = stats.binom.ppf(probability, SAMPLED, (full - 1) / (items - 1))
    return full, 1 + drawn.astype(np.int64)


def _models():
    ranks = {name: _ranks(2.0 + 0.1 * at)[1] for at, name in enumerate("abcd")}
    design = {"items": ITEMS, "sampled": SAMPLED}
    return ModelCounts.of_targets({name: Targets(each, **design) for name, each in ranks.items()})


def _read_off(draws):
    """Return the median and two ends of some draws of a number."""
    return np.quantile(draws, [0.5, 0.025, 0.9]).tolist()


def _several_models():
    """Return what is read off the joint draws of models on the same users."""
    models, metrics = _models(), [NDCG @ 10, Recall @ 100]
    clouds = {name: Cloud.of(counts, shipped(), protocol="all") for name, counts in models.items()}
    found = []
    for caution in (1.0, 1.42):
        draws = joint_draws(clouds, metrics, between=models.between, caution=caution)
        for each in draws.values():
            found += [*_read_off(each[:, 0]), *_read_off(each[:, 0] - each[:, 1])]
            found += (each == each.max(axis=1, keepdims=True)).mean(axis=0).tolist()
    runs = unsample.compare(
        {"A": [_ranks(2.0)[1], _ranks(2.1)[1]], "B": [_ranks(2.2)[1], _ranks(2.3)[1]]},
        items=ITEMS,
        sampled=SAMPLED,
        protocol="all",
        metrics=["NDCG@10", "AUC"],
    )
    for pair in runs.differences:
        found += [pair.value, pair.low, pair.high, *pair.interval(0.5), pair.probability]
    for row in runs.standings:
        found += [row.value, row.low, row.high, row.probability]
    return found


def _several_targets():
    """Users with three targets each: metrics of users, and metrics of targets."""
    ranks, users = _ranks(2.0)[1], np.arange(USERS) // 3
    found = []
    for kind in (None, "graph"):
        result = unsample.estimate(ranks, items=ITEMS, sampled=SAMPLED, users=users, protocol=kind,
                                   metrics=["NDCG@10", "Recall@50", "AUC"])  # fmt: skip
        for entry in result.entries:
            found += [*entry.interval(), *entry.interval(population=False), *entry.bounds()]
    return found


def _shared_items():
    """All targets ranked against the same items, some of which beat more targets than others."""
    full, _ = _ranks(2.0)
    items = 1 + (np.arange(SAMPLED) * 29) % (ITEMS - 1)
    moved = full[:, None] + 20.0 * np.sin(np.arange(USERS)[:, None] * np.arange(1, SAMPLED + 1))
    beats = items < moved
    counts = RankCounts.from_ranks(
        beats.sum(axis=1) + 1, items=ITEMS, sampled=SAMPLED, replacement=False
    )
    counts = replace(counts, shared=ItemCounts.from_outcomes(beats, items=items))
    cloud = Cloud.of(counts, shipped(), protocol="unseen")
    bounds, direct = Bounds.of(counts, [100]), DirectMean.of(AUC(), counts)
    found = [*cloud.metric("Recall@100").interval(), cloud.fitted.discrepancy]
    found += [*bounds.of_metric(Recall @ 100), *bounds.of_metric(AUC())]
    return [*found, direct.value, direct.error(), direct.error(population=False)]


def _sizes():
    """Catalogues of three sizes share coefficients; each has its own bounds."""
    parts = [
        RankCounts.from_ranks(_ranks(spread, items=items)[1], items=items, sampled=SAMPLED)
        for items, spread in ((ITEMS, 1.5), (10 * ITEMS, 2.5), (100 * ITEMS, 3.5))
    ]
    counts = RankCounts.merge(parts)
    cloud = Cloud.of(counts, shipped())
    bounds = Bounds.of(counts, [10])
    found = [
        *cloud.metric("NDCG@10").interval(),
        *cloud.metric("NDCG@10", population=False).interval(),
        *bounds.of_metric(NDCG @ 10),
        *bounds.of_metric(NDCG @ 10, 0.99),
    ]
    direct = DirectMean.of(MR(), counts)
    return [*found, direct.value, direct.error(), *direct.bounds(0.9)]


def _printed():
    numbers = {"HR@1": 0.21, "HR@10": 0.714, "NDCG@10": 0.4521, "MRR": 0.38}
    result = unsample.published(numbers, items=ITEMS, sampled=SAMPLED, users=2000,
                                metrics=["NDCG@10", "Recall@50"])  # fmt: skip
    return [end for entry in result.entries for end in (*entry.interval(), *entry.bounds())]


def _learned():
    """A prior from few evaluations of two kinds, and one that knows three models of a data set."""
    full = [_ranks(1.2 + 0.2 * at, shift=0.1 * at, size=2000)[0] for at in range(6)]
    histories = [
        History.of_ranks(ranks, ITEMS, dataset=f"set {at // 2}", kind=("unseen", "all")[at % 2])
        for at, ranks in enumerate(full)
    ]
    own, prior = Prior.learn(full[:3], items=ITEMS), Prior.fit(histories)
    learned = [each for known in (prior, own) for each in known.learned.values()]
    found = [end for each in learned for end in (each.between.trace(), each.within.trace())]
    counts = _models()["a"]
    for known in (prior, own):
        found += Cloud.of(counts, known, protocol="unseen").metric("NDCG@10").interval()
    return found


def _means():
    """Errors of plain means: few users, rare hits, one value for nearly all."""
    full, _ = _ranks(2.0)
    found = []
    for values, metric in ((full <= 3, Recall @ 3), (1.0 / full, AP()), (full * 1.0, MR())):
        for size in (4, 40, USERS):
            error = MeanError.of(values[:size] * 1.0, np.ones(size), metric)
            found += [error.population, error.df, *error.interval(values[:size].mean(), 0.9)]
    rare = np.where(np.arange(USERS) < 4, 1.0 / full, 1.0)
    error = MeanError.of(rare, np.ones(USERS), AP())
    return [*found, *error.interval(rare.mean(), 0.95), *holm([0.01, 0.04, 0.02])]


#: Name -> what gives the numbers.
EVERY = {
    "one auto": partial(_automatic, _one_design, "unseen"),
    "kept auto": partial(_automatic, _items_kept, "all"),
    "several auto": partial(_automatic, _several_designs, "unseen"),
    "several models": _several_models,
    "several targets": _several_targets,
    "shared items": _shared_items,
    "sizes": _sizes,
    "printed": _printed,
    "learned": _learned,
    "means": _means,
}
for _method in METHODS:
    EVERY |= {
        f"one {_method}": partial(_by_method, _method, _one_design),
        f"kept {_method}": partial(_by_method, _method, _items_kept),
        f"several {_method}": partial(_by_method, _method, _several_designs),
        f"batch {_method}": partial(_by_method, _method, _one_design, tilts=(1.0, 1.2)),
    }


def _same(found, expected):
    return np.shape(found) == np.shape(expected) and np.allclose(
        found, np.array(expected), rtol=2e-6, atol=1e-9
    )


@pytest.fixture(scope="module")
def golden():
    found = json.loads(GOLDEN.read_text(encoding="utf-8"))
    if os.environ.get("UNSAMPLE_GOLDEN") == "write":
        numbers = {name: make() for name, make in EVERY.items()}
        # What is the same to six digits stays the same to the last.
        found = {
            name: found[name] if _same(row, found.get(name)) else row
            for name, row in numbers.items()
        }
        text = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in found.items())
        GOLDEN.write_text(f"{{\n{text}\n}}\n", encoding="utf-8")
    return found


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.filterwarnings("ignore::unsample.errors.UnsampleWarning")
def test_numbers_stay_as_they_were(golden, name):
    assert _same(EVERY[name](), golden[name])


def test_no_number_is_there_for_nothing(golden):
    assert set(golden) == set(EVERY)

"""The joint distribution of the models of a comparison: all that it says is read from it.

Models with sampled ranks have joint draws. Models whose users' values are known have the joint t
distribution of their means, and draws of it where they meet sampled ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations

import numpy as np

from unsample._checks import FloatArray, check_level
from unsample.metrics import Metric
from unsample.posterior import CAUTION, Cloud, DataSet, FixedNumbers, joint_draws, stream_of
from unsample.questions.compare.mean_distribution import MeanDistribution
from unsample.questions.compare.models import Models
from unsample.questions.compare.repeated import spread_of, with_spread
from unsample.questions.compare.runs import Runs
from unsample.questions.estimate.result import MEAN, PRIOR, Estimate, Estimates
from unsample.uncertainty import BetweenBounds, FromDraws, Uncertain

#: Numbers of the spread of runs, and of means, beside those of the posterior.
_RUNS, _MEANS = 3, 4


@dataclass(frozen=True, eq=False)
class ModelDraws:
    """What one metric of several models may be: a number for each draw and model.

    ``draws`` are those of comparisons, in which users count more; ``plain`` are those of the
    models' own intervals, kept where these are not read from each model's own cloud.
    """

    names: tuple[str, ...]
    values: FloatArray
    draws: FloatArray = field(repr=False)
    plain: FloatArray = field(repr=False)
    #: The largest possible value.
    maximum: float = 1.0

    def own(self, name: str) -> FromDraws:
        """Return what a model's metric may be."""
        at = self.names.index(name)
        return _around(self.values[at], self.plain[:, at], minimum=0.0, maximum=self.maximum)

    def difference(self, a: str, b: str) -> FromDraws:
        """Return the first model's metric less the second's; the value is that of the values."""
        at, other = self.names.index(a), self.names.index(b)
        return _around(
            self.values[at] - self.values[other],
            self.draws[:, at] - self.draws[:, other],
            minimum=-self.maximum,
            maximum=self.maximum,
        )

    def averaged(self, runs: Runs, *, data_set: DataSet) -> ModelDraws:
        """Return models, given which of the names are the runs of each."""
        columns = [[self.names.index(name) for name in held] for held in runs.values()]
        numbers = FixedNumbers(draws=len(self.draws))
        draws: list[FloatArray] = []
        plain: list[FloatArray] = []
        for name, at in zip(runs, columns, strict=True):
            spread = spread_of(self.values[at], self.plain[:, at])
            stream = (_RUNS + stream_of(name)) ^ (data_set.number << 40)
            normals = numbers.normals(1, stream=stream)[:, 0]
            for found, matrix, caution in ((draws, self.draws, True), (plain, self.plain, False)):
                mean = matrix[:, at].mean(axis=1)
                found.append(with_spread(mean, spread, normals, caution=caution))
        values = np.array([self.values[at].mean() for at in columns])
        matrices = np.stack(draws, axis=1), np.stack(plain, axis=1)
        return ModelDraws(tuple(runs), values, *matrices, maximum=self.maximum)


#: The distribution of the models that have one, on one metric.
Joint = ModelDraws | MeanDistribution | None


def _around(value: float, draws: FloatArray, *, minimum: float, maximum: float) -> FromDraws:
    """Return draws as an uncertain number with the value that is printed."""
    found = FromDraws.of(draws, minimum=minimum, maximum=maximum)
    return FromDraws(float(value), found.ordered, minimum, maximum)


def probabilities_of_best(joint: ModelDraws | MeanDistribution) -> dict[str, float]:
    """Return each model's probability of being the best."""
    if isinstance(joint, ModelDraws):
        return best_of(joint.names, joint.draws, joint.difference)
    draws = joint.draws(FixedNumbers(), stream=_MEANS, caution=True)
    return best_of(joint.names, draws, joint.difference)


def best_of(
    names: Sequence[str], draws: FloatArray, difference: Callable[[str, str], Uncertain]
) -> dict[str, float]:
    """Return each model's probability of being the best: the share of draws in which it is.

    It is never more than the model's probability of beating one other.
    """
    top = draws == draws.max(axis=1, keepdims=True)
    share = (top / top.sum(axis=1, keepdims=True)).mean(axis=0).tolist()
    pairwise = {(a, b): difference(a, b).probability_above(0.0) for a, b in combinations(names, 2)}
    pairwise |= {(b, a): 1.0 - each for (a, b), each in pairwise.items()}
    if len(names) == 2:
        # No draws are needed for one difference.
        share = [pairwise[names[0], names[1]], pairwise[names[1], names[0]]]
    return {
        a: min([often, *(pairwise[a, b] for b in names if b != a)])
        for a, often in zip(names, share, strict=True)
    }


def distributions_of(
    metrics: Sequence[Metric],
    models: Models,
    estimates: Mapping[str, Estimates],
    runs: Runs,
    *,
    data_set: DataSet | None = None,
) -> dict[str, Joint]:
    """Return, for each metric, the distribution of all models that have one."""
    where = DataSet() if data_set is None else data_set
    several = {name: names for name, names in runs.items() if len(names) > 1}
    plain_too = bool(several) or data_set is not None
    model_of = {run: name for name, held in runs.items() for run in held}
    drawn = _sampled(
        metrics, models, estimates, model_of=model_of, data_set=where, plain_too=plain_too
    )
    found: dict[str, Joint] = {}
    for metric in metrics:
        entries = {name: each[metric] for name, each in estimates.items()}
        known = {name: each for name, each in entries.items() if each.source == MEAN}
        means = MeanDistribution.of(metric, models, known) if known else None
        sampled = drawn.get(metric.name)
        joint: Joint = means if sampled is None else sampled
        if means is not None and (sampled is not None or plain_too):
            joint = _together(means, sampled, where)
        if isinstance(joint, ModelDraws) and several:
            whole = {n: held for n, held in runs.items() if {*held} <= {*joint.names}}
            joint = joint.averaged(whole, data_set=where) if whole else None
        found[metric.name] = joint
    return found


def _sampled(
    metrics: Sequence[Metric],
    models: Models,
    estimates: Mapping[str, Estimates],
    *,
    model_of: Mapping[str, str],
    data_set: DataSet,
    plain_too: bool,
) -> dict[str, ModelDraws]:
    """Return the draws of the models with sampled ranks; metrics with the same clouds together."""
    together: dict[tuple[int, ...], tuple[dict[str, Cloud], list[Metric]]] = {}
    for metric in metrics:
        entries = {name: each[metric] for name, each in estimates.items()}
        clouds = {
            name: each.cloud
            for name, each in entries.items()
            if each.source == PRIOR and each.cloud is not None
        }
        if clouds:
            key = tuple(map(id, clouds.values()))
            together.setdefault(key, (clouds, []))[1].append(metric)
    found = {}
    for clouds, same in together.values():
        draw = partial(
            joint_draws,
            clouds,
            same,
            between=models.between,
            model_of=model_of,
            data_set=data_set,
        )
        draws = draw(caution=CAUTION)
        plain = draw(caution=1.0) if plain_too else draws
        for metric in same:
            values = np.array([estimates[name][metric].value for name in clouds])
            found[metric.name] = ModelDraws(
                names=tuple(clouds),
                values=values,
                draws=scaled_to(draws[metric.name], values),
                plain=scaled_to(plain[metric.name], values),
            )
    return found


def scaled_to(draws: FloatArray, values: FloatArray) -> FloatArray:
    """Return draws (draws x models) whose medians are the printed values.

    >>> scaled_to(np.array([[0.1], [0.2], [0.4]]), np.array([0.3])).round(2).tolist()
    [[0.15], [0.3], [0.6]]
    """
    medians = np.median(draws, axis=0)
    positive = medians > 0.0
    ratio = np.where(positive, values / np.where(positive, medians, 1.0), 1.0)
    return np.asarray(draws * ratio)


def _together(means: MeanDistribution, sampled: ModelDraws | None, where: DataSet) -> ModelDraws:
    """Return draws of known means beside those of sampled models, independent of them."""
    numbers = FixedNumbers()
    stream = _MEANS + (where.number << 40)
    draws = means.draws(numbers, stream=stream, caution=True)
    plain = means.draws(numbers, stream=stream, caution=False)
    if sampled is None:
        return ModelDraws(means.names, means.mean, draws, plain)
    return ModelDraws(
        names=(*sampled.names, *means.names),
        values=np.concatenate([sampled.values, means.mean]),
        draws=np.concatenate([sampled.draws, draws], axis=1),
        plain=np.concatenate([sampled.plain, plain], axis=1),
    )


def difference_of(
    distribution: Joint, entries: Mapping[str, Estimate], a: str, b: str
) -> Uncertain:
    """Return the distribution of a difference; without one, what the bounds say."""
    if distribution is not None and {a, b} <= {*distribution.names}:
        return distribution.difference(a, b)
    limits = partial(_bounds_of_difference, entries[a], entries[b])
    return BetweenBounds(entries[a].value - entries[b].value, limits)


def _bounds_of_difference(one: Estimate, other: Estimate, level: float) -> tuple[float, float]:
    """Return the least and the greatest difference; each model has half of the error."""
    both = 1.0 - (1.0 - check_level(level)) / 2.0
    low, high = one.interval(both)
    other_low, other_high = other.interval(both)
    return low - other_high, high - other_low

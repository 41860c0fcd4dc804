"""The joint distribution of the models of a comparison, from which all its numbers are read.

Models with sampled ranks have joint draws. Models whose values are known user by user have the
joint t distribution of their means. Where both kinds meet, draws are taken from that too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
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

#: The streams of fixed random numbers for the spread of runs and for means; the posterior has
#: others.
_RUNS = 3
_MEANS = 4
#: The numbers of different data sets differ from this bit on.
_DATA_SET_BITS = 40


@dataclass(frozen=True, eq=False)
class ModelDraws:
    """One metric of several models: a number for each draw and model.

    >>> draws = np.array([[0.30, 0.10], [0.40, 0.30], [0.50, 0.20]])
    >>> joint = ModelDraws(("A", "B"), values=np.array([0.4, 0.2]), draws=draws, plain=draws)
    >>> difference = joint.difference("A", "B")
    >>> round(difference.value, 2), difference.ordered.round(2).tolist()
    (0.2, [0.1, 0.2, 0.3])
    """

    names: tuple[str, ...]
    #: The estimates.
    values: FloatArray
    #: Draws for comparisons, in which the error of users counts more (draws x models).
    draws: FloatArray = field(repr=False)
    #: Draws for a model's own interval, used where that is not read from the model's own cloud.
    plain: FloatArray = field(repr=False)
    #: The largest possible value.
    maximum: float = 1.0

    def own(self, name: str) -> FromDraws:
        """Return the metric of one model."""
        model = self.names.index(name)
        return _around(self.values[model], self.plain[:, model], minimum=0.0, maximum=self.maximum)

    def difference(self, a: str, b: str) -> FromDraws:
        """Return the metric of model ``a`` minus the metric of model ``b``."""
        first, second = self.names.index(a), self.names.index(b)
        return _around(
            self.values[first] - self.values[second],
            self.draws[:, first] - self.draws[:, second],
            minimum=-self.maximum,
            maximum=self.maximum,
        )

    def averaged(self, runs: Runs, *, data_set: DataSet) -> ModelDraws:
        """Return the draws of models, if the names here are the names of their ``runs``.

        A model has the mean of its runs, and their spread widens its draws.
        """
        numbers = FixedNumbers(draws=len(self.draws))
        values: list[float] = []
        draws: list[FloatArray] = []
        plain: list[FloatArray] = []
        for model, names_of_runs in runs.items():
            columns = [self.names.index(run) for run in names_of_runs]
            spread = spread_of(self.values[columns], self.plain[:, columns])
            stream = (_RUNS + stream_of(model)) ^ (data_set.number << _DATA_SET_BITS)
            normals = numbers.normals(1, stream=stream)[:, 0]
            mean = self.draws[:, columns].mean(axis=1)
            plain_mean = self.plain[:, columns].mean(axis=1)
            values.append(float(self.values[columns].mean()))
            draws.append(with_spread(mean, spread, normals=normals, caution=True))
            plain.append(with_spread(plain_mean, spread, normals=normals, caution=False))
        return ModelDraws(
            names=tuple(runs),
            values=np.array(values),
            draws=np.stack(draws, axis=1),
            plain=np.stack(plain, axis=1),
            maximum=self.maximum,
        )


#: The distribution of one metric of the models that have one.
Joint = ModelDraws | MeanDistribution | None


def _around(value: float, draws: FloatArray, *, minimum: float, maximum: float) -> FromDraws:
    """Return draws as an uncertain number with the value that is printed."""
    number = FromDraws.of(draws, minimum=minimum, maximum=maximum)
    return replace(number, value=float(value))


def probabilities_of_best(joint: ModelDraws | MeanDistribution) -> dict[str, float]:
    """Return each model's probability of being the best."""
    if isinstance(joint, ModelDraws):
        draws = joint.draws
    else:
        draws = joint.draws(FixedNumbers(), stream=_MEANS, caution=True)
    return best_of(joint.names, draws, difference=joint.difference)


def best_of(
    names: Sequence[str], draws: FloatArray, *, difference: Callable[[str, str], Uncertain]
) -> dict[str, float]:
    """Return each model's probability of being the best: the share of draws in which it is.

    It is never more than the model's probability of beating any other, which ``difference`` tells.

    >>> draws = np.array([[0.3, 0.2, 0.1], [0.3, 0.2, 0.4], [0.5, 0.2, 0.1], [0.3, 0.3, 0.2]])
    >>> joint = ModelDraws(("A", "B", "C"), values=draws.mean(axis=0), draws=draws, plain=draws)
    >>> best = best_of(joint.names, draws, difference=joint.difference)
    >>> {name: round(share, 3) for name, share in best.items()}    # in the last draw, A and B tie
    {'A': 0.625, 'B': 0.125, 'C': 0.25}
    """
    beats = {(a, b): difference(a, b).probability_above(0.0) for a, b in combinations(names, 2)}
    beats |= {(b, a): 1.0 - probability for (a, b), probability in beats.items()}
    if len(names) == 2:
        # One difference tells, without draws.
        a, b = names
        return {a: beats[a, b], b: beats[b, a]}
    highest = draws == draws.max(axis=1, keepdims=True)
    # Models that tie in a draw share it.
    shares = (highest / highest.sum(axis=1, keepdims=True)).mean(axis=0).tolist()
    best = {}
    for name, share in zip(names, shares, strict=True):
        weakest_win = min((beats[name, other] for other in names if other != name), default=1.0)
        best[name] = min(share, weakest_win)
    return best


def distributions_of(
    metrics: Sequence[Metric],
    models: Models,
    *,
    estimates: Mapping[str, Estimates],
    runs: Runs,
    data_set: DataSet | None = None,
) -> dict[str, Joint]:
    """Return, for each metric, the distribution of all models that have one.

    Parameters
    ----------
    metrics
        The metrics to compare by.
    models
        The models, or runs of them, and the pairs of targets of the same user.
    estimates
        The estimates of each of these.
    runs
        Which of them are runs of which model.
    data_set
        Which of several data sets it is; None if there is one.
    """
    where = DataSet() if data_set is None else data_set
    have_runs = any(len(names) > 1 for names in runs.values())
    plain_too = have_runs or data_set is not None
    model_of = {run: model for model, names in runs.items() for run in names}
    sampled = _draws_of_sampled(
        metrics,
        models,
        estimates=estimates,
        model_of=model_of,
        data_set=where,
        plain_too=plain_too,
    )
    distributions: dict[str, Joint] = {}
    for metric in metrics:
        joint: Joint = sampled.get(metric.name)
        entries = {name: result[metric] for name, result in estimates.items()}
        known = {name: entry for name, entry in entries.items() if entry.source == MEAN}
        if known:
            means = MeanDistribution.of(metric, models, entries=known)
            needs_draws = metric.name in sampled or plain_too
            beside = sampled.get(metric.name)
            joint = _with_means(beside, means, data_set=where) if needs_draws else means
        if isinstance(joint, ModelDraws) and have_runs:
            whole = {name: names for name, names in runs.items() if {*names} <= {*joint.names}}
            joint = joint.averaged(whole, data_set=where) if whole else None
        distributions[metric.name] = joint
    return distributions


def _draws_of_sampled(
    metrics: Sequence[Metric],
    models: Models,
    *,
    estimates: Mapping[str, Estimates],
    model_of: Mapping[str, str],
    data_set: DataSet,
    plain_too: bool,
) -> dict[str, ModelDraws]:
    """Return, for each metric, the draws of the models with sampled ranks.

    Where no draws for own intervals are needed (``plain_too``), both kinds are the same.
    """
    joints = {}
    for clouds, same in _by_clouds(metrics, estimates):
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
            joints[metric.name] = ModelDraws(
                names=tuple(clouds),
                values=values,
                draws=scaled_to(draws[metric.name], values),
                plain=scaled_to(plain[metric.name], values),
            )
    return joints


def _by_clouds(
    metrics: Sequence[Metric], estimates: Mapping[str, Estimates]
) -> list[tuple[dict[str, Cloud], list[Metric]]]:
    """Return the clouds of the models, each time with the metrics that are read from them.

    Metrics that weigh targets in the same way have the same clouds, and are drawn together.
    """
    groups: dict[tuple[int, ...], tuple[dict[str, Cloud], list[Metric]]] = {}
    for metric in metrics:
        clouds: dict[str, Cloud] = {}
        for name, result in estimates.items():
            entry = result[metric]
            if entry.source == PRIOR and entry.cloud is not None:
                clouds[name] = entry.cloud
        if clouds:
            identities = tuple(id(cloud) for cloud in clouds.values())
            _, same = groups.setdefault(identities, (clouds, []))
            same.append(metric)
    return list(groups.values())


def scaled_to(draws: FloatArray, values: FloatArray) -> FloatArray:
    """Return draws (draws x models) whose medians are the printed values.

    >>> scaled_to(np.array([[0.1], [0.2], [0.4]]), np.array([0.3])).round(2).tolist()
    [[0.15], [0.3], [0.6]]
    """
    medians = np.median(draws, axis=0)
    positive = medians > 0.0
    ratio = np.where(positive, values / np.where(positive, medians, 1.0), 1.0)
    return np.asarray(draws * ratio)


def _with_means(
    sampled: ModelDraws | None, means: MeanDistribution, *, data_set: DataSet
) -> ModelDraws:
    """Return draws of known means beside independent draws of sampled models."""
    numbers = FixedNumbers()
    stream = _MEANS + (data_set.number << _DATA_SET_BITS)
    draws = means.draws(numbers, stream=stream, caution=True)
    plain = means.draws(numbers, stream=stream, caution=False)
    if sampled is None:
        return ModelDraws(means.names, means.mean, draws=draws, plain=plain)
    return ModelDraws(
        names=(*sampled.names, *means.names),
        values=np.concatenate([sampled.values, means.mean]),
        draws=np.concatenate([sampled.draws, draws], axis=1),
        plain=np.concatenate([sampled.plain, plain], axis=1),
    )


def difference_of(
    distribution: Joint, entries: Mapping[str, Estimate], *, a: str, b: str
) -> Uncertain:
    """Return the difference of two models from their distribution, or else from their bounds."""
    if distribution is not None and {a, b} <= {*distribution.names}:
        return distribution.difference(a, b)
    limits = partial(_bounds_of_difference, entries[a], entries[b])
    return BetweenBounds(entries[a].value - entries[b].value, limits)


def _bounds_of_difference(one: Estimate, other: Estimate, level: float) -> tuple[float, float]:
    """Return the smallest and the largest difference; each model may err with half of the error."""
    level_of_each = 1.0 - (1.0 - check_level(level)) / 2.0
    low, high = one.interval(level_of_each)
    other_low, other_high = other.interval(level_of_each)
    return low - other_high, high - other_low

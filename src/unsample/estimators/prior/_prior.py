"""`Prior`: what is known of the shape of P(R) before a sample is seen, and the posterior."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._archives import read_arrays
from unsample._checks import FloatArray, check_choice, check_level
from unsample._files import write_atomically
from unsample._threads import one_thread
from unsample.errors import FileError, InputError
from unsample.estimators._observed import Observed
from unsample.estimators.prior._learn import Gaussian, History, Learned, condition, learn
from unsample.estimators.prior._posterior import Moments, Prepared, together
from unsample.estimators.prior._shapes import SIZE
from unsample.metrics import Metric

_FORMAT = "unsample prior 1"
#: Kinds of evaluations, and how likely each is where only the candidates are known.
KINDS = ("unseen", "all", "repeats", "graph")
_LIKELY: dict[str, dict[str, float]] = {
    "unseen": {"unseen": 0.8, "graph": 0.2},
    "all": {"all": 0.5, "repeats": 0.4, "graph": 0.1},
}
#: Log evidence can make a kind less likely than the best one by this much, and no more: it depends
#: on the bottom of the catalogue more than on the top, and kinds differ at the top.
_MOST_EVIDENCE = 2.0
#: Where seen items are candidates, they cover the top in some data sets, and no sample shows it. In
#: this part of the data sets, metrics at K are lower by the factor (1 + _DEPTH / K)^-_FALL. The
#: intervals of the others can then be narrower. These three numbers were chosen on the bank and on
#: ten data sets outside it, after intervals had held in 90 % of the latter. So no data set is left
#: that was not used to choose them.
_COVERED, _FALL, _DEPTH = 0.1, 1.5, 30.0
NARROWED = {"all": 0.75}
#: Errors follow a t law with so many degrees of freedom: some data sets differ from all others.
_FREEDOM = 5.0
#: The least standard deviation of the logarithm in a posterior, if ranks are not known.
_FLOOR = 0.02
#: The largest variance of the logarithm of a metric between sets of users.
_MOST_VARIANCE = 4.0
#: The learned covariance of models counts like so many models of one's own history.
_TRUST = 20.0


@dataclass(frozen=True, eq=False)
class Posterior:
    """The posterior of the logarithm of each metric, a mixture over kinds of t laws.

    ``weight`` is rows x kinds, ``mean`` and ``scale`` are rows x kinds x metrics. ``mass`` (rows x
    bins of the evidence's grid) is where the targets of unknown rank are expected. ``varies`` (rows
    x metrics) is the relative variance of each metric between single targets.
    """

    kinds: tuple[str, ...]
    weight: FloatArray
    mean: FloatArray
    scale: FloatArray
    mass: FloatArray = field(repr=False)
    varies: FloatArray = field(repr=False)
    failures: int = 0
    freedom: float = _FREEDOM
    #: How far a small part of the data sets of a kind is below the rest (kinds x metrics).
    covered: FloatArray | None = None

    @cached_property
    def values(self) -> FloatArray:
        """Return the estimates (rows x metrics): e to the mean of the logarithm of each metric."""
        return np.asarray(np.exp(np.einsum("rk,rkm->rm", self.weight, self.mean)))

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the calibrated interval (each rows x metrics).

        It holds the metric for ``level`` of data sets like those that the prior was learned from.
        """
        tail = (1.0 - check_level(level)) / 2.0
        return np.exp(self.quantile(tail)), np.exp(self.quantile(1.0 - tail))

    def for_others(self, targets: float) -> Posterior:
        """Return the posterior for as many other users like these."""
        extra = _chance_of_users(self.varies, targets)
        return replace(self, scale=np.sqrt(self.scale**2 + extra[:, None]))

    def quantile(self, probability: float) -> FloatArray:
        """Return the quantile of the logarithm of each metric (rows x metrics)."""
        from scipy.special import stdtrit

        ends = self.mean + self.scale * stdtrit(self.freedom, probability)
        low, high = ends.min(axis=1), ends.max(axis=1)
        if self.covered is not None:
            low = low - self.covered.max(axis=0)
        for _ in range(60):
            middle = (low + high) / 2.0
            below = self.cdf(middle) < probability
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray((low + high) / 2.0)

    def cdf(self, logarithm: FloatArray) -> FloatArray:
        """Return the chance that the logarithm of each metric is at most this (rows x metrics)."""
        from scipy.special import stdtr

        below = stdtr(self.freedom, (logarithm[:, None, :] - self.mean) / self.scale)
        if self.covered is not None:
            lower = (logarithm[:, None, :] - self.mean + self.covered) / self.scale
            below = (1.0 - _COVERED) * below + _COVERED * stdtr(self.freedom, lower)
        return np.asarray(np.einsum("rk,rkm->rm", self.weight, below))


@dataclass(frozen=True, eq=False)
class JointPosterior:
    """The posterior of the logarithms of several models' metrics, on one data set.

    ``weight`` is that of each kind, ``mean`` kinds x models x metrics, ``covariance`` kinds x
    metrics x models x models. ``varies`` (models x metrics) is the relative variance of each metric
    between single targets.
    """

    kinds: tuple[str, ...]
    weight: FloatArray
    mean: FloatArray
    covariance: FloatArray
    spread: FloatArray
    varies: FloatArray
    freedom: float = _FREEDOM

    def for_others(self, targets: Sequence[float]) -> JointPosterior:
        """Return the posterior for other users like these.

        Chance is taken as independent between models, which is cautious for differences.
        """
        each = zip(self.varies, targets, strict=True)
        extra = np.stack([_chance_of_users(varies, number) for varies, number in each], axis=1)
        own = extra[:, :, None] * np.eye(len(targets)) / self.spread[:, None, None, None] ** 2
        return replace(self, covariance=self.covariance + own)

    def difference(self, first: int, second: int) -> tuple[FloatArray, FloatArray]:
        """Return mean and scale of the difference of logarithms (each kinds x metrics)."""
        joint = self.covariance
        variance = joint[:, :, first, first] + joint[:, :, second, second]
        variance = variance - 2.0 * joint[:, :, first, second]
        scale = self.spread[:, None] * np.sqrt(np.maximum(variance, _FLOOR**2))
        return self.mean[:, first] - self.mean[:, second], scale

    def chance(self, first: int, second: int) -> FloatArray:
        """Return, for each metric, the chance that the first model has the greater value."""
        from scipy.special import stdtr

        mean, scale = self.difference(first, second)
        return np.asarray(self.weight @ stdtr(self.freedom, mean / scale))


@dataclass(frozen=True, eq=False)
class Prior:
    """What other data sets teach about the shape of log P(R), for each kind of evaluation.

    ``spread`` and ``pair_spread`` are the factors by which errors on data sets that were left out
    exceed what the posterior says, for metrics and for differences of two models.
    """

    learned: Mapping[str, Learned] = field(repr=False)
    spread: Mapping[str, float]
    pair_spread: Mapping[str, float]
    note: str = ""

    # -- learning ---------------------------------------------------------------------------

    @classmethod
    def fit(
        cls,
        histories: Sequence[History],
        *,
        evidence: Sequence[Gaussian] | None = None,
    ) -> Prior:
        """Learn from many full evaluations; ``evidence`` is what each of them tells, if known.

        The result is not calibrated: errors are assumed to be as large as the posterior says.
        """
        if not histories:
            raise InputError("histories must hold at least one full evaluation, got none")
        says = [each.evidence() for each in histories] if evidence is None else evidence
        learned = learn(histories, says)
        ones = dict.fromkeys(learned, 1.0)
        return cls(learned, ones, ones)

    def calibrated(
        self, spread: Mapping[str, float], pair_spread: Mapping[str, float], *, note: str = ""
    ) -> Prior:
        """Return this prior with the spreads that were found on data sets left out."""
        return replace(self, spread=dict(spread), pair_spread=dict(pair_spread), note=note)

    @classmethod
    def learn(
        cls,
        ranks: Sequence[npt.ArrayLike],
        *,
        items: int | Sequence[int],
        kind: str = "unseen",
        base: Prior | None = None,
    ) -> Prior:
        """Learn from your own full evaluations: an array of full-catalogue ranks for each model.

        ``base`` is what other data sets teach; by default it is the shipped prior. What the history
        shows of this data set is used for its next models. For many data sets see `Prior.fit`.
        """
        if not len(ranks):
            raise InputError("ranks must hold an array of full ranks for each model, got none")
        start = shipped() if base is None else base
        check_choice("kind", kind, start.learned)
        sizes = [items] * len(ranks) if isinstance(items, int) else list(items)
        if len(sizes) != len(ranks) or not sizes:
            raise InputError(
                f"items must be one number or one for each array of ranks, got {len(sizes)} for "
                f"{len(ranks)}"
            )
        histories = [
            History.of_ranks(np.asarray(each), size, kind=kind)
            for each, size in zip(ranks, sizes, strict=True)
        ]
        own = condition(start.learned[kind], [each.evidence() for each in histories], _TRUST)
        note = f"{start.note}; and {len(histories)} own evaluations".removeprefix("; ")
        return cls({kind: own}, start.spread, start.pair_spread, note)

    # -- the posterior ----------------------------------------------------------------------

    @one_thread()
    def posterior(
        self,
        observed: Observed,
        metrics: Sequence[Metric],
        *,
        kind: str | None = None,
        targets: float | None = None,
    ) -> Posterior:
        """Return the posterior of the metrics, for each histogram of a batch.

        Without a ``kind``, all kinds that the candidates allow are mixed by their evidence.
        ``targets`` is the number of independent targets, where the weights do not give it.
        """
        kinds, prepared, parts = self._parts(observed, metrics, kind, targets)
        evidence = np.stack([part.log_evidence for part in parts], axis=1)
        weight = self._weights(observed, kinds, evidence)
        spread = np.array([self.spread[each] * NARROWED.get(each, 1.0) for each in kinds])
        variance = np.stack([part.variance for part in parts], axis=1)
        floor = _FLOOR**2 * (1.0 - observed.known_share)[:, None, None]
        mass = np.einsum("rk,rkb->rb", weight, np.stack([part.mass for part in parts], axis=1))
        return Posterior(
            kinds,
            weight,
            np.stack([part.mean for part in parts], axis=1),
            spread[:, None] * np.sqrt(variance + floor + 1e-18),
            prepared.refined(mass, observed.grid),
            np.einsum("rk,rkm->rm", weight, np.stack([part.varies for part in parts], axis=1)),
            sum(part.failures for part in parts),
            covered=_covered(kinds, metrics),
        )

    @one_thread()
    def joint(
        self,
        observed: Sequence[Observed],
        metrics: Sequence[Metric],
        *,
        kind: str | None = None,
        targets: Sequence[float] | None = None,
    ) -> JointPosterior:
        """Return the joint posterior of several models on one data set, from row 0 of each."""
        given = [None] * len(observed) if targets is None else list(targets)
        found = [
            self._parts(each, metrics, kind, number)
            for each, number in zip(observed, given, strict=True)
        ]
        kinds = found[0][0]
        evidence = np.sum([[part.log_evidence[0] for part in each[2]] for each in found], axis=0)
        weight = self._weights(observed[0], kinds, np.asarray(evidence)[None, :])[0]
        joint = [
            together([each[2][at] for each in found], self.learned[name])
            for at, name in enumerate(kinds)
        ]
        return JointPosterior(
            kinds,
            weight,
            np.stack([mean for mean, _ in joint]),
            np.stack([covariance for _, covariance in joint]),
            np.array([self.pair_spread[each] for each in kinds]),
            np.stack([weight @ np.stack([part.varies[0] for part in each[2]]) for each in found]),
        )

    def _parts(
        self,
        observed: Observed,
        metrics: Sequence[Metric],
        kind: str | None,
        targets: float | None,
    ) -> tuple[tuple[str, ...], Prepared, list[Moments]]:
        kinds = self._possible(observed.candidates, kind)
        number = observed.targets if targets is None else targets
        prepared = Prepared.of(observed, metrics, number)
        return kinds, prepared, [prepared.moments(self.learned[each]) for each in kinds]

    def _possible(self, candidates: str, kind: str | None) -> tuple[str, ...]:
        if kind is not None:
            check_choice("kind", kind, self.learned)
            return (kind,)
        known = tuple(each for each in _LIKELY[candidates] if each in self.learned)
        return known or tuple(self.learned)

    def _weights(
        self, observed: Observed, kinds: Sequence[str], evidence: FloatArray
    ) -> FloatArray:
        likely = _LIKELY[observed.candidates]
        before = np.log([likely.get(each, 0.05) for each in kinds])
        behind = evidence - evidence.max(axis=1, keepdims=True)
        exponent = before + np.maximum(behind, -_MOST_EVIDENCE)
        weight = np.exp(exponent - exponent.max(axis=1, keepdims=True))
        return np.asarray(weight / weight.sum(axis=1, keepdims=True))

    # -- saving -----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one ``.npz`` file, all or nothing."""
        about = {
            "format": _FORMAT,
            "kinds": list(self.learned),
            "spread": dict(self.spread),
            "pair_spread": dict(self.pair_spread),
            "note": self.note,
        }
        arrays: dict[str, Any] = {"about": np.frombuffer(json.dumps(about).encode(), np.uint8)}
        lower = np.tril_indices(SIZE)
        for kind, each in self.learned.items():
            arrays[f"{kind}.mean"] = each.mean
            arrays[f"{kind}.between"] = each.between[lower].astype(np.float32)
            arrays[f"{kind}.within"] = each.within[lower].astype(np.float32)
        write_atomically(Path(path), lambda file: np.savez_compressed(file, **arrays))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Prior:
        """Read what `save` wrote."""
        name = Path(path).name
        with Path(path).open("rb") as file:
            arrays = read_arrays(file, f"the prior {name}")
        try:
            about = json.loads(arrays["about"].tobytes())
            _check_format(about["format"])
            learned = {
                kind: Learned(
                    arrays[f"{kind}.mean"].astype(np.float64),
                    _symmetric(arrays[f"{kind}.between"]),
                    _symmetric(arrays[f"{kind}.within"]),
                )
                for kind in about["kinds"]
            }
            return cls(learned, about["spread"], about["pair_spread"], about["note"])
        except (KeyError, TypeError, ValueError) as problem:
            raise FileError(f"{name} must hold {_FORMAT}, got {problem}") from problem


def _chance_of_users(varies: FloatArray, targets: float) -> FloatArray:
    return np.asarray(np.minimum(varies / max(targets, 1.0), _MOST_VARIANCE))


def _covered(kinds: Sequence[str], metrics: Sequence[Metric]) -> FloatArray | None:
    """Return by how much the metrics are lower where training items cover the top."""
    if "all" not in kinds or not metrics:
        return None
    ks = np.array([math.inf if metric.k is None else metric.k for metric in metrics])
    fall = _FALL * np.log1p(_DEPTH / ks)
    return np.array([fall if each == "all" else np.zeros(len(metrics)) for each in kinds])


def _check_format(marker: object) -> None:
    if marker != _FORMAT:
        raise ValueError(f"{marker}")


def _symmetric(lower: npt.NDArray[Any]) -> FloatArray:
    matrix = np.zeros((SIZE, SIZE))
    matrix[np.tril_indices(SIZE)] = lower
    return np.asarray(matrix + np.tril(matrix, -1).T)


@cache
def shipped() -> Prior:
    """Return the prior that was learned from the bank of the laboratory."""
    return Prior.load(Path(str(files("unsample.estimators.prior") / "learned.npz")))

"""`Prior`: what is known of the shape of P(R) before a sample is seen, and its file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._archives import read_arrays
from unsample._checks import FloatArray, check_choice
from unsample._files import write_atomically
from unsample.errors import FileError, InputError
from unsample.prior._learn import Gaussian, History, Learned, condition, learn
from unsample.prior._shapes import SIZE

_FORMAT = "unsample prior 2"
#: Kinds of evaluations, and how likely each is where only the candidates are known, or not even
#: these. Knowledge graphs are expected to say what they are.
KINDS = ("unseen", "all", "repeats", "graph")
_LIKELY: dict[str | None, dict[str, float]] = {
    "unseen": {"unseen": 1.0},
    "all": {"all": 0.55, "repeats": 0.45},
    None: {"unseen": 0.5, "all": 0.3, "repeats": 0.2},
}
#: Log evidence can make a kind less likely than the best one by this much, and no more: it depends
#: on the bottom of the catalogue more than on the top, and kinds differ at the top.
_MOST_EVIDENCE = 2.0
#: The learned covariance of models counts like so many models of one's own history.
_TRUST = 20.0
#: One's next model differs from one's past ones more than those of the bank from each other: this
#: factor makes 95 % of the intervals hold (`benchmarks/history.py`; 1.45 to 1.7 without a family).
_NEXT = 1.7


@dataclass(frozen=True, eq=False)
class Prior:
    """What other data sets tell about the shape of log P(R), for each kind of evaluation.

    Real curves are not exactly sums of shapes: what they leave out is as large as the
    chance of ``misfit`` targets, and ``unlike`` is the deviance of a target that only data unlike
    those of the bank exceed.
    """

    learned: Mapping[str, Learned] = field(repr=False)
    misfit: float = 5e4
    unlike: float = 3.3e-3
    note: str = ""

    # -- learning ---------------------------------------------------------------------------

    @classmethod
    def fit(
        cls, histories: Sequence[History], *, evidence: Sequence[Gaussian] | None = None
    ) -> Prior:
        """Learn from many full evaluations; ``evidence`` is what each of them tells, if known.

        The result is not calibrated: its factors are 1.
        """
        if not histories:
            raise InputError("histories must hold at least one full evaluation, got none")
        says = [each.evidence() for each in histories] if evidence is None else evidence
        return cls(learn(histories, says))

    def calibrated(self, factors: Mapping[str, tuple[float, float]], *, note: str = "") -> Prior:
        """Return this prior with factors on its covariances of (data sets, models), by kind."""
        learned = {kind: replace(one, factors=factors[kind]) for kind, one in self.learned.items()}
        return replace(self, learned=learned, note=note)

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

        ``base`` is what other data sets tell; by default it is the shipped prior. What the history
        shows of this data set is used for its next models. For many data sets see `Prior.fit`.
        """
        if not len(ranks):
            raise InputError("ranks must hold an array of full ranks for each model, got none")
        start = shipped() if base is None else base
        check_choice("kind", kind, start.learned)
        sizes = [items] * len(ranks) if isinstance(items, int) else list(items)
        if len(sizes) != len(ranks):
            raise InputError(
                f"items must be one number or one for each array of ranks, got {len(sizes)} for "
                f"{len(ranks)}"
            )
        histories = [
            History.of_ranks(np.asarray(each), size, kind=kind)
            for each, size in zip(ranks, sizes, strict=True)
        ]
        says = [each.evidence() for each in histories]
        own = condition(start.learned[kind], says, _TRUST).widened(_NEXT)
        note = f"{start.note}; and {len(histories)} own evaluations".removeprefix("; ")
        return replace(start, learned={kind: own}, note=note)

    # -- kinds ------------------------------------------------------------------------------

    def possible(self, candidates: str | None, kind: str | None) -> tuple[str, ...]:
        """Return the kinds that may be: the one that is given, or those of the candidates."""
        if kind is not None:
            check_choice("kind", kind, self.learned)
            return (kind,)
        known = tuple(each for each in _LIKELY[candidates] if each in self.learned)
        return known or tuple(self.learned)

    def weights(
        self, candidates: str | None, kinds: Sequence[str], evidence: FloatArray
    ) -> FloatArray:
        """Return the weight of each kind (rows x kinds), given the log evidence of each."""
        likely = _LIKELY[candidates]
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
            "factors": {kind: each.factors for kind, each in self.learned.items()},
            "misfit": self.misfit,
            "unlike": self.unlike,
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
                    (float(common), float(own)),
                )
                for kind, (common, own) in about["factors"].items()
            }
            misfit, unlike = float(about["misfit"]), float(about["unlike"])
            return cls(learned, misfit, unlike, str(about["note"]))
        except (KeyError, TypeError, ValueError) as problem:
            raise FileError(f"{name} must hold {_FORMAT}, got {problem}") from problem


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
    return Prior.load(Path(str(files("unsample.prior") / "learned.npz")))

"""`Prior`: the distribution of the shape of P(R) before a sample is seen, and its file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._archives import read_arrays, save_archive, write_arrays
from unsample._checks import FloatArray, check_choice
from unsample._fields import Field, read_fields, read_number, read_object, refuse_unless
from unsample._rules import ONCE
from unsample.errors import FileError, InputError
from unsample.posterior._basis import SIZE
from unsample.posterior._learning import Gaussian, History, Learned, condition, learn

_FORMAT = "unsample prior 3"
#: The arrays of each kind in a file: coefficients of log P(R) stay in the tens.
_LOWER = (SIZE * (SIZE + 1) // 2,)
_OF_KIND = {
    "mean": Field("real", (SIZE,), -1e3, 1e3),
    "between": Field("real", _LOWER, -1e6, 1e6),
    "within": Field("real", _LOWER, -1e6, 1e6),
}
_FACTOR = {"low": 1e-6, "high": 1e3}
#: Covariances are kept with seven digits, so the smallest variance may fall below 0 by this share.
_ROUNDED = 1e-6
#: Protocols of evaluations, each with a kind of curves that is learned by itself.
PROTOCOLS = ("unseen", "all", "repeats", "graph")
#: How likely each kind is, by the protocol. Among all items people may also choose again what they
#: chose before. Knowledge graphs are expected to say what they are.
_LIKELY: dict[str | None, dict[str, float]] = {
    "unseen": {"unseen": 1.0},
    "all": {"all": 0.55, "repeats": 0.45},
    "repeats": {"repeats": 1.0},
    "graph": {"graph": 1.0},
    None: {"unseen": 0.5, "all": 0.3, "repeats": 0.2},
}
#: Protocols that must be known to the prior: no other kind stands for them.
_EXACT = ("repeats", "graph")
#: Log evidence can make a kind less likely than the best one by this much, and no more: it depends
#: on the bottom of the catalogue more than on the top, and kinds differ at the top.
_MAX_EVIDENCE = 2.0
#: The number of a user's own past models that the learned covariance of models counts like.
_TRUST = 20.0
#: A user's next model differs more from their past models than the training models differ among
#: themselves: with this factor 95 % of the intervals hold (`benchmarks/history.py`; leaving out
#: families gave 1.45 to 1.7).
_NEXT = 1.7


@dataclass(frozen=True, eq=False)
class Prior:
    """The shape of log P(R) as learned from other data sets, for each kind of evaluation."""

    learned: Mapping[str, Learned] = field(repr=False)
    note: str = ""

    # -- learning ---------------------------------------------------------------------------

    @classmethod
    def fit(
        cls, histories: Sequence[History], *, evidence: Sequence[Gaussian] | None = None
    ) -> Prior:
        """Learn from many full evaluations; ``evidence`` is their `History.evidence`, if known.

        The result is not calibrated: its factors are 1.
        """
        if not histories:
            raise InputError("histories must hold at least one full evaluation, got none")
        found = [each.evidence() for each in histories] if evidence is None else evidence
        return cls(learn(histories, found))

    def calibrated(
        self,
        factors: Mapping[str, tuple[float, float]],
        *,
        powers: Mapping[str, float] | None = None,
        note: str = "",
    ) -> Prior:
        """Return this prior with factors on its covariances of (data sets, models), by kind.

        They are those at 99 sampled items, and change with a power of 99/n.
        """
        powers = powers or {}
        learned = {
            kind: replace(one, factors=factors[kind], power=powers.get(kind, 0.0))
            for kind, one in self.learned.items()
        }
        return replace(self, learned=learned, note=note)

    @classmethod
    def learn(
        cls,
        ranks: Sequence[npt.ArrayLike],
        *,
        items: int | Sequence[int],
        protocol: str = "unseen",
        base: Prior | None = None,
    ) -> Prior:
        """Learn from your own full evaluations, for the next models on the same data set.

        For many data sets see `Prior.fit`.

        Parameters
        ----------
        ranks
            An array of full-catalogue ranks for each model.
        items
            The number of candidates: one number, or one for each model.
        protocol
            How targets were ranked, as in `unsample.estimate`.
        base
            The prior learned from other data sets; by default it is the shipped one.

        Returns
        -------
        Prior
            For the argument ``prior``; it knows this protocol alone.

        Raises
        ------
        InputError
            If there are no ranks, no such protocol, or not as many numbers of items as models.
        """
        if not len(ranks):
            raise InputError("ranks must hold an array of full ranks for each model, got none")
        start = shipped() if base is None else base
        check_choice("protocol", protocol, start.learned)
        sizes = [items] * len(ranks) if isinstance(items, int) else list(items)
        if len(sizes) != len(ranks):
            raise InputError(
                f"items must be one number or one for each array of ranks, got {len(sizes)} for "
                f"{len(ranks)}"
            )
        histories = [
            History.of_ranks(np.asarray(each), size, kind=protocol)
            for each, size in zip(ranks, sizes, strict=True)
        ]
        says = [each.evidence() for each in histories]
        own = condition(start.learned[protocol], says, _TRUST).widened(_NEXT)
        note = f"{start.note}; and {len(histories)} own evaluations".removeprefix("; ")
        return replace(start, learned={protocol: own}, note=note)

    def only(self, kind: str) -> Prior:
        """Return the prior of one kind alone, which is then the only one that may be."""
        check_choice("kind", kind, self.learned)
        return replace(self, learned={kind: self.learned[kind]})

    # -- kinds ------------------------------------------------------------------------------

    def possible(self, protocol: str | None) -> tuple[str, ...]:
        """Return the kinds that may be under a protocol, or, without one, all likely ones."""
        known = [each for each in _LIKELY[protocol] if each in self.learned]
        if not known and protocol in _EXACT:
            check_choice("protocol", protocol, self.learned)
        return tuple(known) or tuple(self.learned)

    def weights_of_components(
        self,
        protocol: str | None,
        kinds: Sequence[str],
        log_evidence: Sequence[Sequence[float]],
    ) -> list[FloatArray]:
        """Return the weight of each component of each kind, given the log evidence of all.

        Within a kind weights follow the evidence; between kinds it has a limit.
        """
        of_components = [np.array(each) for each in log_evidence]
        of_kinds = np.array([np.logaddexp.reduce(each) for each in of_components])
        likely = _LIKELY[protocol]
        before = np.log([likely.get(each, 0.05) for each in kinds])
        exponent = before + np.maximum(of_kinds - of_kinds.max(), -_MAX_EVIDENCE)
        weight = np.exp(exponent - exponent.max())
        weight /= weight.sum()
        return [
            share * np.exp(each - whole)
            for share, each, whole in zip(weight, of_components, of_kinds, strict=True)
        ]

    # -- saving -----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one ``.npz`` file, all or nothing."""
        about = {
            "format": _FORMAT,
            "factors": {kind: (*each.factors, each.power) for kind, each in self.learned.items()},
            "note": self.note,
        }
        arrays: dict[str, Any] = {"about": np.frombuffer(json.dumps(about).encode(), np.uint8)}
        lower = np.tril_indices(SIZE)
        for kind, each in self.learned.items():
            arrays[f"{kind}.mean"] = each.mean
            arrays[f"{kind}.between"] = each.between[lower].astype(np.float32)
            arrays[f"{kind}.within"] = each.within[lower].astype(np.float32)
        save_archive(Path(path), partial(write_arrays, arrays=arrays), read=Prior.load)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Prior:
        """Read what `save` wrote."""
        name = f"the prior {Path(path).name}"
        try:
            with Path(path).open("rb") as file:
                arrays = read_arrays(file, name)
        except InputError:
            raise
        except (OSError, ValueError) as problem:  # a zero byte is in no name of a file
            said = getattr(problem, "strerror", None) or problem
            raise FileError(
                f"cannot read the prior {str(path)!r}: {said}; give a file "
                "that Prior.save wrote, or pass prior='shipped' or prior='none'"
            ) from problem
        about = read_object(arrays, "about", name)
        if about.get("format") != _FORMAT:
            got = str(about.get("format"))[:80]
            raise FileError(f"{name} must hold {_FORMAT}, got {got}; learn it anew")
        factors = about.get("factors")
        named = isinstance(factors, dict) and bool(factors)
        refuse_unless(named, f"'factors' of {name} must name the kinds of evaluations")
        of_kinds = {"about": Field(kind="whole", shape=("bytes",))}
        for kind in dict(factors or {}):
            of_kinds |= {f"{kind}.{part}": field for part, field in _OF_KIND.items()}
        found = read_fields(arrays, of_kinds, name)
        learned = {
            kind: Learned(
                found[f"{kind}.mean"],
                _covariance(found[f"{kind}.between"], f"'{kind}.between' of {name}"),
                _covariance(found[f"{kind}.within"], f"'{kind}.within' of {name}"),
                **_factors(each, f"the factors of {kind!r} of {name}"),
            )
            for kind, each in dict(factors or {}).items()
        }
        note = about.get("note")
        refuse_unless(isinstance(note, str), f"'note' of {name} must be text")
        return cls(learned, str(note))


def _factors(values: object, where: str) -> dict[str, Any]:
    """Return the factors of a kind, of data sets and of models, and their power of 99/n."""
    good = isinstance(values, list) and len(values) == 3
    refuse_unless(good, f"{where} must be three numbers, got {str(values)[:80]}")
    named = dict(zip(("common", "own", "power"), list(values), strict=True))  # type: ignore[call-overload]
    common, own = (read_number(named, each, where, **_FACTOR) for each in ("common", "own"))
    return {
        "factors": (common, own),
        "power": read_number(named, "power", where, low=0.0, high=4.0),
    }


def _covariance(lower: FloatArray, where: str) -> FloatArray:
    """Return a covariance matrix, given the values up to its diagonal."""
    half = np.zeros((SIZE, SIZE))
    half[np.tril_indices(SIZE)] = lower
    matrix = np.asarray(half + np.tril(half, -1).T)
    values = np.linalg.eigvalsh(matrix)
    refuse_unless(
        values[-1] > 0 and values[0] >= -_ROUNDED * values[-1],
        f"{where} must be a covariance matrix, got one with the variance {values[0]:.3g}",
    )
    return matrix


@cache
def shipped() -> Prior:
    """Return the prior that was learned from the laboratory's corpus of rankings."""
    with ONCE:
        return Prior.load(Path(str(files("unsample.posterior") / "learned.npz")))

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
from unsample.posterior._components import PUSHED
from unsample.posterior._learning import Gaussian, History, Learned, condition, learn
from unsample.posterior._own_items import spread_over_users, tenths_of_users

_FORMAT = "unsample prior 4"
#: A covariance in a file is its lower triangle, row after row.
_LOWER = (SIZE * (SIZE + 1) // 2,)
#: The arrays of each kind in a file: coefficients of log P(R) stay in the tens.
_OF_KIND = {
    "mean": Field("real", (SIZE,), low=-1e3, high=1e3),
    "between": Field("real", _LOWER, low=-1e6, high=1e6),
    "within": Field("real", _LOWER, low=-1e6, high=1e6),
}
#: The ranges of factors, and of the power of 99/n.
_FACTOR = {"low": 1e-6, "high": 1e3}
_POWER = {"low": 0.0, "high": 4.0}
#: Covariances are kept with seven digits, so the smallest variance may fall below 0 by this share.
_ROUNDED = 1e-6
#: Protocols of evaluations. Each has a kind of curves that is learned from its own rankings.
PROTOCOLS = ("unseen", "all", "repeats", "graph")
#: The probability of each kind of curves, by the protocol. Ranks among all items have curves among
#: unseen items that own items push down (`PUSHED`). The kind "all", learned from ranks among all
#: items as they are, stands in where a prior has no curves among unseen items. Graphs are never
#: assumed: whoever ranks one must say so.
_LIKELY: dict[str | None, dict[str, float]] = {
    "unseen": {"unseen": 1.0},
    "all": {PUSHED: 1.0},
    "repeats": {"repeats": 1.0},
    "graph": {"graph": 1.0},
    None: {"unseen": 0.5, PUSHED: 0.3, "repeats": 0.2},
}
#: The probability of a kind that is not in the table above, before it is normalised.
_UNEXPECTED = 0.05
#: No kind has a log evidence that counts as further below the best: evidence depends on the bottom
#: of the catalogue more than on the top, and kinds differ at the top.
_MAX_EVIDENCE = 2.0
#: The learned covariance of models counts like so many of a user's own past models.
_TRUST = 20.0


@dataclass(frozen=True, eq=False)
class Prior:
    """The shape of log P(R) as learned from other data sets, for each kind of curves."""

    #: What was learned of each kind.
    learned: Mapping[str, Learned] = field(repr=False)
    #: What it was learned from.
    note: str = ""
    #: The number of own items among a user's candidates, for each of some equal parts of the users;
    #: empty where it is not known.
    seen: tuple[int, ...] = ()

    # -- what ships ---------------------------------------------------------------------------

    @classmethod
    def shipped(cls, *, without: str | None = None) -> Prior:
        """Return the prior that ships, or the one that was learned without a family of data sets.

        To show how near estimates are to the truth on a data set that the prior was learned from,
        leave its family out.

        Parameters
        ----------
        without
            The name of a data set, such as ``"ml-1m"``, or of a family, such as ``"movielens"``.

        Raises
        ------
        InputError
            If the prior knows no such data set or family.

        Examples
        --------
        >>> Prior.shipped(without="ml-1m").note.endswith("without movielens")
        True
        """
        from unsample.posterior._without import shipped_without

        return shipped() if without is None else shipped_without(without)

    # -- learning ---------------------------------------------------------------------------

    @classmethod
    def fit(
        cls, histories: Sequence[History], *, evidence: Sequence[Gaussian] | None = None
    ) -> Prior:
        """Learn from many full evaluations.

        The result is not calibrated: its factors are 1.

        Parameters
        ----------
        histories
            The evaluations.
        evidence
            The `History.evidence` of each, where it is computed already.

        Raises
        ------
        InputError
            If there are no histories.
        """
        if not histories:
            raise InputError("histories must hold at least one full evaluation, got none")
        if evidence is None:
            evidence = [history.evidence() for history in histories]
        return cls(with_pushed(learn(histories, evidence)))

    def calibrated(
        self,
        factors: Mapping[str, tuple[float, float]],
        *,
        powers: Mapping[str, float] | None = None,
        note: str = "",
    ) -> Prior:
        """Return this prior with factors on its covariances of (data sets, models), by kind.

        Parameters
        ----------
        factors
            The two factors of each kind at 99 sampled items.
        powers
            The power of 99/n by which the factors of a kind change with the number n of sampled
            items; 0 by default.
        note
            What it was learned from.
        """
        powers = powers or {}
        learned = {
            kind: replace(of_kind, factors=factors[kind], power=powers.get(kind, 0.0))
            for kind, of_kind in with_pushed(self.learned).items()
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
        """Learn from your own full evaluations on one data set, for its next models.

        For many data sets see `Prior.fit`.

        Parameters
        ----------
        ranks
            An array of full-catalogue ranks for each model.
        items
            The number of candidates: one number, or one for each model.
        protocol
            How the targets were ranked.
        base
            The prior learned from other data sets; by default the one that ships.

        Returns
        -------
        Prior
            For the argument ``prior``; it knows this protocol alone.

        Raises
        ------
        InputError
            If there are no ranks, if the base does not know the protocol, or if ``items`` has
            another length than ``ranks``.

        Examples
        --------
        >>> two_models = [[1, 3, 8, 20, 90] * 20, [1, 2, 6, 15, 70] * 20]
        >>> Prior.learn(two_models, items=100).learned.keys()
        dict_keys(['unseen'])
        """
        if not len(ranks):
            raise InputError("ranks must hold an array of full ranks for each model, got none")
        start = shipped() if base is None else base
        check_choice("protocol", protocol, [kind for kind in PROTOCOLS if kind in start.learned])
        sizes = [items] * len(ranks) if isinstance(items, int) else list(items)
        if len(sizes) != len(ranks):
            raise InputError(
                f"items must be one number or one for each array of ranks, got {len(sizes)} for "
                f"{len(ranks)}"
            )
        histories = [
            History.of_ranks(np.asarray(of_model), size, kind=protocol)
            for of_model, size in zip(ranks, sizes, strict=True)
        ]
        evidence = [history.evidence() for history in histories]
        conditioned = condition(start.learned[protocol], evidence, trust=_TRUST)
        note = f"{start.note}; and {len(histories)} own evaluations".removeprefix("; ")
        return replace(start, learned={protocol: conditioned}, note=note)

    def only(self, kind: str) -> Prior:
        """Return the prior with one kind of curves alone.

        >>> shipped().only("graph").possible(None)
        ('graph',)
        """
        check_choice("kind", kind, self.learned)
        return replace(self, learned={kind: self.learned[kind]})

    def knowing(self, seen: float | Sequence[int]) -> Prior:
        """Return the prior of an evaluation whose users have seen so many of the candidates.

        ``seen`` is the mean over users, or a number for each user. From a mean, tenths of the users
        get usual numbers:

        >>> shipped().knowing(100).seen
        (31, 36, 41, 50, 59, 71, 88, 114, 161, 349)
        """
        if isinstance(seen, int | float):
            return replace(self, seen=spread_over_users(float(seen)))
        return replace(self, seen=tenths_of_users(np.asarray(seen)))

    # -- kinds ------------------------------------------------------------------------------

    def check_own_items(self, items: int) -> None:
        """Refuse that users have seen as many items as there are candidates.

        >>> shipped().knowing(20).check_own_items(1_000)

        Raises
        ------
        InputError
            If the mean number of seen items is not below ``items``.
        """
        if self.seen and float(np.mean(self.seen)) >= items:
            raise InputError(
                f"seen must be below items = {items:,}, for a user's own items are among the "
                f"candidates, got {float(np.mean(self.seen)):,.0f} in the mean"
            )

    def possible(self, protocol: str | None) -> tuple[str, ...]:
        """Return the kinds of curves that a protocol allows; without one, all usual kinds.

        >>> shipped().possible("unseen"), shipped().possible("all")
        (('unseen',), ('pushed',))
        >>> shipped().possible(None)
        ('unseen', 'pushed', 'repeats')

        Raises
        ------
        InputError
            If the prior does not know the protocol, as one that was learned from own evaluations.
        """
        known = [kind for kind in _LIKELY[protocol] if kind in self.learned]
        if protocol == "all" and not known and "all" in self.learned:
            known = ["all"]
        if not known and protocol is not None:
            check_choice("protocol", protocol, self.learned)
        return tuple(known) or tuple(self.learned)

    def weights_of_components(
        self,
        protocol: str | None,
        kinds: Sequence[str],
        *,
        log_evidence: Sequence[Sequence[float]],
    ) -> list[FloatArray]:
        """Return the weight of each component of each kind, given the log evidence of all.

        Within a kind, weights are proportional to the evidence. Between kinds, the evidence counts
        at most e^2 to 1. Here the second kind is 100 times less probable by its evidence, which
        counts as 7.4 times, and the prior of the kinds is 0.5 : 0.2:

        >>> one = np.log([0.75, 0.25])
        >>> other = np.log([0.01])
        >>> weights = shipped().weights_of_components(
        ...     None, ["unseen", "repeats"], log_evidence=[one, other]
        ... )
        >>> [of_kind.round(3).tolist() for of_kind in weights]      # 1 : (0.2 / 0.5) / 7.39
        [[0.711, 0.237], [0.051]]
        """
        of_components = [np.array(of_kind) for of_kind in log_evidence]
        of_kinds = np.array([np.logaddexp.reduce(of_kind) for of_kind in of_components])
        likely = _LIKELY[protocol]
        before = np.log([likely.get(kind, _UNEXPECTED) for kind in kinds])
        exponent = before + np.maximum(of_kinds - of_kinds.max(), -_MAX_EVIDENCE)
        weight = np.exp(exponent - exponent.max())
        weight /= weight.sum()
        return [
            weight_of_kind * np.exp(of_kind - sum_of_kind)
            for weight_of_kind, of_kind, sum_of_kind in zip(
                weight, of_components, of_kinds, strict=True
            )
        ]

    # -- saving -----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one ``.npz`` file, whole or not at all."""
        about = {
            "format": _FORMAT,
            "factors": {
                kind: (*learned.factors, learned.power) for kind, learned in self.learned.items()
            },
            "note": self.note,
        }
        arrays: dict[str, Any] = {"about": np.frombuffer(json.dumps(about).encode(), np.uint8)}
        lower = np.tril_indices(SIZE)
        for kind, learned in self.learned.items():
            if kind == PUSHED:  # it has the arrays of the kind "unseen"
                continue
            arrays[f"{kind}.mean"] = learned.mean
            arrays[f"{kind}.between"] = learned.between[lower].astype(np.float32)
            arrays[f"{kind}.within"] = learned.within[lower].astype(np.float32)
        save_archive(Path(path), partial(write_arrays, arrays=arrays), read=Prior.load)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Prior:
        """Read what `save` wrote.

        Raises
        ------
        FileError
            If the file cannot be read, or does not hold a prior.
        """
        name = f"the prior {Path(path).name}"
        try:
            with Path(path).open("rb") as file:
                arrays = read_arrays(file, name)
        except InputError:
            raise
        except (OSError, ValueError) as problem:  # ValueError: a zero byte in the name
            reason = getattr(problem, "strerror", None) or problem
            raise FileError(
                f"cannot read the prior {str(path)!r}: {reason}; give a file "
                "that Prior.save wrote, or pass prior='shipped' or prior='none'"
            ) from problem
        about = read_object(arrays, "about", where=name)
        if about.get("format") != _FORMAT:
            got = str(about.get("format"))[:80]
            raise FileError(f"{name} must hold {_FORMAT}, got {got}; learn it anew")
        factors = about.get("factors")
        values_of_kind: dict[str, Any] = factors if isinstance(factors, dict) else {}
        refuse_unless(values_of_kind, f"'factors' of {name} must name the kinds of evaluations")
        factors_of_kind = {
            kind: _factors(values, f"the factors of {kind!r} of {name}")
            for kind, values in values_of_kind.items()
        }
        kinds = [kind for kind in factors_of_kind if kind != PUSHED]
        fields = {"about": Field(kind="whole", shape=("bytes",))}
        for kind in kinds:
            fields |= {f"{kind}.{part}": described for part, described in _OF_KIND.items()}
        checked = read_fields(arrays, fields, where=name)
        learned = {
            kind: Learned(
                mean=checked[f"{kind}.mean"],
                between=_covariance(checked[f"{kind}.between"], f"'{kind}.between' of {name}"),
                within=_covariance(checked[f"{kind}.within"], f"'{kind}.within' of {name}"),
                **factors_of_kind[kind],
            )
            for kind in kinds
        }
        if PUSHED in factors_of_kind:
            refuse_unless("unseen" in learned, f"{name} must hold 'unseen' beside {PUSHED!r}")
            learned[PUSHED] = replace(learned["unseen"], **factors_of_kind[PUSHED])
        note = about.get("note")
        refuse_unless(isinstance(note, str), f"'note' of {name} must be text")
        return cls(learned, str(note))


def with_pushed(learned: Mapping[str, Learned]) -> dict[str, Learned]:
    """Return the kinds, with the kind of pushed curves: it has the curves among unseen items.

    A kind of pushed curves that is there stays as it is.

    >>> from unsample.posterior._components import vague_kind
    >>> sorted(with_pushed({"unseen": vague_kind(), "graph": vague_kind()}))
    ['graph', 'pushed', 'unseen']
    """
    pushed = {PUSHED: learned["unseen"]} if "unseen" in learned else {}
    return {**pushed, **learned}


def _factors(values: object, where: str) -> dict[str, Any]:
    """Return the fields ``factors`` and ``power`` of a kind, from the three numbers in a file.

    >>> _factors([1.1, 1.2, 0.15], "the factors of 'unseen'")
    {'factors': (1.1, 1.2), 'power': 0.15}
    """
    numbers = values if isinstance(values, list) else []
    refuse_unless(len(numbers) == 3, f"{where} must be three numbers, got {str(values)[:80]}")
    named = dict(zip(("common", "own", "power"), numbers, strict=True))
    common = read_number(named, "common", where=where, **_FACTOR)
    own = read_number(named, "own", where=where, **_FACTOR)
    power = read_number(named, "power", where=where, **_POWER)
    return {"factors": (common, own), "power": power}


def _covariance(lower: FloatArray, where: str) -> FloatArray:
    """Return a covariance matrix, given its lower triangle, row after row.

    >>> identity = np.eye(SIZE)[np.tril_indices(SIZE)]
    >>> bool((_covariance(identity, "a matrix") == np.eye(SIZE)).all())
    True
    """
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

"""The shipped prior, learned without one family of data sets.

Each family of data sets has a prior that was learned from all other families. One file holds all
these priors as differences from the shipped one. Differences of means are single precision numbers.
Differences of covariances are whole numbers of steps, and a step is a thousandth of the product of
two standard deviations. This rounding moves the ends of intervals by far less than other random
numbers would.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from unsample._archives import read_arrays, save_archive, write_arrays
from unsample._checks import FloatArray, IntArray
from unsample._fields import Field, read_fields, read_object, refuse_unless
from unsample._rules import ONCE
from unsample.errors import InputError
from unsample.posterior._basis import SIZE
from unsample.posterior._components import PUSHED
from unsample.posterior._prior import Prior, shipped

_FORMAT = "unsample priors without families 1"
_FILE = "learned_without.npz"
#: Covariances are kept in steps of this part of the product of two standard deviations.
_STEP = 1e-3
#: The covariances of a kind, as `Learned` names them.
_PARTS = ("between", "within")
#: The places of a covariance that are kept: its lower triangle, row after row.
_LOWER = np.tril_indices(SIZE)


def shipped_without(name: str) -> Prior:
    """Return the shipped prior, learned without a data set and all others of its family.

    ``name`` is the name of a data set or of a family.

    >>> shipped_without("ml-1m").note == shipped_without("movielens").note
    True

    Raises
    ------
    InputError
        If there is no such data set or family.
    """
    if not isinstance(name, str):
        raise InputError(f"without must be the name of a data set, got {name!r}; such as 'ml-1m'")
    with ONCE:
        archive = _archive()
    family = archive.family_of.get(name, name)
    if family not in archive.families:
        if name in archive.never:
            return shipped()
        known = ", ".join(sorted({*archive.family_of, *archive.never}))
        raise InputError(
            f"without must name a data set of the shipped prior, or a family, got {name!r}; "
            f"it was learned from {known}"
        )
    return archive.prior(family)


def save_without(
    path: Path,
    whole: Prior,
    priors: Mapping[str, Prior],
    *,
    family_of: Mapping[str, str],
    never: tuple[str, ...],
) -> None:
    """Write the priors without each family, as differences from the whole one.

    Parameters
    ----------
    path
        The file.
    whole
        The prior that was learned from all families.
    priors
        The prior without each family, by the family's name.
    family_of
        The family of each data set.
    never
        The data sets that no prior is learned from.
    """
    about = {
        "format": _FORMAT,
        "families": list(priors),
        "family_of": dict(family_of),
        "never": list(never),
        "notes": [prior.note for prior in priors.values()],
    }
    arrays: dict[str, Any] = {"about": np.frombuffer(json.dumps(about).encode(), np.uint8)}
    for kind, learned in whole.learned.items():
        if kind == PUSHED:  # it has the arrays of the kind "unseen"
            continue
        others = [prior.learned.get(kind, learned) for prior in priors.values()]
        means = [other.mean - learned.mean for other in others]
        arrays[f"{kind}.mean"] = np.array(means, dtype=np.float32)
        for part in _PARTS:
            usual = getattr(learned, part)
            steps = [_in_steps(getattr(other, part), usual=usual) for other in others]
            arrays[f"{kind}.{part}"] = np.array(steps, dtype=np.int16)
    write = partial(write_arrays, arrays=arrays, compression=zipfile.ZIP_LZMA)
    save_archive(path, write, read=_Archive.load)


@dataclass(frozen=True, eq=False)
class _Archive:
    """What the file of priors without a family holds; families are in the order of ``families``."""

    #: The families, each of which some prior was learned without.
    families: tuple[str, ...]
    #: The family of each data set.
    family_of: Mapping[str, str]
    #: The data sets that no prior was learned from.
    never: tuple[str, ...]
    #: What each prior was learned from, by family.
    notes: tuple[str, ...]
    #: The differences of each kind from the shipped prior, a row for each family: of means, as
    #: ``"unseen.mean"`` (families x shapes), and of covariances in steps, as ``"unseen.within"``
    #: (families x values of a lower triangle).
    differences: Mapping[str, FloatArray | IntArray]

    @classmethod
    def load(cls, path: Path) -> _Archive:
        """Read what `save_without` wrote."""
        where = f"the priors {path.name}"
        with path.open("rb") as file:
            arrays = read_arrays(file, where)
        about = read_object(arrays, "about", where=where)
        refuse_unless(about.get("format") == _FORMAT, f"{where} must hold {_FORMAT}")
        kinds = sorted({name.partition(".")[0] for name in arrays if name != "about"})
        fields = {"about": Field(kind="whole", shape=("bytes",))}
        for kind in kinds:
            fields[f"{kind}.mean"] = Field("real", ("families", SIZE), low=-1e3, high=1e3)
            for part in _PARTS:
                fields[f"{kind}.{part}"] = Field("whole", ("families", len(_LOWER[0])))
        checked = read_fields(arrays, fields, where=where)
        return cls(
            families=tuple(about["families"]),
            family_of=about["family_of"],
            never=tuple(about["never"]),
            notes=tuple(about["notes"]),
            differences={name: values for name, values in checked.items() if name != "about"},
        )

    def prior(self, family: str) -> Prior:
        """Return the prior without a family, with the factors of the shipped one."""
        row = self.families.index(family)
        learned = {}
        for kind, usual in shipped().learned.items():
            stored = "unseen" if kind == PUSHED else kind
            mean, between, within = (
                self.differences[f"{stored}.{part}"][row] for part in ("mean", *_PARTS)
            )
            learned[kind] = replace(
                usual,
                mean=usual.mean + mean,
                between=_of_steps(between, usual=usual.between),
                within=_of_steps(within, usual=usual.within),
            )
        return replace(shipped(), learned=learned, note=self.notes[row])


def _in_steps(covariance: FloatArray, *, usual: FloatArray) -> FloatArray:
    """Return the lower triangle of a difference from a usual covariance, in whole steps.

    With variances of 1 a step is 0.001.

    >>> usual = np.eye(SIZE)
    >>> steps = _in_steps(usual + 0.0123, usual=usual)
    >>> np.unique(steps).tolist()
    [12.0]
    >>> np.unique(_of_steps(steps, usual=usual).round(6)).tolist()
    [0.012, 1.012]
    """
    return np.asarray(np.rint(((covariance - usual) / _step(usual))[_LOWER]))


def _of_steps(steps: FloatArray | IntArray, *, usual: FloatArray) -> FloatArray:
    """Return the covariance that `_in_steps` was given, up to rounding."""
    difference = np.zeros((SIZE, SIZE))
    difference[_LOWER] = steps
    difference += np.tril(difference, -1).T
    return np.asarray(usual + difference * _step(usual))


def _step(covariance: FloatArray) -> FloatArray:
    """Return the step in which differences from each value of a covariance are kept.

    >>> usual = np.diag(np.full(SIZE, 4.0))
    >>> float(_step(usual)[0, 1])                                        # 0.001 * 2 * 2
    0.004
    """
    deviation = np.sqrt(np.diag(covariance))
    return np.asarray(_STEP * np.outer(deviation, deviation))


@cache
def _archive() -> _Archive:
    """Return the archive that ships."""
    return _Archive.load(Path(str(files("unsample.posterior") / _FILE)))

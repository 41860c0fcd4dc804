"""The targets of an evaluation, in any of the shapes in which people keep them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from unsample.designs.ranking import Candidates
from unsample.errors import InputError

__all__ = ["as_candidates"]

_SHAPES = (
    "a pair (users, items) of equally long id arrays, a dict of user -> item or items, or a "
    "scipy sparse matrix of users x items"
)


def as_candidates(targets: Any, items: int, exclude: Any) -> Candidates:
    """Check targets and what they are ranked against; refuse targets that are excluded."""
    users, wanted = _as_pairs(targets)
    candidates = Candidates.check(users, wanted, items, exclude)
    if candidates.excluded_targets.any():
        first = int(np.argmax(candidates.excluded_targets))
        raise InputError(
            f"targets must not be among the items to exclude, got "
            f"{int(candidates.excluded_targets.sum())} that are, the first item "
            f"{int(candidates.targets[first])} of user {int(candidates.users[first])}; take them "
            "out of exclude, or pass exclude=None to keep every item as a candidate"
        )
    alone = candidates.items - 1 - candidates.excluded < 1
    if alone.any():
        first = int(np.argmax(alone))
        raise InputError(
            f"every target must have another candidate, got {int(alone.sum())} without, the "
            f"first of user {int(candidates.users[first])}; exclude leaves nothing to rank against"
        )
    return candidates


def _as_pairs(targets: Any) -> tuple[npt.ArrayLike, npt.ArrayLike]:
    if isinstance(targets, Mapping):
        pairs = [(user, item) for user, some in targets.items() for item in np.atleast_1d(some)]
        return [user for user, _ in pairs], [item for _, item in pairs]
    if hasattr(targets, "tocoo"):
        found = targets.tocoo()
        kept = found.data != 0
        return found.coords[0][kept], found.coords[1][kept]
    if isinstance(targets, tuple | list) and len(targets) == 2:
        return targets[0], targets[1]
    raise InputError(f"targets must be {_SHAPES}, got {type(targets).__name__}")

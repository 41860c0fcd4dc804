"""`Interactions`: who did something with what, as zero-based integer ids."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from unsample._checks import IntArray

if TYPE_CHECKING:
    import scipy.sparse


@dataclass(frozen=True, eq=False)
class Interactions:
    """(user, item) pairs with ids in ``0..users-1`` and ``0..items-1``.

    ``complete`` is false where only part of a published data set was at hand; ``note`` then says
    which part, and everything computed from it must carry that note.

    >>> pairs = Interactions(np.array([0, 0, 1]), np.array([2, 1, 1]), users=2, items=3)
    >>> pairs.matrix().toarray()
    array([[0., 1., 1.],
           [0., 1., 0.]], dtype=float32)
    """

    user: IntArray = field(repr=False)
    item: IntArray = field(repr=False)
    users: int
    items: int
    name: str = ""
    complete: bool = True
    note: str = ""

    def distinct(self) -> Interactions:
        """Return each pair once, sorted by user, then item."""
        return self.select(np.unique(self.pair_keys(), return_index=True)[1])

    def __len__(self) -> int:
        return len(self.user)

    def matrix(self) -> scipy.sparse.csr_array:
        """Return the users x items matrix with a float32 one for each pair."""
        from scipy.sparse import csr_array

        ones = np.ones(len(self.user), dtype=np.float32)
        return csr_array((ones, (self.user, self.item)), shape=(self.users, self.items))

    def pair_keys(self) -> IntArray:
        """Return one number for each pair, ``user * items + item``."""
        return self.user * self.items + self.item

    def select(self, rows: npt.NDArray[Any]) -> Interactions:
        """Return the given rows (a mask or positions); the ids and their ranges stay."""
        return replace(self, user=self.user[rows], item=self.item[rows])

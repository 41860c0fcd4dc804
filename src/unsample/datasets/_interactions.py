"""`Interactions`: who did something with what, as zero-based integer ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from unsample._checks import FloatArray, IntArray

if TYPE_CHECKING:
    import scipy.sparse

__all__ = ["Interactions"]


@dataclass(frozen=True, eq=False)
class Interactions:
    """Distinct (user, item) pairs with ids in ``0..users-1`` and ``0..items-1``.

    ``complete`` is false where only part of a published data set was at hand; ``note`` then says
    which part, and everything computed from it must carry that note.
    """

    user: IntArray
    item: IntArray
    users: int
    items: int
    rating: FloatArray | None = None
    time: IntArray | None = None
    name: str = ""
    complete: bool = True
    note: str = ""

    def __len__(self) -> int:
        return len(self.user)

    def matrix(self) -> scipy.sparse.csr_array:
        """Return the users x items matrix with a float32 one for each pair."""
        from scipy.sparse import csr_array

        ones = np.ones(len(self.user), dtype=np.float32)
        return csr_array((ones, (self.user, self.item)), shape=(self.users, self.items))

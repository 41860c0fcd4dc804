"""Random orders of items that take no memory: any stretch of them is computed when it is asked for.

Every target has an order of its own, made from a seed, its user and its item alone. So the items
it meets are the same whatever the batch, the number of threads, the device or the model: two
models evaluated with one seed see the same items, and differ only in how they score them.

An order is a Feistel network over the mixed radix left x right >= size: a position is split into
two digits, and each digit in turn is shifted by a keyed function of the other, which can be undone
whatever that function is. The few values beyond ``size`` walk on through the network until they
fall inside it. Arithmetic is on 32-bit words, which numpy handles many at a time. A network over a
handful of items cannot reach all their orders alike, so short orders are sorted by keyed numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import BoolArray, IntArray

Words: TypeAlias = npt.NDArray[np.uint32]
LongWords: TypeAlias = npt.NDArray[np.uint64]

#: A digit is scaled from 16 random bits, so it has at most 2**16 values.
LARGEST_ORDER = 1 << 32
ROUNDS = 6
_HALF, _FIFTEEN = np.uint32(16), np.uint32(15)
#: Orders of at most this many items are sorted instead.
SHORT = 256
# Multipliers and shifts with little bias in any bit (searched for by C. Wellons, "lowbias32").
FIRST, SECOND = np.uint32(0x7FEB352D), np.uint32(0x846CA68B)
# SplitMix64 (Steele, Lea, Flood 2014), which makes independent keys from counters.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def target_keys(seed: int, users: IntArray, targets: IntArray) -> LongWords:
    """Return the key of each target: 64 bits from the seed, the user and the item."""
    key = _mixed(np.full(len(users), seed, dtype=np.uint64))
    key = _mixed(key ^ users.astype(np.uint64))
    return _mixed(key ^ targets.astype(np.uint64))


@dataclass(frozen=True, eq=False)
class Orders:
    """A random order of ``0..size-1`` for each row, and random draws, both made from keys."""

    size: IntArray
    keys: LongWords

    def positions(self, first: IntArray, count: int) -> IntArray:
        """Return what stands at ``first, first + 1, ...`` of each row's order, ``count`` of it.

        A row that ends before is filled up with its last places again.
        """
        offsets = np.minimum(first[:, None] + np.arange(count), self.size[:, None] - 1)
        short = self.size <= SHORT
        if not short.any():
            return _permuted(self.size, self.keys, offsets)
        places: IntArray = np.empty_like(offsets)
        for rows, order in ((short, _sorted_order), (~short, _permuted)):
            if rows.any():
                places[rows] = order(self.size[rows], self.keys[rows], offsets[rows])
        return places

    def draws(self, first: IntArray, count: int) -> IntArray:
        """Return draws with replacement number ``first, first + 1, ...`` of each row."""
        number = (first[:, None] + np.arange(count)).astype(np.uint64)
        bits = _mixed(number * _GOLDEN ^ self.keys[:, None]) >> np.uint64(32)
        scaled = (bits * self.size.astype(np.uint64)[:, None]) >> np.uint64(32)
        return np.asarray(scaled.astype(np.int64))

    def tie_is_lost(self, row: IntArray, item: IntArray) -> BoolArray:
        """Return whether an item with its target's score stands above it.

        Every item has a keyed number, the target another; the smaller one stands above. So the
        target's place among its ties is uniform, and an item met twice beats it twice or never.
        """
        own = self.tie_place(row)
        return np.asarray(_unit(_mixed(self.keys[row] ^ _spread(item, 2))) < own)

    def chance(self) -> npt.NDArray[np.float64]:
        """Return a random number from 0 to 1 for each row."""
        return _unit(_mixed(self.keys ^ _spread(np.zeros_like(self.size), 4)))

    def tie_place(self, row: IntArray) -> npt.NDArray[np.float64]:
        """Return where in 0..1 each target stands among the items that tie with it."""
        return _unit(_mixed(self.keys[row] ^ _spread(np.zeros_like(row), 1)))


def _permuted(size: IntArray, keys: LongWords, positions: IntArray) -> IntArray:
    """Return where the Feistel network of each row sends its positions (rows x columns)."""
    left, right, round_keys = network(size, keys)
    places = _walk(positions, left, right, round_keys)
    row, column = np.nonzero(places >= size[:, None])
    while len(row):
        again = places[row, column][:, None]
        again = _walk(again, left[row], right[row], round_keys[row])[:, 0]
        places[row, column] = again
        outside = again >= size[row]
        row, column = row[outside], column[outside]
    return places


def network(size: IntArray, keys: LongWords) -> tuple[Words, Words, Words]:
    """Return how many values the two digits of each row have, and the words of all steps."""
    high = np.ceil(np.sqrt(size)).astype(np.int64)
    low = -(-size // np.maximum(high, 1))
    counters = np.arange(1, ROUNDS // 2 + 1, dtype=np.uint64) * _GOLDEN
    words = _mixed(keys[:, None] + counters).view(np.uint32)
    return high.astype(np.uint32)[:, None], low.astype(np.uint32)[:, None], words


def _walk(positions: IntArray, left: Words, right: Words, keys: Words) -> IntArray:
    # Exact: quotients of whole numbers below 2**32 are apart by more than a rounding.
    high = np.floor(positions / right).astype(np.uint32)
    low = positions.astype(np.uint32) - high * right
    room, spare = np.empty_like(low), np.empty_like(low)
    for step in range(0, ROUNDS, 2):
        _shift(high, low, keys[:, step, None], left, room, spare)
        _shift(low, high, keys[:, step + 1, None], right, room, spare)
    return high.astype(np.int64) * right + low


def _sorted_order(size: IntArray, keys: LongWords, offsets: IntArray) -> IntArray:
    """Return places in the order of keyed random numbers, for orders of at most ``SHORT``."""
    columns = np.arange(int(size.max()))
    number = _mixed(keys[:, None] ^ _spread(columns, 3))
    number[columns >= size[:, None]] = np.iinfo(np.uint64).max
    order = np.argsort(number, axis=1, kind="stable")
    return np.take_along_axis(order, offsets, axis=1)


def _shift(digit: Words, other: Words, key: Words, radix: Words, room: Words, spare: Words) -> None:
    """Add a keyed function of ``other`` to ``digit``, modulo ``radix``, in place."""
    np.add(other, key, out=room)
    _scramble(room, spare)
    room >>= _HALF
    room *= radix
    room >>= _HALF
    digit += room
    # Below the radix the difference wraps round to something large: the minimum is the remainder.
    np.subtract(digit, radix, out=room)
    np.minimum(digit, room, out=digit)


def _scramble(word: Words, room: Words) -> None:
    """Mix the bits of each word, above all into its upper half; ``room`` is for passing values."""
    np.right_shift(word, _HALF, out=room)
    word ^= room
    word *= FIRST
    np.right_shift(word, _FIFTEEN, out=room)
    word ^= room
    word *= SECOND


def _mixed(word: LongWords) -> LongWords:
    word = word + _GOLDEN
    word = (word ^ (word >> np.uint64(30))) * _MIX[0]
    word = (word ^ (word >> np.uint64(27))) * _MIX[1]
    return np.asarray(word ^ (word >> np.uint64(31)))


def _spread(number: IntArray, purpose: int) -> LongWords:
    """Return words for numbers of one purpose that do not meet those of another."""
    return (number.astype(np.uint64) << np.uint64(2)) + np.uint64(purpose)


def _unit(word: LongWords) -> npt.NDArray[np.float64]:
    return np.asarray((word >> np.uint64(11)) * 2.0**-53)

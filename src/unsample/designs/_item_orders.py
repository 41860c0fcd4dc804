"""Random orders of items that take no memory: any part of them is computed when it is needed.

Every target has its own order, made from the seed, its user and its item only. So its items are the
same for any batch size, number of threads, device and model. Two models that are evaluated with one
seed are compared on the same items.

An order is a Feistel network over two digits with left x right >= size values. A position is split
into two digits, and each digit in turn is shifted by a keyed function of the other. Each shift can
be undone, whatever the function is, so this is a permutation. A value beyond ``size`` goes through
the network again, until it is inside. All arithmetic is on 32-bit words, which is fast in numpy. A
network over few items cannot reach all orders equally often, so short orders are sorted by keyed
random numbers.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from unsample._checks import BoolArray, FloatArray, IntArray

Words: TypeAlias = npt.NDArray[np.uint32]
LongWords: TypeAlias = npt.NDArray[np.uint64]

#: A digit comes from 16 random bits, so it has at most 2**16 values.
LARGEST_ORDER = 1 << 32
_ROUNDS = 6
_HALF = np.uint32(16)
_FIFTEEN = np.uint32(15)
#: Orders of at most this many items are sorted.
_SHORT = 256
# Multipliers and shifts with little bias in any bit ("lowbias32", found by C. Wellons).
_FIRST = np.uint32(0x7FEB352D)
_SECOND = np.uint32(0x846CA68B)
# SplitMix64 (Steele, Lea, Flood 2014) makes independent keys from counters.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def target_keys(seed: int, users: IntArray, targets: IntArray) -> LongWords:
    """Return the key of each target: 64 bits from the seed, the user and the item."""
    key = _mixed(np.full(len(users), seed, dtype=np.uint64))
    key = _mixed(key ^ users.astype(np.uint64))
    return _mixed(key ^ targets.astype(np.uint64))


def positions(size: IntArray, keys: LongWords, first: IntArray, count: int) -> IntArray:
    """Return numbers ``first, first + 1, ...`` of a random order of ``0..size-1``, a row for each.

    There are ``count`` of them. A row that ends earlier is filled with its last number.

    The orders of two targets, of five items each, and the last two numbers of the first order:

    >>> keys = target_keys(0, users=np.array([0, 1]), targets=np.array([3, 3]))
    >>> size = np.array([5, 5])
    >>> positions(size, keys, first=np.array([0, 0]), count=5)
    array([[1, 0, 3, 4, 2],
           [3, 2, 1, 4, 0]])
    >>> positions(size[:1], keys[:1], first=np.array([3]), count=2)
    array([[4, 2]])
    """
    offsets = np.minimum(first[:, None] + np.arange(count), size[:, None] - 1)
    numbers: IntArray = np.empty_like(offsets)
    short = size <= _SHORT
    for rows, order in ((short, _sorted_order), (~short, _permuted)):
        if rows.any():
            numbers[rows] = order(size[rows], keys[rows], offsets[rows])
    return numbers


def draws(size: IntArray, keys: LongWords, first: IntArray, count: int) -> IntArray:
    """Return numbers ``first, first + 1, ...`` of each row's draws with replacement."""
    number = (first[:, None] + np.arange(count)).astype(np.uint64)
    bits = _mixed(number * _GOLDEN ^ keys[:, None]) >> np.uint64(32)
    scaled = (bits * size.astype(np.uint64)[:, None]) >> np.uint64(32)
    return np.asarray(scaled.astype(np.int64))


def tie_is_lost(keys: LongWords, items: IntArray, probability: FloatArray) -> BoolArray:
    """Return whether items with the same score as their targets are above the targets.

    Each item has a keyed random number in 0..1, and is above the target if this number is smaller
    than the target's ``probability``. So an item that is drawn twice beats the target twice or
    never.
    """
    return np.asarray(_unit(_mixed(keys ^ _words_of(items, 2))) < probability)


def _permuted(size: IntArray, keys: LongWords, positions: IntArray) -> IntArray:
    """Return what the Feistel network of each row makes of its positions (rows x columns)."""
    # How many values the two digits of each row have: left x right >= size.
    of_left = np.ceil(np.sqrt(size)).astype(np.int64)
    of_right = -(-size // np.maximum(of_left, 1))
    left = of_left.astype(np.uint32)[:, None]
    right = of_right.astype(np.uint32)[:, None]
    counters = np.arange(1, _ROUNDS // 2 + 1, dtype=np.uint64) * _GOLDEN
    round_keys = _mixed(keys[:, None] + counters).view(np.uint32)
    values = _walk(positions, left, right=right, keys=round_keys)
    row, column = np.nonzero(values >= size[:, None])
    while len(row):
        again = values[row, column][:, None]
        again = _walk(again, left[row], right=right[row], keys=round_keys[row])[:, 0]
        values[row, column] = again
        outside = again >= size[row]
        row, column = row[outside], column[outside]
    return values


def _walk(positions: IntArray, left: Words, *, right: Words, keys: Words) -> IntArray:
    """Send positions through all rounds of the network once."""
    # This is exact: quotients of whole numbers below 2**32 differ by more than rounding.
    high = np.floor(positions / right).astype(np.uint32)
    low = positions.astype(np.uint32) - high * right
    # Room for intermediate words, so that no round allocates memory.
    room = np.empty_like(low)
    spare = np.empty_like(low)
    for step in range(0, _ROUNDS, 2):
        _shift(high, low, key=keys[:, step, None], radix=left, room=room, spare=spare)
        _shift(low, high, key=keys[:, step + 1, None], radix=right, room=room, spare=spare)
    return high.astype(np.int64) * right + low


def _sorted_order(size: IntArray, keys: LongWords, offsets: IntArray) -> IntArray:
    """Return numbers of orders that are sorted by keyed random numbers, for short orders."""
    columns = np.arange(int(size.max()))
    number = _mixed(keys[:, None] ^ _words_of(columns, 3))
    number[columns >= size[:, None]] = np.iinfo(np.uint64).max
    order = np.argsort(number, axis=1, kind="stable")
    return np.take_along_axis(order, offsets, axis=1)


def _shift(
    digit: Words, other: Words, *, key: Words, radix: Words, room: Words, spare: Words
) -> None:
    """Add a keyed function of ``other`` to ``digit``, modulo ``radix``, in place."""
    np.add(other, key, out=room)
    # Mix the bits of each word, mainly into its upper half.
    np.right_shift(room, _HALF, out=spare)
    room ^= spare
    room *= _FIRST
    np.right_shift(room, _FIFTEEN, out=spare)
    room ^= spare
    room *= _SECOND
    room >>= _HALF
    room *= radix
    room >>= _HALF
    digit += room
    # If the digit is below the radix, the difference wraps to a large number: take the minimum.
    np.subtract(digit, radix, out=room)
    np.minimum(digit, room, out=digit)


def _mixed(word: LongWords) -> LongWords:
    word = word + _GOLDEN
    word = (word ^ (word >> np.uint64(30))) * _MIX[0]
    word = (word ^ (word >> np.uint64(27))) * _MIX[1]
    return np.asarray(word ^ (word >> np.uint64(31)))


def _words_of(number: IntArray, purpose: int) -> LongWords:
    """Return words for numbers; different purposes have different words."""
    return (number.astype(np.uint64) << np.uint64(2)) + np.uint64(purpose)


def _unit(word: LongWords) -> npt.NDArray[np.float64]:
    return np.asarray((word >> np.uint64(11)) * 2.0**-53)

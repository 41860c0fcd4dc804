"""Which answers are near a question, from training triples alone: a guide, made without a model.

Two entities are alike if they appear in similar triples. An answer is near a question if it is

* an answer to the same question about entities like the known one,
* like the answers that training has for the question itself,
* a neighbour of the known entity, or a neighbour's neighbour,
* frequent on that side of the relation.

Each of these is a share of all entities; they are added up by weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from unsample._checks import FloatArray, IntArray

#: Weights of the four, chosen on one model of one graph (CoDEx-M); they need not be good elsewhere.
_ALIKE, _LIKE_KNOWN, _NEAR, _FREQUENT = 1.0, 1.0, 0.3, 0.1
#: Places in which more entities stand tell little of them, and cost most.
_CROWD = 500
#: Scores that are held at a time.
_ROOM = 1 << 23


def nearest(
    train: IntArray, known: IntArray, kind: IntArray, size: int, longest: int
) -> npt.NDArray[np.int32]:
    """Return the answers nearest to each question, a row each, the nearest first.

    ``kind`` is twice the relation, and one more where a tail is looked for.
    """
    from scipy.sparse import csr_array, diags_array

    head, relation, tail = train.T
    given = np.concatenate([tail, head]), np.concatenate([head, tail])
    kinds = np.concatenate([2 * relation, 2 * relation + 1])
    places, place = np.unique(kinds * size + given[1], return_inverse=True)
    crowd = np.bincount(place)
    telling = np.where(crowd <= _CROWD, np.log(size / crowd), 0.0)
    ones = np.ones(len(kinds))
    stands = csr_array((telling[place], (given[0], place)), shape=(size, len(places)))
    length = np.sqrt(stands.multiply(stands).sum(axis=1))
    stands = csr_array(diags_array(1.0 / np.maximum(length, 1e-300)) @ stands)
    standing = csr_array(stands.T)
    edges = csr_array((ones, given), shape=(size, size))
    degree = np.maximum(np.asarray(edges.sum(axis=1)).ravel(), 1.0)
    walks = csr_array(diags_array(1.0 / degree) @ edges @ diags_array(1.0 / np.sqrt(degree)))

    length_of_list = min(longest, size)
    found = np.empty((len(known), length_of_list), dtype=np.int32)
    step = max(1, _ROOM // size)
    for each in np.unique(kind):
        mine = np.flatnonzero(kind == each)
        here = kinds == each
        answers = csr_array((ones[here], (given[0][here], given[1][here])), shape=(size, size))
        often = _FREQUENT * np.asarray(answers.sum(axis=0)).ravel() / max(int(here.sum()), 1)
        often += 1e-6 * degree / degree.sum()
        for start in range(0, len(mine), step):
            rows = mine[start : start + step]
            asked = known[rows]
            near = often + _ALIKE * _shares(stands[asked] @ standing @ answers)
            near += _LIKE_KNOWN * _shares(answers[asked] @ stands @ standing)
            near += _NEAR * _shares(walks[asked] @ walks + walks[asked])
            near[answers[asked].nonzero()] = -1.0  # these are left out anyway
            best = np.argpartition(-near, length_of_list - 1, axis=1)[:, :length_of_list]
            best.sort(axis=1)
            order = np.argsort(-np.take_along_axis(near, best, axis=1), axis=1, kind="stable")
            found[rows] = np.take_along_axis(best, order, axis=1)
    return found


def _shares(scores: Any) -> FloatArray:
    """Return rows that sum to one, or to nothing."""
    dense = np.asarray(scores.toarray(), dtype=np.float64)
    return np.asarray(dense / np.maximum(dense.sum(axis=1, keepdims=True), 1e-300))

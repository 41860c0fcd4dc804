"""Negatives drawn in known ways, good and bad, for promises about `audit`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import scipy.sparse

import unsample

#: Answers that are right for lists drawn uniformly, for each target its own, nothing amiss.
RIGHT = {
    "uniform": {"yes", "nearly"},
    "seen items": {"left out", "cannot tell"},
    "shared lists": {"own"},
}


@dataclass(frozen=True)
class Sampler:
    """How lists are drawn: how many, how long, and from what."""

    lists: int = 300
    sampled: int = 30
    items: int = 600
    replacement: bool = True
    #: Whether users have seen items, popular ones more often, which are left out.
    seen: bool = False
    #: The power of popularity to which probabilities are proportional.
    exponent: float = 0.0

    def draw(self, rng: np.random.Generator) -> dict:
        """Return the arguments of an audit."""
        popularity = np.floor(10 * rng.pareto(1.2, self.items) + 1)
        targets = rng.integers(self.items, size=self.lists)
        share = np.minimum(popularity / popularity.mean() * 0.08, 0.6) * self.seen
        matrix = rng.random((self.lists, self.items)) < share
        matrix[np.arange(self.lists), targets] = False
        probability = np.tile(popularity**self.exponent, (self.lists, 1))
        probability[matrix] = 0.0
        probability[np.arange(self.lists), targets] = 0.0
        probability /= probability.sum(axis=1, keepdims=True)
        lists = [
            rng.choice(self.items, self.sampled, replace=self.replacement, p=row)
            for row in probability
        ]
        found = {"negatives": np.array(lists), "items": self.items}
        return found | ({"exclude": scipy.sparse.csr_array(matrix * 1.0)} if self.seen else {})

    def wrong(self, result: unsample.Audit) -> list[str]:
        """Return the questions whose answers are wrong for uniform lists."""
        right = "with" if self.replacement else "without"
        answers = RIGHT | {"replacement": {right, "cannot tell"}}
        return [
            each.question for each in result.findings if each.answer not in answers[each.question]
        ]


def audits(sampler: Sampler, trials: int, seed: int) -> Iterable[unsample.Audit]:
    """Yield audits of lists that are drawn anew each time."""
    rng = np.random.default_rng(seed)
    for _ in range(trials):
        yield unsample.audit(**sampler.draw(rng))


# -- what goes wrong ------------------------------------------------------------------------------


def lower_half(rng: np.random.Generator) -> dict:
    """Draw twice as many items, sort them, keep the first half: as one library did."""
    rows = [np.unique(rng.integers(600, size=60))[:30] for _ in range(300)]
    return {"negatives": rows, "items": 600}


def one_pool(rng: np.random.Generator) -> dict:
    return {"negatives": np.tile(rng.choice(600, 30, replace=False), (300, 1)), "items": 600}


def batches(rng: np.random.Generator) -> dict:
    pools = [rng.choice(600, 30, replace=False) for _ in range(10)]
    return {"negatives": np.repeat(pools, 30, axis=0), "items": 600}


def dealt(rng: np.random.Generator) -> dict:
    """Deal shuffled items out in turn."""
    rows = [rng.permutation(600).reshape(20, 30) for _ in range(15)]
    return {"negatives": np.concatenate(rows), "items": 600}


def catalogue_too_large(rng: np.random.Generator) -> dict:
    return {"negatives": rng.integers(560, size=(300, 30)), "items": 600}


def half_of_seen(rng: np.random.Generator) -> dict:
    """Leave out half of what users have seen."""
    rows = rng.integers(600, size=(300, 30))
    seen = rng.random((300, 600)) < 0.1
    left_out = seen & (rng.random(seen.shape) < 0.5)
    for user, row in enumerate(rows):
        while left_out[user, row].any():
            bad = left_out[user, row]
            row[bad] = rng.integers(600, size=bad.sum())
    return {"negatives": rows, "items": 600, "exclude": scipy.sparse.csr_array(seen * 1.0)}


#: A defect -> how it is made, and the question and answer that tell it.
DEFECTS: dict[str, tuple[Callable[[np.random.Generator], dict], str, str]] = {
    "lower half": (lower_half, "uniform", "no"),
    "popularity to 0.3": (Sampler(exponent=0.3).draw, "uniform", "no"),
    "popularity, seen left out": (Sampler(seen=True, exponent=0.75).draw, "uniform", "no"),
    "a catalogue that is too large": (catalogue_too_large, "uniform", "no"),
    "dealt in turn": (dealt, "uniform", "too even"),
    "one list": (one_pool, "shared lists", "one list"),
    "batches": (batches, "shared lists", "some"),
    "half of the seen items": (half_of_seen, "seen items", "partly left out"),
}
